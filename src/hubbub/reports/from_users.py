"""Users' lists of (mechanism, output) pairs, turned into columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import OutputError, ReportsError, shorten
from hubbub.domains import Domain
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import encode_each


class Gathered:
    """Users' lists, one column for each mechanism, so that outputs are checked and encoded by the batch."""

    def __init__(self) -> None:
        self._columns: dict[Mechanism, tuple[list[object], list[int]]] = {}
        # Comparing mechanisms looks at whole domains; most lists name the same few objects again and again.
        self._seen: dict[int, tuple[Mechanism, tuple[list[object], list[int]]]] = {}
        self.count = 0

    def add(self, number: int, pairs: Sequence[tuple[Mechanism, object]]) -> None:
        """Take one user's list."""
        where = f"Reports.from_users, user {number}"
        try:
            sent = [(mechanism, output) for mechanism, output in pairs]
        except (TypeError, ValueError):
            raise ReportsError(
                "a user's report is not a list of pairs",
                where=where,
                got=shorten(pairs),
                expected="[(mechanism, output), ...]",
                remedy="give one list of pairs for each user",
            ) from None
        if not sent:
            raise ReportsError(
                "a user sent nothing",
                where=where,
                got="an empty list",
                expected="at least one (mechanism, output) pair",
                remedy="leave users without outputs out on purpose",
            )
        for mechanism, output in sent:
            if id(mechanism) not in self._seen:
                check_mechanism(mechanism, where)
                self._seen[id(mechanism)] = mechanism, self._columns.setdefault(mechanism, ([], []))
            outputs, numbers = self._seen[id(mechanism)][1]
            outputs.append(output)
            numbers.append(number)
        self.count = number + 1

    def domain(self) -> Domain:
        """Return the domain that all mechanisms share."""
        if not self._columns:
            raise no_reports("Reports.from_users")
        domain = next(iter(self._columns)).domain
        for mechanism in self._columns:
            if mechanism.domain != domain:
                raise ReportsError(
                    "mechanisms over different domains",
                    where="Reports.from_users",
                    got=shorten(mechanism.domain, 100),
                    expected=shorten(domain, 100),
                    remedy="all reports of one study are over one domain",
                )
        return domain

    def encoded(self) -> dict[Mechanism, Codes]:
        """Return each mechanism's outputs, encoded."""
        return {mechanism: self._encode(mechanism) for mechanism in self._columns}

    def users(self) -> dict[Mechanism, Positions]:
        """Return the number of the user who sent each output."""
        return {mechanism: np.array(numbers) for mechanism, (_, numbers) in self._columns.items()}

    def _encode(self, mechanism: Mechanism) -> Codes:
        outputs, numbers = self._columns[mechanism]

        def tell(place: int, error: OutputError) -> OutputError:
            return told_of(f"user {numbers[place]}, {type(mechanism).__name__}", error)

        return encode_each(mechanism.output_space, outputs, tell)


def told_of(where: str, error: OutputError) -> OutputError:
    """Return the same error, told of another place."""
    return OutputError(error.what, where=where, got=error.got, expected=error.expected, remedy=error.remedy)


def no_reports(where: str, got: str = "0 users") -> ReportsError:
    """Return the error for reports of nobody."""
    return ReportsError(
        "there are no reports",
        where=where,
        got=got,
        expected="at least one user",
        remedy="check that the file or list holds what you meant to read",
    )


def check_mechanism(mechanism: object, where: str) -> None:
    """Refuse what is not a mechanism, or cannot be compared with others."""
    if not isinstance(mechanism, Mechanism):
        raise ReportsError(
            "not a mechanism",
            where=where,
            got=shorten(mechanism),
            expected="a hubbub mechanism",
            remedy="pass the mechanism that users ran, for example hubbub.RandomizedResponse(domain, epsilon)",
        )
    if type(mechanism).__hash__ is None:
        raise ReportsError(
            "a mechanism cannot be compared with others",
            where=where,
            got=f"{type(mechanism).__name__}, which has no hash",
            expected="a frozen value",
            remedy="write @dataclass(frozen=True) above the class",
        )
