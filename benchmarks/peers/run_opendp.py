"""Time OpenDP's randomized response, called from Python once for each report: a line "VALUES EPSILON CALLS" at a time.

The answer is a line with the seconds that so many calls took.
"""

from __future__ import annotations

import math
import sys
import time

import opendp.prelude as dp  # type: ignore[import-not-found]

dp.enable_features("contrib")


def main() -> None:
    """Answer until there is nothing more to do."""
    for line in sys.stdin:
        values, epsilon, calls = (float(word) for word in line.split())
        truth = math.exp(epsilon) / (values - 1 + math.exp(epsilon))
        measurement = dp.m.make_randomized_response(list(range(int(values))), truth)
        measurement(0)
        start = time.perf_counter()
        for call in range(int(calls)):
            measurement(call % int(values))
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
