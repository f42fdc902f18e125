"""Values without neighbours: maximum likelihood, shrunk towards equal shares or towards empirical Bayes.

The likelihood's maximum is the textbook answer, and the right one for two or three values. With more values it follows
the noise of each. Two simpler answers have less noise: equal shares, and the posterior means of empirical Bayes. Let D
be the deviance of a simple answer: twice the nats by which the maximum fits the reports better. If the simple answer
were right, D would be about the number of parameters that the maximum has beyond it. So the answer is, in the spirit of
James and Stein,

    simple + lambda (maximum - simple),     lambda = max(0, 1 - (c / D)^3),

where c is a little more than that number (for equal shares, values to which the maximum gives nothing do not count
unless values are many). Nothing is drawn at random, and the answer never leaves the region that the reports allow
(`allowed_region`): its own deviance is at most c, and c is at most what the region allows. Between equal shares and
empirical Bayes the likelihood ratio of the prior decides in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.estimators.auto import allowed_region as region
from hubbub.estimators.auto.empirical_bayes import PosteriorMeans, posterior_means
from hubbub.estimators.auto.share_evidence import ShareEvidence
from hubbub.estimators.auto.trivial_cases import MIN_CAUTIOUS_VALUES
from hubbub.likelihood import Likelihood

POWER = 3.0  # of c / D: the larger, the sooner the maximum is left alone
DEVIANCE_PER_PARAMETER = 1.35  # of the maximum beyond the simple answer...
FREE_PARAMETERS = 2.0  # ...except for the first ones, as in James and Stein: two or three values are never shrunk
MORE_PER_VALUE, FEW_VALUES = 0.5, 10.0  # where values are many, most of them at the border, shrink more
MIN_LIKELIHOOD_RATIO = 5.0  # of a prior against equal shares: by chance it is smaller in 95% of studies, or more
MIN_WEIGHT = 0.001  # of a distribution, to be part of the average...
MIN_MENTIONED_WEIGHT = 0.005  # ...and to be mentioned in the status
NAMES = {
    "equal_shares": "equal shares",
    "empirical_bayes": "empirical Bayes",
    "maximum_likelihood": "maximum likelihood",
}
DESCRIPTIONS = {
    "equal_shares": "equal shares: the reports do not show that any value is more frequent than another",
    "empirical_bayes": "empirical Bayes: each share is its posterior mean, given how the reports show shares to be "
    "distributed",
    "maximum_likelihood": "maximum likelihood: the reports are clear enough to be taken as they are",
}


@dataclass(frozen=True)
class Shrunk:
    """The answer, and how much of each of the three distributions it is made of."""

    probabilities: Floats
    equal_shares: float
    empirical_bayes: float
    maximum_likelihood: float

    @property
    def weights(self) -> dict[str, float]:
        """How much of each, ready for settings."""
        return {name: getattr(self, name) for name in DESCRIPTIONS}

    @property
    def chosen(self) -> str:
        """The distribution with the largest weight."""
        return NAMES[max(self.weights, key=lambda name: self.weights[name])]

    def explain(self) -> str:
        """Return one sentence: what the answer is, and why."""
        parts = {name: round(100 * weight) for name, weight in self.weights.items() if weight >= MIN_MENTIONED_WEIGHT}
        if len(parts) > 1:
            listed = [f"{NAMES[name]} ({percent}%)" for name, percent in parts.items()]
            return (
                f"an average of {' and '.join(listed)}: as far from maximum likelihood as the noise may have moved it"
            )
        (name,) = parts
        if name == "maximum_likelihood" and self.probabilities.size < MIN_CAUTIOUS_VALUES:
            return f"maximum likelihood: with {self.probabilities.size} values there is nothing to shrink"
        return DESCRIPTIONS[name]


def shrink(likelihood: Likelihood, maximum: Floats) -> Shrunk:
    """Shrink the maximum of the likelihood."""
    values = maximum.size
    uniform = np.full(values, 1.0 / values)
    even = _left(likelihood, uniform, maximum, region.parameters(maximum), values)
    share, means = 0.0, uniform
    if values >= MIN_CAUTIOUS_VALUES and (evidence := ShareEvidence.of(likelihood.channel, likelihood.weights)):
        found = _averaged(likelihood, maximum, posterior_means(evidence))
        chance = _ratio(MIN_LIKELIHOOD_RATIO, found.likelihood_ratio)
        if chance < 1.0:
            means, more = found.probabilities, values - 1.0 - found.parameters
            share = _counted((1.0 - chance) * _left(likelihood, means, maximum, more, values - found.parameters))
            even *= chance
    even = _counted(even)
    rest = 1.0 - even - share
    if rest == 1.0:
        return Shrunk(maximum, even, share, rest)
    answer = even * uniform + share * means + rest * maximum
    return Shrunk(answer / answer.sum(), even, share, rest)


def _averaged(likelihood: Likelihood, maximum: Floats, found: list[PosteriorMeans]) -> PosteriorMeans:
    """Average the posterior means under several priors, weighted by their deviance and parameters (Akaike)."""
    criteria = np.array(
        [region.deviance(likelihood, one.probabilities, maximum) + 2.0 * one.parameters for one in found]
    )
    weights = np.exp(-0.5 * (criteria - criteria.min()))
    weights /= weights.sum()
    return PosteriorMeans(
        np.asarray(sum(weight * one.probabilities for weight, one in zip(weights, found, strict=True))),
        found[0].likelihood_ratio,
        float(weights @ [one.parameters for one in found]),
    )


def _left(likelihood: Likelihood, simple: Floats, maximum: Floats, parameters: float, values: float) -> float:
    """Return 1 - lambda: how much of a simple answer is left, if the maximum has so many parameters more."""
    c = DEVIANCE_PER_PARAMETER * max(parameters - FREE_PARAMETERS, 0.0)
    c += MORE_PER_VALUE * max(values - FEW_VALUES, 0.0)
    return _ratio(min(c, region.max_deviance(maximum.size)), region.deviance(likelihood, simple, maximum))


def _counted(weight: float) -> float:
    """Return a weight, or 0 where it makes no difference: the maximum is then left exactly as it is."""
    return weight if weight >= MIN_WEIGHT else 0.0


def _ratio(limit: float, statistic: float) -> float:
    """Return min(1, (limit / statistic)^POWER)."""
    return 0.0 if limit == 0.0 else float((limit / max(statistic, limit)) ** POWER)
