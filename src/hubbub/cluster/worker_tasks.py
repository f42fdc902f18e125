"""What workers do: hold parts, and answer with sums.

All of these are plain functions of their arguments, so that a part or a sum that was lost with its worker is computed
again elsewhere and comes out the same.
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
from hubbub.core.portable import Portable
from hubbub.core.threads import threads_up_to
from hubbub.domains import Domain
from hubbub.likelihood import Likelihood, Sums
from hubbub.reports import Reports

T = TypeVar("T")

# Each evaluation uses all threads of its worker: several at a time would only wait for each other.
_one_at_a_time = Lock()


@dataclass(frozen=True, eq=False)
class WorkerPart(Portable):
    """Reports as a worker holds them: beside their likelihood, whose channel is built once and not at each step."""

    reports: Reports

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood of this part's reports."""
        return Likelihood.of(self.reports)

    def __sizeof__(self) -> int:
        """Return the bytes of the patterns: a scheduler that takes parts for small would move them about."""
        return object.__sizeof__(self) + sum(_bytes(list(vars(block).values())) for block in self.reports.blocks)


@dataclass(frozen=True)
class Description:
    """What is to be known of parts before anything is computed; descriptions of parts add up."""

    domains: dict[str, Domain]  # the distinct ones, by their digests
    digests: tuple[str, ...]  # of each part's domain
    users: int
    approximate: bool

    def __add__(self, other: Description) -> Description:
        return Description(
            {**self.domains, **other.domains},
            self.digests + other.digests,
            self.users + other.users,
            self.approximate or other.approximate,
        )


def load_part(load: Callable[[Any], Reports], argument: Any) -> WorkerPart:
    """Return the part that `load` gives."""
    return hold(load(argument), f"{getattr(load, '__name__', 'load')}({shorten(argument)})")


def hold(reports: Reports, where: str) -> WorkerPart:
    """Return a part of these reports."""
    if not isinstance(reports, Reports):
        raise ReportsError(
            "a part is not reports",
            where=where,
            got=shorten(reports),
            expected="a hubbub.Reports",
            remedy="return what hubbub.read_reports or hubbub.Reports.from_outputs gives",
        )
    return WorkerPart(reports)


def describe(part: WorkerPart) -> Description:
    """Return what is to be known of a part."""
    domain = part.reports.domain
    digest = domain.content_key
    return Description({digest: domain}, (digest,), part.reports.users, part.reports.approximate)


def reports_of(part: WorkerPart) -> Reports:
    """Return the reports themselves."""
    return part.reports


def sums_of(part: WorkerPart, theta: Floats) -> Sums:
    """Return what a part adds to the likelihood at theta."""
    from hubbub.channels.kernels import use_threads

    own = np.array(theta)  # what comes from elsewhere is read-only, for which loops would be compiled again
    threads = _threads()
    with _one_at_a_time, threads_up_to(threads):
        use_threads(threads)
        return part.likelihood.at(own).sums()


def add_up(*parts: Any) -> Any:
    """Return the sum from the first to the last."""
    return reduce(add, parts)


def as_it_is(value: T) -> T:
    """Return the value: what is sent once, and then passed on between workers."""
    return value


def _threads() -> int:
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # no worker: called like any other function
        return 1


def _bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(_bytes, value))
    if hasattr(value, "indptr"):
        return _bytes([value.indptr, value.indices, value.data])
    return 0
