"""Users' lists of (mechanism, output) pairs, collected into columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import OutputError, ReportsError, shorten
from hubbub.domains import Domain
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import encode_each
from hubbub.reports.validation import check_mechanism, no_reports


class OutputColumns:
    """The outputs of all users, one column for each mechanism, so that each column is checked and encoded at once."""

    def __init__(self) -> None:
        self._columns: dict[Mechanism, tuple[list[object], list[int]]] = {}
        # Comparing mechanisms compares whole domains, but most lists repeat the same few objects.
        self._by_identity: dict[int, tuple[Mechanism, tuple[list[object], list[int]]]] = {}
        self.count = 0

    def add(self, number: int, pairs: Sequence[tuple[Mechanism, object]]) -> None:
        """Add one user's list."""
        where = f"Reports.from_users, user {number}"
        try:
            sent = [(mechanism, output) for mechanism, output in pairs]
        except (TypeError, ValueError):
            raise ReportsError(
                "a user's report is not a list of pairs",
                where=where,
                got=shorten(pairs),
                expected="[(mechanism, output), ...]",
                remedy="pass one list of pairs for each user",
            ) from None
        if not sent:
            raise ReportsError(
                "a user sent nothing",
                where=where,
                got="an empty list",
                expected="at least one (mechanism, output) pair",
                remedy="leave users without outputs out",
            )
        for mechanism, output in sent:
            if id(mechanism) not in self._by_identity:
                check_mechanism(mechanism, where)
                self._by_identity[id(mechanism)] = mechanism, self._columns.setdefault(mechanism, ([], []))
            outputs, numbers = self._by_identity[id(mechanism)][1]
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
                    "the mechanisms are over different domains",
                    where="Reports.from_users",
                    got=shorten(mechanism.domain, 100),
                    expected=shorten(domain, 100),
                    remedy="build reports over each domain separately",
                )
        return domain

    def encoded(self) -> dict[Mechanism, Codes]:
        """Return the encoded outputs of each mechanism."""
        return {mechanism: self._encode(mechanism) for mechanism in self._columns}

    def users(self) -> dict[Mechanism, Positions]:
        """Return the number of the user who sent each output."""
        return {mechanism: np.array(numbers) for mechanism, (_, numbers) in self._columns.items()}

    def _encode(self, mechanism: Mechanism) -> Codes:
        outputs, numbers = self._columns[mechanism]

        def at_user(position: int, error: OutputError) -> OutputError:
            return moved_error(error, f"user {numbers[position]}, {type(mechanism).__name__}")

        return encode_each(mechanism.output_space, outputs, at_user)


def moved_error(error: OutputError, where: str) -> OutputError:
    """Return the same error with another place."""
    return OutputError(error.what, where=where, got=error.got, expected=error.expected, remedy=error.remedy)
