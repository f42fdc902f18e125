"""What the crowd said, in one or two sentences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, plain
from hubbub.core.text import percent, plural, quoted, whole_percent
from hubbub.domains import Domain
from hubbub.intervals.set_intervals import SetShares

ALIKE = 1e-6  # a difference between two shares, relative to them, that is no difference


class ShownValue(NamedTuple):
    """An estimate with its intervals."""

    domain: Domain
    users: int
    share: Floats
    low: Floats  # NaN: not known
    high: Floats
    level: float
    sets: SetShares | None

    def span(self, place: int) -> str:
        """Return the interval of a value, in brackets; nothing where it is not known."""
        if np.isnan(self.low[place]):
            return ""
        return f" (between {percent(self.low[place])} and {percent(self.high[place])})"


def summary_of(shown: ShownValue) -> str:
    """Return the largest values, the middle of a line, or where half of a map's people are."""
    told = {"map": _of_map, "line": _of_line, "bars": _of_categories}[shown.domain.chart](shown)
    ranged = "between " in told  # where the estimate is even, or certain, no range is told
    return f"{told} Ranges hold the truth with {whole_percent(shown.level)} confidence." if ranged else told


def _of_categories(shown: ShownValue) -> str:
    order = np.argsort(-shown.share, kind="stable")
    first, title = int(order[0]), shown.domain.title
    alike = _alike(shown.share)
    start = f"Among {plural(shown.users, 'user')}, "
    if alike > 1:
        two = f"{quoted(title(first))} and {quoted(title(int(order[1])))}"
        who = two if alike == 2 else f"{alike:,} answers"
        told = f"{start}{who} are equally common in the estimate, with about {percent(shown.share[first])} each"
        return told + (", and no other is more common." if alike < order.size else ".")
    told = f"{start}{quoted(title(first))} is the most common answer, with about "
    told += f"{percent(shown.share[first])} of them{shown.span(first)}"
    if order.size == 1 or shown.share[order[1]] <= 0.0:
        return told + "."
    second = int(order[1])
    told += f", before {quoted(title(second))} with {percent(shown.share[second])}{shown.span(second)}."
    if shown.low[first] < shown.high[second]:
        told += " The two ranges overlap: which of the two is more common is not settled by these alone."
    return told


def _alike(share: Floats) -> int:
    """Return how many values have the largest share, up to rounding."""
    return int(np.count_nonzero(share >= float(share.max()) * (1.0 - ALIKE)))


def _of_line(shown: ShownValue) -> str:
    upto = np.cumsum(shown.share)
    quarter, middle, last = (_first(upto, share) for share in (0.25, 0.5, 0.75))
    told = f"At least half of the {plural(shown.users, 'user')} are at {_at(shown.domain, middle)} or below"
    if shown.sets is not None:
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + shown.level / 2))
        sums = np.cumsum(np.cumsum(shown.sets.matrix, axis=0), axis=1)
        around = np.clip(np.cumsum(shown.sets.centre), 0.0, 1.0)
        wide = reach * np.sqrt(np.maximum(0.0, np.diag(sums)))
        low, high = _first(around + wide, 0.5), _first(around - wide, 0.5)
        first, final = _at(shown.domain, low), _at(shown.domain, high)
        if low == high == middle:
            told += " (no other middle is plausible)"
        elif low <= middle <= high:
            told += f" (between {first} and {final})"
        else:  # the method smooths, or the reports do not fit: both are told
            told += f" (the reports alone put it {'at ' + first if low == high else f'between {first} and {final}'})"
    if quarter == last:
        return f"{told}; all of the middle half are there."
    return f"{told}; the middle half lies from {_at(shown.domain, quarter)} to {_at(shown.domain, last)}."


def _first(upto: Floats, share: float) -> int:
    """Return the first place at which a distribution function reaches a share."""
    return min(int(np.argmax(upto >= share - 1e-12)) if (upto >= share - 1e-12).any() else upto.size, upto.size - 1)


def _at(domain: Domain, place: int) -> str:
    if domain.intervals is not None:
        low, high = domain.intervals[place]
        return f"{low:g}–{high:g}" if low >= 0 else f"[{low:g}, {high:g}]"
    return str(plain(domain.labels[place]))


def _of_map(shown: ShownValue) -> str:
    order = np.argsort(-shown.share, kind="stable")
    many = _first(np.cumsum(shown.share[order]), 0.5) + 1
    first = int(order[0])
    cells = plural(len(shown.domain), "cell")
    told = f"At least half of the {plural(shown.users, 'user')} are in {many:,} of the {cells}."
    alike = _alike(shown.share)
    if alike > 1:
        return f"{told} The busiest are {alike:,} cells with about {percent(shown.share[first])} each."
    busiest = f"{quoted(shown.domain.title(first))} with about {percent(shown.share[first])}{shown.span(first)}"
    return f"{told} The busiest is {busiest}."
