"""What the collector counts about itself, as Prometheus reads it: numbers of requests, reports and commits.

Nothing says who sent a report, or what is in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
REPORTS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)


class Histogram:
    """How often a quantity was at most each of some bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the text form."""
        total = 0
        for bound, count in zip(self._bounds, self._counts, strict=False):
            total += count
            yield f'{name}_bucket{{le="{bound:g}"}} {total}'
        total += self._counts[-1]
        yield f'{name}_bucket{{le="+Inf"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


class ServiceCounters:
    """Everything that is counted. Each counter has one writer: the event loop, or the thread that commits."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()  # by status
        self.refusals: Counter[str] = Counter()  # by code
        self.accepted = 0
        self.repeated = 0
        self.storage_failures = 0
        self.bytes_held = 0
        self.commit_seconds = Histogram(SECONDS)
        self.commit_reports = Histogram(REPORTS)

    def text(self, *, healthy: bool) -> str:
        """Return all of it in the text form of Prometheus."""
        lines: list[str] = []

        def family(name: str, kind: str, about: str, values: Iterator[str]) -> None:
            lines.extend((f"# HELP hubbub_{name} {about}", f"# TYPE hubbub_{name} {kind}", *values))

        def one(name: str, value: int) -> Iterator[str]:
            yield f"hubbub_{name} {value}"

        def labelled(name: str, label: str, counts: Counter[int] | Counter[str]) -> Iterator[str]:
            for key, count in sorted(dict(counts).items(), key=str):
                yield f'hubbub_{name}{{{label}="{key}"}} {count}'

        family("answers_total", "counter", "Answers by HTTP status.", labelled("answers_total", "status", self.answers))
        family(
            "refusals_total", "counter", "Refused requests by cause.", labelled("refusals_total", "code", self.refusals)
        )
        family("reports_accepted_total", "counter", "Reports stored.", one("reports_accepted_total", self.accepted))
        about = "Reports that were stored before."
        family("reports_repeated_total", "counter", about, one("reports_repeated_total", self.repeated))
        about = "Transactions that the database refused."
        family("storage_failures_total", "counter", about, one("storage_failures_total", self.storage_failures))
        about = "Bytes of requests that wait for their answer."
        family("request_bytes_held", "gauge", about, one("request_bytes_held", self.bytes_held))
        about = "Whether the database took the last reports."
        family("storage_up", "gauge", about, one("storage_up", int(healthy)))
        about = "Time to check and store a group of requests."
        family("commit_seconds", "histogram", about, self.commit_seconds.lines("hubbub_commit_seconds"))
        about = "Reports stored in one transaction."
        family("commit_reports", "histogram", about, self.commit_reports.lines("hubbub_commit_reports"))
        return "\n".join(lines) + "\n"
