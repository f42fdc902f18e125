"""The whole paper in one command: how long it takes, and what is left of it when it is killed on the way.

Run: python benchmarks/reproduce.py [--counts FILE] [--kills 5]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hubbub.paper.wording import printed_place
from measure import row, save

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "paper-claims.md"
HEAD = """# The paper's claims, one by one

Written by `python benchmarks/reproduce.py --counts FILE` from the `summary.json` of a full run: {people:,} check-ins in
{cells} cells, {runs} runs of each setting, seed {seed}. [How to run it, and the verdicts](../how-to/reproduce.md).

| claim | where in the paper | figure | measured | verdict |
|---|---|---|---|---|
"""


def command(folder: Path, counts: Path | None, *more: str) -> list[str]:
    """Return how a person would call it."""
    words = [sys.executable, "-m", "hubbub.cli", "reproduce", "-o", str(folder), *more]
    return words + (["--counts", str(counts)] if counts else [])


def timed(folder: Path, counts: Path | None, *more: str) -> float:
    """Run to the end; return the seconds."""
    start = time.perf_counter()
    subprocess.run(command(folder, counts, *more), check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    return time.perf_counter() - start


def content(folder: Path) -> dict[str, bytes]:
    """Return all files but the parts of the work."""
    files = (path for path in folder.rglob("*") if path.is_file() and "work" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def killed(folder: Path, counts: Path | None, longest: float, kills: int) -> int:
    """Kill runs at random moments, then let one end; return how many parts were done before the last."""
    moments = random.Random(os.getpid())  # noqa: S311  # when, not what
    for _ in range(kills):
        process = subprocess.Popen(  # noqa: S603
            command(folder, counts, "--quick"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.0, longest / kills))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = len(list(folder.glob("work/*.json")))
    timed(folder, counts, "--quick")
    return done


def claims(summary: dict[str, Any]) -> str:
    """Return the page of claims."""
    lines = [
        f"| {claim['says']} | {printed_place(claim['where'])} | {claim['figure']} | {claim['measured']} "
        f"| **{claim['verdict']}** |"
        for claim in summary["claims"]
    ]
    runs = max(figure.get("runs", 0) for figure in summary["figures"])
    data = summary["data"]
    return (
        HEAD.format(people=data["people"], cells=data["cells"], runs=runs, seed=summary["seed"])
        + "\n".join(lines)
        + "\n"
    )


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=Path, help="the paper's counts of San Francisco: columns x, y, count")
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quick = timed(folder / "quick", options.counts, "--quick")
        rows = [row("every figure, --quick", "seconds", f"{quick:.0f} s", "at most 90 s", holds=quick <= 90)]
        again = timed(folder / "again", options.counts, "--quick")
        same = content(folder / "quick") == content(folder / "again")
        reached = f"{'the same' if same else 'OTHER'} bytes in {len(content(folder / 'quick'))} files, {again:.0f} s"
        rows.append(row("every figure, --quick, once more", "files", reached, "the same bytes", holds=same))
        done = killed(folder / "killed", options.counts, quick, options.kills)
        same = content(folder / "quick") == content(folder / "killed")
        reached = f"{'the same' if same else 'OTHER'} bytes; {done} parts were kept"
        rows.append(
            row(
                f"--quick, killed {options.kills} times at random",
                "files after the last run",
                reached,
                "the same bytes",
                holds=same,
            )
        )
        full = timed(folder / "full", options.counts)
        rows.append(
            row("every figure, 100 runs", "minutes", f"{full / 60:.1f} min", "at most 20 min", holds=full <= 1200)
        )
        resumed = timed(folder / "full", options.counts)
        rows.append(row("the same, nothing left to measure", "seconds", f"{resumed:.0f} s", "shown", holds=True))
        summary = json.loads((folder / "full" / "summary.json").read_text())
        verdicts = Counter(claim["verdict"] for claim in summary["claims"])
        told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(verdicts.items()))
        rows.append(row("the paper's claims, 100 runs", "verdicts", told, "shown", holds=True))
        if options.counts:
            PAGE.write_text(claims(summary))
    save("reproduce", rows)


if __name__ == "__main__":
    main()
