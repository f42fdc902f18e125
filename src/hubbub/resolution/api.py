"""`resolve`: the finest division of the values whose shares the reports tell."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import Estimate
from hubbub.estimators import estimate as estimate_shares
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports, refuse_weights
from hubbub.intervals import NoSetShares, set_shares
from hubbub.intervals.api import APPROXIMATE
from hubbub.intervals.set_intervals import MAX_MATRIX_VALUES
from hubbub.reports import Reports
from hubbub.resolution.group_division import group_pieces
from hubbub.resolution.halves import profile_pieces, split_users
from hubbub.resolution.lattice import Lattice
from hubbub.resolution.lattice_division import lattice_pieces
from hubbub.resolution.pieces import Piece, is_told, shown_ends
from hubbub.resolution.result import WORDS, Resolution, make_part
from hubbub.sampling import Randomness

METHODS = ("family", "halves")
# Two users more for each output, after Agresti and Coull, as the bounds reach far into the tails: with 10 users for
# each of 100 outputs, some bound failed without them in 41 of 60 studies of two bumps on a line, and with them in none.
SPARE_USERS = 2.0
MAX_RESOLVED_VALUES = MAX_MATRIX_VALUES  # whose errors' covariance can be written out
EXPECTED_RELATIVE = "a number between 0 and 1, such as 0.5 for intervals from half to one and a half of their middle"
CONTRADICTION = (
    "No distribution agrees with all bounds: either the reports do not fit the study (fit_test), or this is one of the "
    "rare studies whose bounds do not hold."
)
LEFT_OUT = (
    "Reports by {kinds} are left out here, because their outputs are too many to list: parts may be coarser and "
    "intervals wider than need be."
)
REMEDY = "hubbub.interval gives the share of any {part} that you choose beforehand."


class _Division(NamedTuple):
    """Parts of the values, and what limits them."""

    pieces: list[Piece]
    note: str = ""
    divided: bool = True  # False where that was not even tried


@stepwise
def resolve(
    reports: Reports,
    relative: float = 0.5,
    level: float = 0.95,
    *,
    method: str = "family",
    estimate: Estimate | None = None,
    rng: Randomness = None,
) -> Generator[Any, None, Resolution]:
    """Divide the values into the finest parts whose shares the reports tell, and bound the rest.

    A line is divided into ranges, a map into connected areas, categories into groups. A part is told if its interval is
    above 0 and half the interval's width is at most `relative` of its middle. The intervals of all parts hold together
    with probability `level`, although the reports suggested the parts.

    ``method="family"`` bounds the shares of all ranges, rectangles or sets at once, by an estimate that is linear in
    the reports, and uses that probabilities are not negative (see the page on resolution).
    ``method="halves"`` chooses the parts by a random half of the users, and bounds them by profile
    intervals from the other half.

    Parameters
    ----------
    reports : Reports
        The reports to learn from.
    relative : float, default 0.5
        The largest half-width of a told interval, relative to its middle.
    level : float, default 0.95
        The probability with which all intervals hold together.
    method : {"family", "halves"}, default "family"
        How to choose and bound the parts, as above.
    estimate : Estimate, optional
        The estimate whose sums are shown; that of ``hubbub.estimate(reports)`` by default.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same division.

    Returns
    -------
    Resolution
        With `parts`, `to_frame()`, `plot()` and `explain()`.

    Raises
    ------
    SettingError
        If a keyword has a wrong value, or the estimate is over another domain.
    EstimateError
        If `reports` are not reports in this process, or have survey weights.

    Examples
    --------
    >>> import hubbub as hb
    >>> noise = hb.TruncatedGeometric(hb.Integers(1, 12), epsilon=0.5)
    >>> reports = hb.Reports.from_outputs(noise, noise.privatize([3, 3, 8, 9, 10] * 1_000, rng=1))
    >>> answer = hb.resolve(reports, estimate=hb.estimate(reports, "mle"))
    >>> print(answer.summary())
    These reports tell 3 ranges apart, and nothing is left.
    >>> [part.title for part in answer.parts]
    ['1 to 6', '7 to 8', '9 to 12']
    """
    check_reports(reports, "resolve")
    refuse_weights(reports, "resolve", "take reports.unweighted, or ask for intervals of ranges with hubbub.interval")
    relative = validation.share(relative, "relative", "resolve", expected=EXPECTED_RELATIVE)
    level = validation.level(level, "resolve")
    method = validation.one_of(method, METHODS, "method", "resolve", default="'family'")
    generator, _ = validation.generator(rng, "resolve")
    check_estimate(estimate, reports, "resolve")

    def steps() -> Generator[Any, None, Resolution]:
        shown = yield from shown_estimate(reports, estimate, "resolve")
        shares = shown.probabilities
        if len(reports.domain) == 1:
            division = _Division([Piece(np.zeros(1, dtype=np.int64), 1.0, 1.0)])
        elif method == "halves":
            division = yield from _by_halves(reports, relative, level, generator)
        else:
            yield Progress(0, 1, "resolving")
            division = yield from _by_family(reports, shares, relative, level, generator)
        if reports.approximate:
            division = division._replace(note=f"{division.note} {APPROXIMATE}".strip())
        return _resolution(reports, division, shares, relative, level, method)

    return limit_threads_per_step(steps(), reports.weights.size * len(reports.domain))


def _by_family(
    reports: Reports, shown: Floats, relative: float, level: float, rng: np.random.Generator
) -> Generator[Any, None, _Division]:
    """Return the division by bounds over a fixed family, and what limits it."""
    size = len(reports.domain)
    if size > MAX_RESOLVED_VALUES:
        return _undivided(reports, f"{size:,} values are too many for bounds on all of their parts")
    shares = yield from set_shares.steps(reports, shown, spare=SPARE_USERS, partly=True)
    if isinstance(shares, NoSetShares):
        return _undivided(reports, shares.reason)
    left_out = LEFT_OUT.format(kinds=shares.left_out) if shares.left_out else ""
    lattice = Lattice.of(reports.domain)
    if lattice is None:
        return _Division(group_pieces(shares, shown, relative, level, rng), left_out)
    pieces, consistent = yield from lattice_pieces(lattice, shares, shown, relative, level, rng)
    return _Division(pieces, left_out if consistent else f"{left_out} {CONTRADICTION}".strip())


def _undivided(reports: Reports, reason: str) -> _Division:
    """Return everything as one part, why, and what to ask instead."""
    remedy = REMEDY.format(part=WORDS[reports.domain.chart].part)
    whole = Piece(np.arange(len(reports.domain)), 1.0, 1.0)
    return _Division([whole], f"Nothing is divided, because {reason}. {remedy}", divided=False)


def _by_halves(
    reports: Reports, relative: float, level: float, rng: np.random.Generator
) -> Generator[Any, None, _Division]:
    """Return the division by one half of the users with bounds from the other half, and what limits it."""
    halves = split_users(reports, rng)
    if halves is None:
        return _undivided(reports, "the users cannot be split into two halves")
    guess = yield from estimate_shares.steps(halves[0])
    division = yield from _by_family(halves[0], guess.probabilities, relative, level, rng)
    pieces = yield from profile_pieces(halves[1], division.pieces, level, rng)
    return division._replace(pieces=pieces)


def _resolution(
    reports: Reports, division: _Division, shown: Floats, relative: float, level: float, method: str
) -> Resolution:
    """Return the parts with their estimates; the whole is no told part, although its share is known."""
    domain, parts, (pieces, note, divided) = reports.domain, [], division
    for piece in pieces:
        told = is_told(*shown_ends(piece, shown), relative) and len(pieces) > 1
        share = float(shown[piece.positions].sum())
        parts.append(make_part(domain, piece.positions, share, piece.low, piece.high, told=told))
    return Resolution(domain, tuple(parts), level, relative, method, note, divided)
