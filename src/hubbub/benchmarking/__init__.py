"""Compare mechanisms and estimators by simulated studies: one's own against all that are here."""

from hubbub.benchmarking.api import benchmark
from hubbub.benchmarking.result import Benchmark

__all__ = ["Benchmark", "benchmark"]
