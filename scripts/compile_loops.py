"""Compile the loops that take longest, once: the processes of the tests then find them in the cache on disk.

Each would otherwise compile them anew as long as none of the others has finished. What is computed does not matter;
short loops and long ones are compiled apart (`hubbub.core.compiling`).
"""

from __future__ import annotations

import numpy as np

import hubbub as hb

SIZES = (8, 60)  # values: for short loops, and for long ones


def main() -> None:
    """Ask for everything that simulates, of a short line and of a long one."""
    for size in SIZES:
        mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), 3.0 / size)
        groups = [
            hb.Reports.from_outputs(mechanism, mechanism.privatize(np.arange(size).repeat(9), rng=seed))
            for seed in (1, 2)
        ]
        estimate = hb.estimate(groups[0], "mle")
        hb.interval(groups[0], [0, 1], estimate=estimate)
        hb.resolve(groups[0], estimate=estimate)
        hb.compare(*groups, of=[0, 1], estimates=[estimate, hb.estimate(groups[1], "mle")])


if __name__ == "__main__":
    main()
