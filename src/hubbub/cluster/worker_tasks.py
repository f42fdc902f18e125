"""The tasks of cluster workers: hold parts of the reports, and return sums over them.

All are pure functions of their arguments: a part or a sum that is lost with its worker is computed again elsewhere,
with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import ReportsError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.threads import threads_up_to
from hubbub.domains import Domain
from hubbub.likelihood import Likelihood, Sums
from hubbub.reports import Reports

T = TypeVar("T")

# Each evaluation uses all threads of its worker; several at once would only wait for each other.
_one_evaluation = Lock()


@dataclass(frozen=True, eq=False)
class WorkerPart(Portable):
    """Reports on a worker, with their likelihood, whose channel is built only once."""

    reports: Reports

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood of this part's reports."""
        return Likelihood.of(self.reports)

    def __sizeof__(self) -> int:
        """Return the bytes of the patterns: a scheduler that believes parts to be small would move them around."""
        return object.__sizeof__(self) + sum(_array_bytes(list(vars(block).values())) for block in self.reports.blocks)


@dataclass(frozen=True)
class PartDescription:
    """The domain, users and kind of parts, known before anything is computed; descriptions add up."""

    domains: dict[str, Domain]  # the distinct ones, by their digests
    digests: tuple[str, ...]  # of each part's domain
    users: int
    approximate: bool

    def __add__(self, other: PartDescription) -> PartDescription:
        return PartDescription(
            {**self.domains, **other.domains},
            self.digests + other.digests,
            self.users + other.users,
            self.approximate or other.approximate,
        )


def load_part(load: Callable[[Any], Reports], argument: Any) -> WorkerPart:
    """Return the part that `load` returns for its argument."""
    return to_part(load(argument), f"{getattr(load, '__name__', 'load')}({shorten(argument)})")


def to_part(reports: Reports, where: str) -> WorkerPart:
    """Return a part of these reports."""
    if not isinstance(reports, Reports):
        raise ReportsError(
            "a part must be reports",
            where=where,
            got=shorten(reports),
            expected="a hubbub.Reports",
            remedy="return the result of hubbub.read_reports or hubbub.Reports.from_outputs",
        )
    return WorkerPart(reports)


def describe_part(part: WorkerPart) -> PartDescription:
    """Return the description of a part."""
    domain = part.reports.domain
    digest = domain.content_key
    return PartDescription({digest: domain}, (digest,), part.reports.users, part.reports.approximate)


def evaluate_part(part: WorkerPart, theta: Floats) -> Sums:
    """Return the sums that a part contributes to the likelihood at theta."""
    from hubbub.core.compiling import use_threads

    writable = np.array(theta)  # received arrays are read-only, for which loops would be compiled again
    threads = _threads()
    with _one_evaluation, threads_up_to(threads):
        use_threads(threads)
        return part.likelihood.at(writable).sums()


def add_up(*terms: Any) -> Any:
    """Return the sum, from the first term to the last."""
    return reduce(add, terms)


def return_argument(value: T) -> T:
    """Return the argument, which is sent once and then passed on between workers."""
    return value


def _threads() -> int:
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # called outside a worker
        return 1


def _array_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(_array_bytes, value))
    if hasattr(value, "indptr"):
        return _array_bytes([value.indptr, value.indices, value.data])
    return 0
