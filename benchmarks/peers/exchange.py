"""How a runner takes a problem from the benchmark and hands its answer back: raw numbers in a folder.

The problem's folder holds `size` (two 32-bit integers: values, patterns), `matrix` (values by patterns, row after
row) and `counts`, both as 64-bit floating point numbers. The answer's folder receives `probabilities` in the same
form and `facts`, one "name: text" on each line.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Answer = TypeVar("Answer")

QUICK = 2.0


def read_problem(folder: Path) -> tuple[Floats, Floats]:
    """Return the matrix (values by patterns) and the number of users of each pattern."""
    values, patterns = np.fromfile(folder / "size", dtype=np.int32)
    return np.fromfile(folder / "matrix").reshape(values, patterns), np.fromfile(folder / "counts")


def timed(call: Callable[[], Answer], repeats: int) -> tuple[Answer, float, float]:
    """Return the answer, the median time and the first call's time; a call that is not quick is made only once."""
    times: list[float] = []
    while True:
        start = time.perf_counter()
        answer = call()
        times.append(time.perf_counter() - start)
        if times[0] > QUICK or len(times) > repeats:
            return answer, statistics.median(times[1:] or times), times[0]


def write_answer(folder: Path, probabilities: Floats, **facts: object) -> None:
    """Write the probabilities and what else is to be said."""
    np.asarray(probabilities, dtype=np.float64).tofile(folder / "probabilities")
    write_facts(folder, **facts)


def write_facts(folder: Path, **facts: object) -> None:
    """Write only facts: for a tool that cannot take the problem."""
    lines = [f"{name}: {' '.join(str(fact).split())}" for name, fact in facts.items()]
    (folder / "facts").write_text("\n".join(lines) + "\n", encoding="utf-8")
