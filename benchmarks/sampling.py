"""Real reports, drawn exactly with the operating system's randomness: how quick, and how true to their matrix.

OpenDP runs in an environment of its own, made once under `--folder` (or named by `--opendp PYTHON`). It is called in
turn with hubbub, once for each report, which is all that its Python interface offers. Truth is a chi-square test of ten
million draws of each mechanism against its matrix; the level is 1e-6 for all of them together.

Run: python benchmarks/sampling.py [--folder DIR | --opendp PYTHON] [--draws N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from measure import row, save
from peers import RUNNERS, last_line, quiet

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the tests count draws, too

from counting import worst_p_value  # type: ignore[import-not-found]

OPENDP = ("opendp==0.16.0", "numpy")  # without NumPy it looks for it at every call and is about half as quick
USERS, CALLS, REPEATS = 1_000_000, 2_000, 7
LINE = hb.Integers(0, 99)
LEVEL = 1e-6

TRUE = {
    "k-RR": hb.RandomizedResponse(LINE, 2.0),
    "geometric": hb.Geometric(LINE, 0.3),
    "truncated geometric": hb.TruncatedGeometric(LINE, 0.3),
    "Laplace": hb.Laplace(LINE, 0.3),
    "Laplace, uneven bins": hb.Laplace(hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0, 7.0]), 0.8),
    "exponential": hb.Exponential(LINE, 0.3),
    "exponential, map": hb.Exponential(hb.Grid(8, 6, cell=(1.0, 0.75)), 1.0),
    "planar geometric": hb.PlanarGeometric(hb.Grid(8, 6, cell=(1.0, 0.75)), 1.0),
    "planar geometric, endless": hb.PlanarGeometric(hb.Grid(8, 6, cell=(1.0, 0.75)), 1.0, truncated=False),
    "planar geometric, missing cells": hb.PlanarGeometric(hb.Grid(4, 3, cell=1.0, cells=[0, 1, 5, 6, 11]), 1.0),
    "planar Laplace": hb.PlanarLaplace(hb.Grid(8, 6, cell=(1.0, 0.75)), 1.0),
    "RAPPOR": hb.Rappor(hb.Integers(0, 7), 2.0),
    "OUE": hb.OptimizedUnary(hb.Integers(0, 7), 1.0),
    "OLH": hb.LocalHashing(LINE, 1.2),
    "subsets": hb.SubsetSelection(hb.Integers(0, 7), 1.0),
    "matrix": hb.Matrix(LINE, range(5), np.random.default_rng(0).dirichlet(np.ones(5), size=100)),
}


class Peer:
    """OpenDP in a process that waits for questions."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603
            [python, str(RUNNERS / "run_opendp.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, values: int, epsilon: float) -> float:
        """Return the seconds of one report."""
        print(values, epsilon, CALLS, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline() if self._process.stdout else ""
        return float(answer) / CALLS

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def environment(folder: Path) -> str:
    """Return the interpreter of an environment with OpenDP, made if it is not there yet."""
    home = folder / "opendp"
    python = str(home / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if quiet([python, "-c", "import numpy, opendp.prelude"]).returncode == 0:
        return python
    print("making an environment for OpenDP ...", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    for step in (
        [sys.executable, "-m", "venv", str(home)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *OPENDP],
    ):
        done = quiet(step)
        if done.returncode != 0:
            sys.exit(f"no environment for OpenDP: {last_line(done.stderr or done.stdout)}")
    return python


def report_seconds(function: Callable[[Any], object], values: Any) -> float:
    """Return the seconds of one report."""
    start = time.perf_counter()
    function(values)
    return (time.perf_counter() - start) / len(values)


def speeds(peer: Peer) -> list[dict[str, Any]]:
    """Return the rows on speed: exact draws, seeded draws and OpenDP in turn."""
    rows = []
    for name, mechanism in (
        ("k-RR, 100 values", hb.RandomizedResponse(LINE, 1.0)),
        ("k-RR, 2 values", hb.RandomizedResponse(hb.Integers(0, 1), 1.0)),
        ("truncated geometric, 100 values", hb.TruncatedGeometric(LINE, 1.0)),
    ):
        values = np.resize(mechanism.domain.labels, USERS)
        mechanism.privatize(values[:10])
        simulate = partial(mechanism.privatize, rng=np.random.default_rng(0))
        exact, seeded, other = [], [], []
        for _ in range(REPEATS):
            exact.append(report_seconds(mechanism.privatize, values))
            seeded.append(report_seconds(simulate, values))
            other.append(peer.seconds(len(mechanism.domain), 1.0))
        ours, simulated, theirs = (statistics.median(times) for times in (exact, seeded, other))
        rows += [
            row(
                name,
                "a report by OpenDP's randomized response / exact",
                f"{theirs * 1e6:.1f} / {ours * 1e6:.3f} us = {theirs / ours:,.0f}",
                ">= 50 times",
                holds=theirs >= 50 * ours,
            ),
            row(
                name,
                "a report simulated by NumPy / exact",
                f"{simulated * 1e6:.3f} / {ours * 1e6:.3f} us = {simulated / ours:.2f}",
                ">= 0.2",
                holds=simulated >= 0.2 * ours,
            ),
        ]
    rappor = hb.Rappor(hb.Integers(0, 999), 2.0)
    values = np.resize(rappor.domain.labels, 100_000)
    rappor.privatize(values[:10])
    spent = [report_seconds(rappor.privatize, values) for _ in range(REPEATS)]
    system = [report_seconds(lambda these: os.urandom(1000 * len(these)), values) for _ in range(REPEATS)]
    ours, bare = statistics.median(spent), statistics.median(system)
    rows.append(
        row("RAPPOR, 1,000 bits", "exact", f"{1 / ours:,.0f} reports/s", ">= 100,000", holds=ours <= 1e-5),
    )
    rows.append(
        row(
            "RAPPOR, 1,000 bits",
            "exact / merely asking the system for a byte for each bit",
            f"{ours * 1e6:.1f} / {bare * 1e6:.1f} us = {ours / bare:.2f}",
            "shown",
            holds=True,
        )
    )
    return rows


def truths(draws: int) -> list[dict[str, Any]]:
    """Return the rows on truth."""
    level = LEVEL / len(TRUE)
    rows = []
    for name, mechanism in TRUE.items():
        found = worst_p_value(mechanism, draws=draws)
        what = f"chi-square of {draws:,} draws, three values: the smallest p"
        rows.append(row(name, what, f"{found:.2g}", f">= {level / 3:.1g}", holds=found >= level / 3))
    return rows


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--folder", type=Path, default=cache / "hubbub-peers", help="where the environment is made")
    parser.add_argument("--opendp", help="a Python with OpenDP, instead of an environment made here")
    parser.add_argument("--draws", type=int, default=10_000_000)
    given = parser.parse_args()
    peer = Peer(given.opendp or environment(given.folder))
    rows = speeds(peer)
    peer.close()
    save("sampling", [*rows, *truths(given.draws)])


if __name__ == "__main__":
    main()
