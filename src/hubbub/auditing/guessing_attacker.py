"""`attacker`: how well one person's value is guessed from the person's reports."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import numpy as np

from hubbub.auditing.attacker_result import Attacker
from hubbub.auditing.guess_measures import measure_guesses, prior_distance
from hubbub.client import as_whole
from hubbub.core import validation
from hubbub.core.arrays import Floats, as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.mechanisms import Mechanism
from hubbub.sampling import Randomness

UNIFORM = "uniform"
DEFAULT_LEVEL = 0.95
MAX_REPORTS = 1_000


@stepwise
def attacker(
    mechanism: Mechanism,
    *,
    prior: object = UNIFORM,
    reports_per_user: int = 1,
    level: float = DEFAULT_LEVEL,
    rng: Randomness = None,
) -> Generator[Progress, None, Attacker]:
    r"""Return how well somebody who knows how values are spread guesses one person's value from the person's reports.

    Epsilon bounds what a report tells in the worst case; these numbers say what it tells on average, to whoever knows
    the mechanism and the prior :math:`\pi`:

    - Bayes vulnerability, how often the likeliest value is the true one: :math:`\max_x \pi_x` before, and
      :math:`\sum_z \max_x \pi_x P(z | x)` after the reports z; their ratio is the multiplicative Bayes leakage, and its
      logarithm to base 2 the min-entropy leakage;
    - the expected distance between the truth and the guess that is nearest on average, on the domain's distances.

    They are exact where outputs can be listed, or sets of values have a formula; otherwise they are averages over
    simulated people, with an interval. For hashes the formula takes the hash to be random.

    Parameters
    ----------
    mechanism : Mechanism
        What the person runs.
    prior : str, array, mapping or Estimate, default "uniform"
        How the attacker believes values to be spread: "uniform", shares in the order of ``domain.labels``, {value:
        count}, or an estimate.
    reports_per_user : int, default 1
        How many reports about one value are known to be the person's; with memory they share it.
    level : float, default 0.95
        Level of the intervals of what is simulated.
    rng : int or numpy.random.Generator, optional
        A seed or generator for that; left out, a fixed seed.

    Returns
    -------
    Attacker
        The measures; `explain` puts them into sentences.

    Raises
    ------
    SettingError
        If an argument is not what it should be.
    MechanismError
        If values and reports are too many to simulate, or reports share a memory that is not hubbub's own.

    Examples
    --------
    >>> import hubbub as hb
    >>> steps = hb.TruncatedGeometric(hb.Integers(0, 9), epsilon=0.5)
    >>> once, often = hb.attacker(steps), hb.attacker(steps, reports_per_user=4)
    >>> [round(each.vulnerability, 3) for each in (once, often)]
    [0.32, 0.424]
    >>> round(once.prior_distance, 2), round(once.distance, 2), round(often.distance, 2)
    (2.5, 1.37, 0.77)
    """
    if not isinstance(mechanism, Mechanism):
        raise SettingError(
            "not a mechanism",
            where="attacker(mechanism)",
            got=shorten(mechanism),
            expected="a hubbub mechanism",
            remedy="pass the mechanism that the person runs, such as study.mechanisms['NAME']",
        )
    number = as_whole(reports_per_user)
    if number is None or not 1 <= number <= MAX_REPORTS:
        expected = f"a whole number from 1 to {MAX_REPORTS:,}"
        raise validation.wrong(reports_per_user, "reports_per_user", "attacker", expected, default="1")
    level = validation.level(level, "attacker")
    generator, _ = validation.generator(rng, "attacker")
    name, shares = read_prior(prior, mechanism.domain)
    found = yield from measure_guesses(mechanism, shares, number, level, generator)
    before = prior_distance(mechanism.domain, shares)
    return Attacker(
        name=type(mechanism).__name__,
        prior=name,
        reports_per_user=number,
        prior_vulnerability=float(shares.max()),
        vulnerability=max(found.vulnerability[0], float(shares.max())),
        prior_distance=before,
        distance=None if found.distance is None else found.distance[0],
        unit=mechanism.domain.unit,
        method=found.method,
        draws=found.draws,
        level=level,
        vulnerability_interval=found.vulnerability[1:],
        distance_interval=None if found.distance is None else found.distance[1:],
    )


def read_prior(prior: object, domain: Domain) -> tuple[str, Floats]:
    """Return the name of a prior, and its shares in the order of the domain's labels."""
    where = "attacker(prior=)"
    if isinstance(prior, str):
        validation.one_of(prior, [UNIFORM], "prior", "attacker", default="a uniform one")
        return prior, np.full(len(domain), 1.0 / len(domain))
    if isinstance(prior, Estimate):
        if prior.domain != domain:
            raise SettingError(
                "the estimate has another domain",
                where=where,
                got=shorten(prior.domain, 100),
                expected=shorten(domain, 100),
                remedy="pass an estimate over the mechanism's own domain",
            )
        prior = prior.probabilities
    if not isinstance(prior, Mapping):
        return "given", validation.distribution(prior, len(domain), where)
    counts = np.array([as_real(count) for count in prior.values()])
    good = np.isfinite(counts) & (counts >= 0)
    if not good.all() or not counts.sum() > 0:
        raise SettingError(
            "these are not counts",
            where=where,
            got=shorten(prior),
            expected="{value: count} with finite numbers, none of them negative and at least one positive",
            remedy="pass how many people hold each value; values left out count as 0",
        )
    shares = np.zeros(len(domain))
    np.add.at(shares, np.atleast_1d(domain.index(list(prior))), counts)
    return "counts", shares / shares.sum()
