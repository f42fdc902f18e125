"""Reports that are stored in parts, in this process or elsewhere: what a likelihood needs of them.

Reports that cannot be merged to few patterns (unary and hashed ones over large domains, several outputs for each user)
may fill many machines. EM, its acceleration and the certificate need only sums of the domain's size (`partial_sums`):
theta is sent to the reports, and the reports stay where they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add

from hubbub.core.arrays import Floats
from hubbub.core.errors import ReportsError, shorten
from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.likelihood.likelihood import Likelihood
from hubbub.likelihood.partial_sums import Sums
from hubbub.reports import Reports


class ScatteredReports(ABC):
    """Reports that are stored in parts, on other machines or in other processes.

    All reports of a user are in the same part, because the likelihood is a product over users.
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
        """The number of parts."""

    @abstractmethod
    def evaluate(self, theta: Floats) -> Sums:
        """Return the sums at `theta` over all parts, always added in the same order."""

    @abstractmethod
    def merged(self) -> Reports:
        """Return all reports merged in this process, where they fit."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({plural(self.users, 'user')}, {plural(self.parts, 'part')})"


class ReportsInParts(ScatteredReports):
    """Reports in parts that are all in this process: the simplest kind of scattered reports.

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
        """The number of parts."""
        return len(self._parts)

    def evaluate(self, theta: Floats) -> Sums:
        """Return the sums at `theta` over all parts, from the first to the last."""
        return reduce(add, (likelihood.at(theta).sums() for likelihood in self._likelihoods))

    def merged(self) -> Reports:
        """Return all parts merged."""
        return reduce(add, self._parts)


def check_parts(domains: Sequence[Domain], where: str) -> None:
    """Refuse an empty list of parts, and parts over different domains."""
    if not domains:
        raise ReportsError(
            "there are no parts",
            where=where,
            got="an empty list",
            expected="the reports of at least one user, in at least one part",
            remedy="check what was read, and what was filtered out",
        )
    for number, domain in enumerate(domains):
        if domain != domains[0]:
            raise ReportsError(
                "the parts are over different domains",
                where=f"{where}, part {number}",
                got=shorten(domain, 100),
                expected=f"{shorten(domains[0], 100)}, as in part 0",
                remedy="read all parts with the same study",
            )
