"""Write docs/benchmarks.md from what the benchmarks have measured (benchmarks/results).

Run: python benchmarks/table.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
ORDER = (
    "maximum",
    "peers",
    "randomized_response",
    "planar",
    "sampling",
    "epsilon",
    "unary",
    "hashing",
    "batch",
    "sizes",
    "startup",
    "intake",
    "kills",
    "trust",
    "intervals",
    "plan",
    "sets",
    "fit",
    "accuracy",
    "auto",
    "cluster",
    "report",
    "reproduce",
)
BELOW = {
    "sizes": "![seconds and memory against the size of the domain and the number of users](benchmarks.png)",
    "accuracy": """![the error against the iterations of EM, in the paper's experiments](accuracy-path.png)

![the errors in all cases relative to the best iterate of EM](accuracy-cases.png)

[All cases](accuracy-cases.md)""",
}
HEAD = """# Benchmarks

Every number on this page was measured by the command above its table and written here by
`python benchmarks/table.py`; none was typed in. Ratios compare what ran side by side in one run: machines differ, and
this one is shared. `make benchmarks` runs them (an hour or so on two cores), `make studies` those of thousands of
simulated studies (hours), `make accuracy` the errors of all methods (minutes); single ones run by the commands below,
from the root of the repository, with the paper's counts of San Francisco as `--counts FILE` where you have them.

A gap is a certified upper bound on how far the mean log-likelihood is below its maximum, in nats per user. It is
computed from the answer alone, whoever gave it.
"""


def main() -> None:
    """Put the tables together."""
    parts = [HEAD]
    for name in ORDER:
        path = HERE / "results" / f"{name}.json"
        if not path.exists():
            continue
        kept = json.loads(path.read_text())
        title = (HERE / f"{name}.py").read_text().split('"""')[1].split("\n")[0].rstrip(".")
        parts.append(f"\n## {title}\n\n`{kept['command']}` ({kept['machine']})\n\n{table(kept['rows'])}")
        if name in BELOW:
            parts.append(f"\n{BELOW[name]}\n")
    PAGE.write_text("".join(parts))


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a table; rows of this project's own shape say whether they hold."""
    if "holds" in rows[0]:
        lines = ["| problem | measured | reached | asked | |", "|---|---|---|---|---|"]
        for row in rows:
            verdict = "yes" if row["holds"] else "**no**"
            lines.append(f"| {row['problem']} | {row['measured']} | {row['reached']} | {row['asked']} | {verdict} |")
    else:
        names = list(rows[0])
        lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        lines += ["| " + " | ".join(str(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
