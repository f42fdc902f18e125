"""What a newcomer waits for: the first line, the version, the help, a small estimate, and compiling the loops.

Each is a fresh process, timed in turn with one of `python -c pass`: on a busy machine both wait, and the ratio stays.

Run: python benchmarks/startup.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from measure import row, save

ROUNDS = 7
BARE = ("-c", "pass")
SECONDS = 0.35
BARE_SECONDS = 0.025  # of `python -c pass` where nothing else runs: what a number of seconds means as a ratio
# What is asked for, None where the number is shown only.
ASKED: dict[str, tuple[tuple[str, ...], float | None]] = {
    "import hubbub": (("-c", "import hubbub"), SECONDS),
    "hubbub --version": (("-m", "hubbub.cli", "--version"), SECONDS),
    "hubbub --help": (("-m", "hubbub.cli", "--help"), SECONDS),
    "hubbub estimate --help": (("-m", "hubbub.cli", "estimate", "--help"), SECONDS),
    "import hubbub as hb; hb.Integers": (("-c", "import hubbub as hb; hb.Integers"), None),
    "import hubbub as hb; hb.estimate": (("-c", "import hubbub as hb; hb.estimate"), None),
    "every public name": (("-c", "import hubbub.public"), None),
    "hubbub estimate, five reports, mle, --quick": (
        ("-m", "hubbub.cli", "estimate", "study.toml", "reports.csv", "--method", "mle", "--quick"),
        None,
    ),
}
LOOPS = """
import time, numpy as np
from hubbub.channels import compiled_loops
start = time.perf_counter()
sets = np.zeros((9, 3), dtype=np.uint8)
compiled_loops.sums_of_sets(10**9, sets, np.zeros((3, 256)))
compiled_loops.weights_of_bytes(10**9, sets, np.zeros(9))
compiled_loops.decayed_sums(np.zeros((1, 5)), np.zeros(4))
compiled_loops.em_updates(np.ones((2, 2)), np.full(2, 0.5), np.full(2, 0.5), 1.0, 0.1, 1)
print(time.perf_counter() - start)
"""


def run(words: tuple[str, ...], folder: Path, cache: str | None = None) -> tuple[float, str]:
    """Return the seconds of a fresh interpreter, and what it printed."""
    environment = dict(os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {}))
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, done.stdout


def medians(folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median seconds of everything, and the median ratios to the bare interpreter that ran just before."""
    times: dict[str, list[float]] = {name: [] for name in ASKED}
    ratios: dict[str, list[float]] = {name: [] for name in ASKED}
    for round_number in range(ROUNDS + 1):
        for name, (words, _) in ASKED.items():
            bare = run(BARE, folder)[0]
            seconds = run(words, folder)[0]
            if round_number:  # the first round reads files from the disk
                times[name].append(seconds)
                ratios[name].append(seconds / bare)
    return (
        {name: float(np.median(each)) for name, each in times.items()},
        {name: float(np.median(each)) for name, each in ratios.items()},
    )


def main() -> None:
    """Print and keep the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(("-m", "hubbub.cli", "new", "integers", "-o", "study.toml"), folder)
        (folder / "reports.csv").write_text("output\n34\n41\n29\n18\n36\n")
        seconds, ratios = medians(folder)
        cache = str(folder / "cache")
        cold = float(run(("-c", LOOPS), folder, cache)[1])
        warm = float(np.median([float(run(("-c", LOOPS), folder, cache)[1]) for _ in range(5)]))
    most = SECONDS / BARE_SECONDS
    rows = [
        row(
            name,
            f"median of {ROUNDS} fresh processes: seconds; ratio to `python -c pass` beside it",
            f"{seconds[name]:.2f} s; {ratios[name]:.1f}",
            "shown" if asked is None else f"under {asked} s; ratio under {most:.0f}, the same where that takes 25 ms",
            holds=asked is None or seconds[name] < asked or ratios[name] < most,
        )
        for name, (_, asked) in ASKED.items()
    ]
    rows.append(
        row(
            "compiled loops",
            "first call ever / first call of a process",
            f"{cold:.1f} / {warm:.2f} s",
            "cached",
            holds=warm < cold / 3,
        )
    )
    save("startup", rows)


if __name__ == "__main__":
    main()
