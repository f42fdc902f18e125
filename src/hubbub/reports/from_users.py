"""Users' lists of (mechanism, output) pairs, collected into columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import OutputError, ReportsError, restated, shorten
from hubbub.domains import Domain
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import encode_each
from hubbub.reports.validation import check_mechanism, no_reports

Column = tuple[list[object], list[int]]  # outputs of one mechanism, and the number of the user who sent each


def encoded_users(
    users: Iterable[Sequence[tuple[Mechanism, object]]],
) -> tuple[Domain, dict[Mechanism, Codes], dict[Mechanism, Positions], int]:
    """Return the domain, the encoded outputs of each mechanism, the user who sent each, and how many users there are.

    There is one column for each mechanism, so that each column is checked and encoded at once.
    """
    columns: dict[Mechanism, Column] = {}
    # Comparing mechanisms compares whole domains, but most lists repeat the same few objects.
    by_identity: dict[int, tuple[Mechanism, Column]] = {}
    number = -1
    for number, pairs in enumerate(users):
        where = f"Reports.from_users, user {number}"
        for mechanism, output in _checked_pairs(pairs, where):
            if id(mechanism) not in by_identity:
                check_mechanism(mechanism, where)
                by_identity[id(mechanism)] = mechanism, columns.setdefault(mechanism, ([], []))
            outputs, numbers = by_identity[id(mechanism)][1]
            outputs.append(output)
            numbers.append(number)
    domain = _common_domain(columns)
    encoded = {mechanism: _encode(mechanism, column) for mechanism, column in columns.items()}
    return domain, encoded, {mechanism: np.array(numbers) for mechanism, (_, numbers) in columns.items()}, number + 1


def _checked_pairs(pairs: Sequence[tuple[Mechanism, object]], where: str) -> list[tuple[Mechanism, object]]:
    """Return what one user sent."""
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
    return sent


def _common_domain(mechanisms: Iterable[Mechanism]) -> Domain:
    """Return the domain that all mechanisms share."""
    domains = [mechanism.domain for mechanism in mechanisms]
    if not domains:
        raise no_reports("Reports.from_users")
    for domain in domains:
        if domain != domains[0]:
            raise ReportsError(
                "the mechanisms are over different domains",
                where="Reports.from_users",
                got=shorten(domain, 100),
                expected=shorten(domains[0], 100),
                remedy="build reports over each domain separately",
            )
    return domains[0]


def _encode(mechanism: Mechanism, column: Column) -> Codes:
    outputs, numbers = column

    def at_user(position: int, error: OutputError) -> OutputError:
        return restated(error, OutputError, where=f"user {numbers[position]}, {type(mechanism).__name__}")

    return encode_each(mechanism.output_space, outputs, at_user)
