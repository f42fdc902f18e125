"""What a newcomer waits for: importing hubbub, and compiling the loops when they are first used.

Run: python benchmarks/startup.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from measure import row, save

IMPORT = "import hubbub"
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


def run(code: str, cache: str | None = None) -> tuple[float, str]:
    """Return the seconds of a fresh interpreter, and what it printed."""
    environment = dict(os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {}))
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return time.perf_counter() - start, done.stdout


def main() -> None:
    """Print and keep the rows."""
    bare = float(np.median([run("pass")[0] for _ in range(7)]))
    whole = float(np.median([run(IMPORT)[0] for _ in range(7)]))
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = float(run(LOOPS, cache)[1]), float(np.median([float(run(LOOPS, cache)[1]) for _ in range(5)]))
    rows = [
        row(
            "import hubbub",
            "a fresh interpreter, less one that imports nothing",
            f"{whole - bare:.2f} s",
            "under 0.7 s",
            holds=whole - bare < 0.7,
        ),
        row(
            "compiled loops",
            "first call ever / first call of a process",
            f"{cold:.1f} / {warm:.2f} s",
            "cached",
            holds=warm < cold / 3,
        ),
    ]
    save("startup", rows)


if __name__ == "__main__":
    main()
