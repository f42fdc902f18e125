"""The unrelated question without a known prevalence: two samples, asked with different probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.core import validation
from hubbub.core.errors import SettingError, shorten
from hubbub.domains import Categories
from hubbub.estimators.api import estimate
from hubbub.mechanisms import Matrix
from hubbub.mechanisms.parameters import Probability, check_probability
from hubbub.reports import Reports

WHERE = "unrelated_prevalence"
PAIRS = {"both": (1, 1), "sensitive": (1, 0), "innocuous": (0, 1), "neither": (0, 0)}  # to which questions it is yes


@dataclass(frozen=True)
class UnrelatedPrevalence:
    """The likeliest sensitive share and prevalence of the innocuous attribute, with their standard errors.

    Attributes
    ----------
    sensitive : float
        The share of people whose answer to the sensitive question is yes.
    sensitive_error : float or None
        Its standard error; None if either share is 0 or 1, where it says nothing.
    prevalence : float
        The share of people whose answer to the innocuous question is yes.
    prevalence_error : float or None
        Its standard error; None if either share is 0 or 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> result = hb.unrelated_prevalence(yes=[240, 310], users=[600, 600], p=[0.7, 0.3])
    >>> round(result.sensitive, 4), round(result.sensitive_error, 4)
    (0.3125, 0.0382)
    """

    sensitive: float
    sensitive_error: float | None
    prevalence: float
    prevalence_error: float | None


def unrelated_prevalence(yes: Sequence[int], users: Sequence[int], p: Sequence[Probability]) -> UnrelatedPrevalence:
    """Estimate a sensitive share and an unknown prevalence from two samples (Greenberg et al. 1969).

    Sample i is asked the sensitive question with probability ``p_i``, otherwise the innocuous one, so that a share of
    ``p_i s + (1 - p_i) t`` says yes, with s the sensitive share and t the prevalence. With ``r_i`` the observed shares,
    maximum likelihood is::

        s = ((1 - p_2) r_1 - (1 - p_1) r_2) / (p_1 - p_2),   t = (p_1 r_2 - p_2 r_1) / (p_1 - p_2)

    if both are between 0 and 1, with variances that follow from ``r_i (1 - r_i) / n_i``. Otherwise it is on the border.

    Parameters
    ----------
    yes : pair of int
        How many people said yes, in each of the two samples.
    users : pair of int
        How many people were asked, in each of the two samples.
    p : pair of float or Fraction
        The probability of the sensitive question in each sample; with 0 everybody is asked the innocuous one.

    Returns
    -------
    UnrelatedPrevalence
        Both shares with their standard errors.

    Raises
    ------
    SettingError
        If an argument is not a pair of numbers, more people said yes than were asked, or both samples have the same p.
    MechanismError
        If an entry of `p` is not a probability.

    Examples
    --------
    >>> import hubbub as hb
    >>> result = hb.unrelated_prevalence(yes=[240, 310], users=[600, 600], p=[0.7, 0.3])
    >>> round(result.sensitive, 4), round(result.prevalence, 4)
    (0.3125, 0.6042)
    """
    for name, pair in (("yes", yes), ("users", users), ("p", p)):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise validation.wrong(pair, name, WHERE, "two numbers, one for each sample")
    asked = [validation.whole(count, "users", WHERE) for count in users]
    said = [validation.whole(count, "yes", WHERE, at_least=0) for count in yes]
    first, second = (check_probability(each, WHERE, "p") for each in p)
    for count, most in zip(said, asked, strict=True):
        if count > most:
            raise validation.wrong(count, "yes", WHERE, f"at most as many as were asked: {most}")
    if first == second:
        raise SettingError(
            "two samples with the same p are one sample",
            where=f"{WHERE}(p=)",
            got=shorten(p),
            expected="two different probabilities",
            remedy="ask the second sample with another p, or use UnrelatedQuestion with a known prevalence",
        )
    shares = [count / most for count, most in zip(said, asked, strict=True)]
    weights = [  # of the two observed shares, in the sensitive share and in the prevalence
        [float(weight / (first - second)) for weight in row] for row in ((1 - second, first - 1), (-second, first))
    ]
    found = [math.fsum(weight * share for weight, share in zip(row, shares, strict=True)) for row in weights]
    if not all(0 < share < 1 for share in found):
        sensitive, prevalence = _on_the_border(said, asked, (float(first), float(second)))
        return UnrelatedPrevalence(sensitive, None, prevalence, None)
    variances = [share * (1 - share) / most for share, most in zip(shares, asked, strict=True)]
    errors = [
        math.sqrt(math.fsum(weight**2 * variance for weight, variance in zip(row, variances, strict=True)))
        for row in weights
    ]
    return UnrelatedPrevalence(found[0], errors[0], found[1], errors[1])


def _on_the_border(said: Sequence[int], asked: Sequence[int], p: tuple[float, float]) -> tuple[float, float]:
    """Return the likeliest shares as those of a distribution over the pairs of true answers."""
    domain = Categories(list(PAIRS))
    samples = []
    for count, most, chance in zip(said, asked, p, strict=True):
        yes = [chance * sensitive + (1 - chance) * innocuous for sensitive, innocuous in PAIRS.values()]
        mechanism = Matrix(domain, ["yes", "no"], [[share, 1 - share] for share in yes])
        samples.append(Reports.from_counts(mechanism, [count, most - count]))
    both, sensitive, innocuous, _ = estimate(samples[0] + samples[1], "mle").probabilities.tolist()
    return both + sensitive, both + innocuous
