"""Reports that lie in parts, anywhere: what a likelihood needs of them.

Reports that cannot be merged to few patterns (unary and hashed ones over large domains, several outputs for each user)
may fill many machines. EM, its acceleration and the certificate need of them only sums of the domain's size (see
`sums`), so that theta travels to the reports and the reports stay where they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add

from hubbub.core.arrays import Floats
from hubbub.core.errors import ReportsError, shorten
from hubbub.domains import Domain
from hubbub.likelihood.likelihood import Likelihood
from hubbub.likelihood.partial_sums import Sums
from hubbub.reports import Reports


class ScatteredReports(ABC):
    """Reports that lie in parts, on other machines or in other processes.

    Each user's reports lie in one part as a whole: a likelihood is a product over users.
    """

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The domain, the same for all parts."""

    @property
    @abstractmethod
    def users(self) -> int:
        """How many users sent these reports."""

    @property
    @abstractmethod
    def approximate(self) -> bool:
        """Whether the likelihood is approximate, because only sums of bits were kept."""

    @property
    @abstractmethod
    def parts(self) -> int:
        """In how many parts the reports lie."""

    @abstractmethod
    def evaluate(self, theta: Floats) -> Sums:
        """Return the sums at `theta` over all parts, added in an order that is always the same."""

    @abstractmethod
    def merged(self) -> Reports:
        """Return the reports in this process, for those that fit."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.users:,} user{'s' * (self.users != 1)}, {_parts(self.parts)})"


class ReportsInParts(ScatteredReports):
    """Reports in parts that all lie in this process: the plainest example of scattered ones.

    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> halves = [hb.Reports.from_counts(coin, counts) for counts in ([400, 100], [200, 300])]
    >>> ReportsInParts(halves)
    ReportsInParts(1,000 users, 2 parts)
    >>> hb.estimate(ReportsInParts(halves), method="mle").probabilities.round(4)
    array([0.7164, 0.2836])
    """

    def __init__(self, parts: Sequence[Reports]) -> None:
        self._parts = tuple(parts)
        check_parts([part.domain for part in self._parts], "ReportsInParts(parts)")
        self._likelihoods = [Likelihood.of(part) for part in self._parts]

    @property
    def domain(self) -> Domain:
        """The domain, the same for all parts."""
        return self._parts[0].domain

    @property
    def users(self) -> int:
        """How many users sent these reports."""
        return sum(part.users for part in self._parts)

    @property
    def approximate(self) -> bool:
        """Whether the likelihood is approximate, because only sums of bits were kept."""
        return any(part.approximate for part in self._parts)

    @property
    def parts(self) -> int:
        """In how many parts the reports lie."""
        return len(self._parts)

    def evaluate(self, theta: Floats) -> Sums:
        """Return the sums at `theta` over all parts, from the first to the last."""
        return reduce(add, (likelihood.at(theta).sums() for likelihood in self._likelihoods))

    def merged(self) -> Reports:
        """Return all parts together."""
        return reduce(add, self._parts)


def check_parts(domains: Sequence[Domain], where: str) -> None:
    """Refuse parts over different domains, and none at all."""
    if not domains:
        raise ReportsError(
            "there are no parts",
            where=where,
            got="an empty list",
            expected="the reports of at least one user, in at least one part",
            remedy="check where the parts come from: what was read, and what was filtered",
        )
    for number, domain in enumerate(domains):
        if domain != domains[0]:
            raise ReportsError(
                "the parts are over different domains",
                where=f"{where}, part {number}",
                got=shorten(domain, 100),
                expected=f"{shorten(domains[0], 100)}, as in part 0",
                remedy="read all parts by the same study",
            )


def _parts(count: int) -> str:
    return f"{count:,} part{'s' * (count != 1)}"
