"""`identify`: whether the reports determine one distribution, and what is left open if they do not.

Three questions, from the general to the practical:

* **identifiable**: do any two distributions give the observed patterns different probabilities (the condition of the
  paper's Theorem mlunique)? It is about the mechanisms and which patterns occurred, not about how often.
* **unique**: does the likelihood of these reports have one maximum? Identifiable implies unique, not the other way
  round: values that have probability 0 at every maximum may be indistinguishable from others.
* **practical**: would this many users show the difference? For a direction v with sum 0 and sum of absolute values 2
  (one unit of mass exchanged) the information per user is I(v) = sum_i q_i ((v G)_i / f_i)^2 at the maximum. Moving
  mass m along v changes the deviance by about n m^2 I(v), so that m = 1.96 / sqrt(n I(v)) is the least that is noticed
  at 95%. If that is 1 or more, even a complete exchange would go unnoticed.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from hubbub.channels import Channel, ConcatenatedChannel, DiagonalPlusConstantChannel
from hubbub.core.arrays import Positions, frozen
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators.validation import check_reports
from hubbub.identifiability.all_maxima import MAX_GAP_SEARCHED, Maxima, all_maxima, find_maximum, undecided
from hubbub.identifiability.rank import (
    has_full_rank,
    invisible_direction,
    least_visible_direction,
    pair_direction,
    plausible_values,
)
from hubbub.identifiability.result import Identification
from hubbub.likelihood import Likelihood, Point
from hubbub.reports import Reports

MAX_GAP_IF_UNIQUE = 1e-10  # enough if the maximum is known to be unique, as for `worst_case_shift`
MAX_SEARCHED_ENTRIES = 2e9  # of the channel: beyond, a maximum takes minutes and has too many values to decide anything
APPROXIMATE = "Approximate: only sums of bits were kept, and bits are treated as independent."


@stepwise
def identify(reports: Reports) -> Generator[Progress, None, Identification]:
    r"""Return whether the reports determine one distribution, and what they leave open if they do not.

    Two distributions :math:`\theta` and :math:`\theta'` cannot be told apart if all observed patterns are as likely
    under one as under the other: :math:`(\theta - \theta') G = 0`, with G the likelihood of each pattern (columns)
    given each value (rows).

    Parameters
    ----------
    reports : Reports
        The reports to learn from.

    Returns
    -------
    Identification
        With `identifiable`, `unique`, `dimension`, `lower`, `upper`, `practical` and `explain()`.

    Raises
    ------
    EstimateError
        If `reports` are not reports, or are stored on a cluster: ``reports.merged()`` brings them here.

    Examples
    --------
    >>> import hubbub as hb
    >>> districts = hb.Cloaking(hb.Categories(["a", "b", "c"]), ["north", "north", "south"])
    >>> answer = hb.identify(hb.Reports.from_counts(districts, {"north": 60, "south": 40}))
    >>> answer.unique, answer.dimension, answer.upper
    (False, 1, array([0.6, 0.6, 0.4]))
    >>> print(answer.explain())
    Many distributions fit equally well: a family of dimension 1. The reports cannot tell 'a' from 'b': people could
    move between them, and every report would be as likely as before. Shares that fit equally well: 'a' from 0% to
    60.0%, 'b' from 0% to 60.0%.
    """
    check_reports(reports, "identify", filter_sums=True)
    return limit_threads_per_step(_identify(reports), reports.weights.size * len(reports.domain))


def _identify(reports: Reports) -> Generator[Progress, None, Identification]:
    likelihood, size = Likelihood.of(reports), len(reports.domain)
    unreported = _unreported_values(likelihood)
    notes = [APPROXIMATE] * reports.approximate
    yield Progress(0, 1, "checking which values the patterns distinguish")
    even = np.full(size, 1.0 / size)
    identifiable = has_full_rank(reports, np.arange(size), even) if unreported is None else unreported.size <= 1
    if identifiable is None:
        patterns = f"{size:,} values and {reports.weights.size:,} patterns"
        notes.append(f"Whether any two distributions can be distinguished was not decided: {patterns} are too many.")
    if unreported is None and not identifiable and likelihood.channel.entries > MAX_SEARCHED_ENTRIES:
        maxima = undecided(even, np.arange(size), reports.weights.size)
    else:
        point = yield from find_maximum(likelihood, MAX_GAP_IF_UNIQUE if identifiable else MAX_GAP_SEARCHED)
        if identifiable:
            maxima = Maxima.single(point.theta)
        elif unreported is not None:
            maxima = _maxima_of_spikes(point, unreported)
        else:
            maxima = yield from all_maxima(reports, point)
    notes.append(maxima.reason)
    yield Progress(0, 1, "looking for the values that are hardest to distinguish")
    best, direction = likelihood.at(maxima.theta), maxima.direction
    practical, blind = None, None
    if identifiable is False or maxima.unique is False:
        identifiable, practical, blind = False, False, math.inf
        if direction is None:
            direction = (
                invisible_direction(reports, maxima.theta)
                if unreported is None
                else pair_direction(size, unreported[:2])
            )
    elif identifiable and plausible_values(best).size <= 1:
        practical = True  # there is nothing to exchange
    else:
        least_visible = least_visible_direction(reports, best) if identifiable else None
        if least_visible is None:
            notes.append("Which values are the hardest to distinguish was not computed: there are too many values.")
        else:
            direction, blind = least_visible
            practical = blind < 1.0
    return Identification(
        domain=reports.domain,
        users=reports.users,
        identifiable=identifiable,
        unique=maxima.unique,
        dimension=maxima.dimension,
        lower=frozen(maxima.lower.copy()),
        upper=frozen(maxima.upper.copy()),
        practical=practical,
        blind=blind,
        direction=None if direction is None else frozen(direction),
        gap=best.gap,
        exact=maxima.exact,
        reason=" ".join(note for note in notes if note),
    )


def _unreported_values(likelihood: Likelihood) -> Positions | None:
    """Return the values that no pattern points at, if each pattern points at one value; None for other channels.

    With likelihood a at a pattern's own value and b at all others, (v G)_i = (a - b) v_x + b sum v: two distributions
    look the same exactly if they agree at all reported values. At most one value may be missing for rank.
    """
    channel, sent = likelihood.channel, likelihood.sent
    parts: tuple[Channel, ...] = channel.parts if isinstance(channel, ConcatenatedChannel) else (channel,)
    missing, first, rising = np.ones(channel.values, dtype=bool), 0, True
    for part in parts:
        if not isinstance(part, DiagonalPlusConstantChannel) or part.excess == 0.0:
            return None
        rising &= part.excess > 0.0
        pointing = sent[first : first + part.patterns].copy()
        if part.inside is not None:
            pointing &= part.inside
        missing[part.peaks[pointing]] = False
        first += part.patterns
    positions = np.flatnonzero(missing)
    return positions if rising or positions.size <= 1 else None  # `_maxima_of_spikes` needs a > b


def _maxima_of_spikes(point: Point, unreported: Positions) -> Maxima:
    """Return the maxima if each pattern is likeliest at its own value.

    D is larger at a reported value than at the others: these are below 1 and have no mass in any maximum, unless no
    value at all was reported (of those that are kept), and every distribution fits equally well.
    """
    theta = point.theta
    if unreported.size < theta.size:
        return Maxima.single(theta)
    direction = pair_direction(theta.size, unreported[:2])
    nothing, everything = np.zeros_like(theta), np.ones_like(theta)
    return Maxima(theta, nothing, everything, unique=False, dimension=theta.size - 1, direction=direction)
