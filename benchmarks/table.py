"""Write docs/reference/benchmarks.md, and the tables of other pages, from what the benchmarks have measured.

Run: python benchmarks/table.py
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import Any

from measure import stored_rows

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "reference" / "benchmarks.md"
REPORT = HERE.parent / "docs" / "explanation" / "page.md"
PEERS = HERE.parent / "docs" / "explanation" / "peers.md"
UNKNOWN_RUN = "earlier runs of the same program, whose commands were not kept"
COVERAGE = ("sets", "sets_against_likelihood")
PEER_RESULTS = ("peers", "first_use")
REPEATED = HERE.parent / "docs" / "explanation" / "repeated-reports.md"
DESIGNS = HERE.parent / "docs" / "design-mechanisms.md"
PROTOCOLS = "protocols"
FIGURES = ("tool", "protocol", "here", "faster", "error", "there", "proven")  # columns of their table
SUMMARY = re.compile(r"(<!-- protocols -->\n).*?(<!-- end of protocols -->\n)", flags=re.DOTALL)
ORDER = (
    "maximum",
    "peers",
    "first_use",
    "protocols",
    "rappor_association",
    "bloom_rappor",
    "attribute_references",
    "randomized_response",
    "planar",
    "sampling",
    "epsilon",
    "client_faults",
    "javascript",
    "unary",
    "hashing",
    "several_attributes",
    "batch",
    "sizes",
    "startup",
    "intake",
    "places",
    "kills",
    "serve",
    "serve_kills",
    "trust",
    "intervals",
    "attribute_intervals",
    "independence",
    "fakes",
    "plan",
    "support_plans",
    "every_kind",
    "designs",
    "privic",
    "discovery",
    "sets",
    "resolve",
    "regions",
    "compare",
    "trend",
    "fit",
    "longitudinal",
    "accuracy",
    "best_stop",
    "few_values",
    "auto_attributes",
    "auto",
    "cluster",
    "report",
    "reproduce",
)
BELOW = {
    "sizes": "![seconds and memory against the size of the domain and the number of users](../pictures/benchmarks.png)",
    "accuracy": """![the error against the iterations of EM, in the paper's experiments](../pictures/accuracy-path.png)

![the errors in all cases relative to the best iterate of EM](../pictures/accuracy-cases.png)

[All cases](accuracy-cases.md)""",
}
HEAD = """# Benchmarks

Every number on this page was measured by a command above its table and written here by
`python benchmarks/table.py`; none was typed in. Where several runs measured a table, its last column says which of them
a row is from. Ratios compare what ran side by side in one run: machines differ, and this one is shared.
`make benchmarks` runs them (an hour or so on two cores), `make studies` those of thousands of simulated studies
(hours), `make accuracy` the errors of all methods (an hour), `make few-values` those with few values; single ones run
by the commands below, from the root of the repository, with the paper's counts of San Francisco as `--counts FILE`
where you have them.

A gap is a certified upper bound on how far the mean log-likelihood is below its maximum, in nats per user. It is
computed from the answer alone, whichever solver gave it.
"""


def main() -> None:
    """Write the tables into the pages."""
    PAGE.write_text(page())
    REPORT.write_text(with_coverage(REPORT.read_text()))
    PEERS.write_text(with_peers(PEERS.read_text()))
    REPEATED.write_text(with_ways(REPEATED.read_text()))
    DESIGNS.write_text(with_designs(DESIGNS.read_text()))


def page() -> str:
    """Put the tables together."""
    parts = [HEAD]
    for name in ORDER:
        rows = stored_rows(name)
        if not rows:
            continue
        title = (HERE / f"{name}.py").read_text().split('"""')[1].split("\n")[0].rstrip(".")
        parts.append(f"\n## {title}\n\n{table(rows)}")
        if name in BELOW:
            parts.append(f"\n{BELOW[name]}\n")
    return "".join(parts)


def with_designs(text: str) -> str:
    """Return the page of designed mechanisms with the errors relative to the best built-in mechanism."""
    head = "| setting | bell | block | Zipf | best built-in mechanism |\n|---|---|---|---|---|\n"
    settings: dict[str, list[dict[str, Any]]] = {}
    for row in stored_rows("designs"):
        if row["problem"] != "all settings":
            settings.setdefault(row["problem"].rpartition(", ")[0], []).append(row)
    lines = []
    for name, rows in settings.items():
        rivals = dict.fromkeys(row["measured"].split(" / ")[1].removeprefix("of ") for row in rows)
        ratios = [row["reached"].rpartition(" / ")[2].replace("+-", "±") for row in rows]
        lines.append((name, *ratios, ", ".join(rivals)))
    return _filled(text, head, lines) if lines else text


def with_coverage(text: str) -> str:
    """Return the page of reports with the table of coverage as it was measured."""
    head = "| study | at worst | at best | widths | `hb.interval`, times as wide |\n|---|---|---|---|---|\n"
    before, after = text.split(head)
    rows = takewhile(lambda line: line.startswith("| "), after.splitlines(keepends=True))
    sets, against = (stored_rows(name) for name in COVERAGE)
    wider = {row["problem"]: list(row["wider"].values()) for row in against}
    return before + head + coverage(sets, wider) + after.removeprefix("".join(rows))


def coverage(rows: list[dict[str, Any]], wider: dict[str, list[float]]) -> str:
    """Return one line for each study: coverage and widths over all its sets, whatever the truth."""
    studies: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        studies.setdefault(row["problem"].removesuffix(", smooth").removesuffix(", spiky"), []).append(row)
    lines = []
    for name, own in studies.items():
        held = [one["coverage"] for row in own for one in row["sets"].values()]
        widths = between([one["width"] for row in own for one in row["sets"].values()])
        ratios = between([ratio for row in own for ratio in wider.get(row["problem"], [])])
        lines.append(f"| {name} | {min(held):.1%} | {max(held):.1%} | {widths} | {ratios} |\n")
    return "".join(lines)


def with_peers(text: str) -> str:
    """Return the page on other tools with what was measured of them."""
    maxima, first = (stored_rows(name) for name in PEER_RESULTS)
    names = ("problem", "tool", "settings", "seconds", "gap", "below best", "its own verdict")
    times: list[tuple[str, ...]] = [tuple(row[name] or "defaults" for name in names) for row in maxima]
    tools: list[tuple[str, ...]] = [(row["problem"], row["measured"], row["reached"]) for row in first]
    head = "| problem | tool | settings | seconds | gap | below best | what it says |\n|---|---|---|---|---|---|---|\n"
    text = _filled(text, head, times)
    text = _filled(text, "| tool | what was done | outcome |\n|---|---|---|\n", tools)
    return with_protocols(text, stored_rows(PROTOCOLS))


def with_protocols(text: str, rows: list[dict[str, Any]]) -> str:
    """Return the page on other tools with the same protocols side by side, and a sentence about all of them."""
    if not rows:
        return text
    head = (
        "| tool | protocol | here | times as fast | error, here over there | epsilon there, measured | here, proven |\n"
    )
    head += "|---|---|---|---|---|---|---|\n"
    figures = [row["figures"] for row in rows if "figures" in row]
    text = _filled(text, head, [tuple(figure[name] for name in FIGURES) for figure in figures])
    faster = [float(figure["faster"]) for figure in figures]
    errors = [row["holds"] for row in rows if row["measured"].startswith("mean squared error")]
    proofs = [row["holds"] for row in rows if row["measured"].startswith("epsilon of one report")]
    sentence = (
        f"Of {len(figures)} protocols, hubbub is {min(faster):g} to {max(faster):g} times as fast, at least 20 times "
        f"in {sum(each >= 20 for each in faster)}; its mean squared error is no larger, within three standard errors "
        f"of the simulation, in {sum(errors)} of {len(errors)}; its epsilon is proven in {sum(proofs)} of "
        f"{len(proofs)}.\n"
    )
    return SUMMARY.sub(lambda match: match[1] + sentence + match[2], text)


def with_ways(text: str) -> str:
    """Return the page on repeated reports with the three ways to read them as they were measured."""
    head = "| mechanism and reports | | joint, product, average |\n|---|---|---|\n"
    measured = [(row["problem"], row["measured"], row["reached"]) for row in stored_rows("longitudinal")]
    return _filled(text, head, [(name, what.partition(",")[0], reached) for name, what, reached in measured])


def _filled(text: str, head: str, rows: list[tuple[str, ...]]) -> str:
    """Return a page with other rows below the head of a table."""
    before, after = text.split(head)
    old = takewhile(lambda line: line.startswith("| "), after.splitlines(keepends=True))
    lines = ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |\n" for row in rows]
    return before + head + "".join(lines) + after.removeprefix("".join(old))


def between(numbers: list[float]) -> str:
    """Return the least and the largest, if there are any."""
    return f"{min(numbers):.2f} to {max(numbers):.2f}" if numbers else "not compared"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the runs that the rows come from, and the rows; where runs are several, each row has its run's number."""
    runs = list(dict.fromkeys((row["command"], row["machine"]) for row in rows))
    if "holds" in rows[0]:  # this project's own shape: it says whether the row holds
        names = ["problem", "measured", "reached", "required", "holds"]
        cells = [
            [row["problem"], row["measured"], row["reached"], row["asked"], "yes" if row["holds"] else "**no**"]
            for row in rows
        ]
    else:
        names = [name for name in rows[0] if name not in ("command", "machine")]
        cells = [[str(row.get(name, "")) for name in names] for row in rows]
    sources = [UNKNOWN_RUN if command is None else f"`{command}` ({machine})" for command, machine in runs]
    if len(runs) > 1:
        names.append("run")
        for row, line in zip(rows, cells, strict=True):
            line.append(str(1 + runs.index((row["command"], row["machine"]))))
        sources = [f"{number}. {source}" for number, source in enumerate(sources, start=1)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(line) + " |" for line in cells]
    return "\n".join([*sources, "", *lines]) + "\n"


if __name__ == "__main__":
    main()
