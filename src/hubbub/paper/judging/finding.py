"""The finding about a claim: its verdict, and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.claims import Claim
from hubbub.paper.places import PAPER_USERS, PAPER_ZONE, Place

HOLDS = "holds"
EARLY = "holds only with early stopping"
FAILS = "does not hold"
OPEN = "not decided"
VERDICTS = (HOLDS, EARLY, FAILS, OPEN)


@dataclass(frozen=True)
class Finding:
    """A claim, the verdict on it, and what it rests on."""

    claim: Claim
    verdict: str
    measured: str  # one sentence, with medians and spread
    details: tuple[tuple[str, str], ...] = field(default=())  # what was compared, and what came out

    def document(self) -> dict[str, Any]:
        """Return all of it as texts, for JSON."""
        claim = self.claim
        return {
            "id": claim.id,
            "figure": claim.figure,
            "where": claim.where,
            "says": claim.says,
            "verdict": self.verdict,
            "measured": self.measured,
            "details": [{"name": name, "found": text} for name, text in self.details],
        }


def undecided(claim: Claim, why: str, details: tuple[tuple[str, str], ...] = ()) -> Finding:
    """Return the finding of a claim that cannot be judged, and why."""
    return Finding(claim, OPEN, why, details)


def spread(values: Floats, digits: int = 4) -> str:
    """Return the median, and the range if there is one: "0.244 (0.223 to 0.261)"."""
    middle = number(float(np.median(values)), digits)
    if len(values) == 1:
        return middle
    return f"{middle} ({number(float(values.min()), digits)} to {number(float(values.max()), digits)})"


def number(value: float, digits: int = 4) -> str:
    """Return a number with some digits, and no exponent where it can be helped.

    >>> number(0.45441), number(0.0), number(1.23456e-7)
    ('0.4544', '0', '1.2e-07')
    """
    if value == 0 or abs(value) >= 1e-4:
        return f"{value:.{digits}g}"
    return f"{value:.2g}"


def sentence_case(text: str) -> str:
    """Return a text that begins and ends as sentences do.

    >>> sentence_case("median 0.2")
    'Median 0.2.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def is_paper_data(place: Place) -> bool:
    """Return whether these are the paper's people, as far as one can tell: its grid, and as many to one percent."""
    same_grid = (place.grid.columns, place.grid.rows) == (PAPER_ZONE.columns, PAPER_ZONE.rows)
    return not place.synthetic and same_grid and abs(place.users - PAPER_USERS) <= PAPER_USERS / 100


def data_name(place: Place) -> str:
    """Return the name of the data, for sentences: nobody may take a synthetic city for a real one."""
    return f"{place.name} (synthetic)" if place.synthetic and "synthetic" not in place.name else place.name
