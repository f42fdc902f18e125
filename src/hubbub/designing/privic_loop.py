"""PRIVIC: collecting in cycles, each with the rate-distortion channel of what the cycles before have estimated.

Biswas and Palamidessi, "PRIVIC: a privacy-preserving method for incremental collection of location data", 2022. In
cycle t = 1, ..., N

1. the server computes the channel that minimises I + beta D for its estimate theta_(t-1) of the crowd
   (`blahut_arimoto`); theta_0 is uniform, or given;
2. other users than before report with that channel, once each;
3. the server estimates theta_t from these reports by the iterative Bayesian update.

Each user reports once, so nobody's epsilon adds up: each channel's is at most 2 beta per unit of distance, whatever the
estimate was. The number of cycles is fixed by the paper's experiments; `tol` stops earlier, once an estimate differs
from the one before by no more than that.

A channel depends on earlier users' reports, which are independent of the present ones given the channel. So the
likelihood of all cycles is the product of theirs, and reports of all cycles can be estimated together
(``pooled=True``); the authors' experiments use the last cycle's alone.

What one should know before using it: the channel with the least information sends few distinct outputs, often fewer
than there are values. Then several distributions explain the reports equally well however many users report, and no
estimator is consistent; `PrivicCycle.outputs` says how many there were. With ``updates=`` the iteration is stopped
early, as in the authors' experiments, and all outputs stay possible.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import DomainError, MechanismError, ReportsError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.designing.blahut_arimoto import (
    RateDistortion,
    blahut_arimoto,
    epsilon_per_distance,
    solve_rate_distortion,
)
from hubbub.domains import Domain
from hubbub.estimators import Estimate, estimate
from hubbub.mechanisms import Matrix, Mechanism
from hubbub.metrics import total_variation
from hubbub.reports import Reports

DEFAULT_CYCLES = 10  # of a tenth of the users each, as in the authors' experiments

Collect = Callable[[Mechanism], Reports]
Estimator = Callable[[Reports], Estimate]


@dataclass(frozen=True)
class PrivicCycle:
    """What one cycle sent out and got back.

    `design` is the channel's certificate; None in a first cycle whose mechanism was given. `epsilon` is what the
    mechanism realises per unit of distance, `change` the total variation between this estimate and the one before.
    """

    mechanism: Mechanism = field(repr=False)
    design: RateDistortion | None = field(repr=False)
    estimate: Estimate = field(repr=False)
    users: int
    outputs: int
    epsilon: float
    change: float


@dataclass(frozen=True)
class PrivicRun:
    """All cycles of `privic`.

    Attributes
    ----------
    beta : float
        The price of distance.
    cycles : tuple
        What each cycle sent out and got back: its `mechanism`, `design`, `estimate`, `users`, `outputs`, `epsilon` per
        unit of distance, and the `change` from the estimate before.
    settled : bool
        Whether the estimates came to rest within the tolerance; False if none was given.

    Examples
    --------
    >>> import numpy as np
    >>> import hubbub as hb
    >>> def collect(mechanism):
    ...     return hb.Reports.from_counts(mechanism, np.full(len(mechanism.outputs), 1_000))
    >>> run = hb.privic(hb.Integers(0, 2), 2.0, collect, cycles=1)
    >>> run.settled, run.epsilon <= 4, run.cycles[0].users == 1_000 * run.cycles[0].outputs
    (False, True, True)
    """

    beta: float
    cycles: tuple[PrivicCycle, ...]
    settled: bool

    @property
    def estimate(self) -> Estimate:
        """The estimate of the last cycle."""
        return self.cycles[-1].estimate

    @property
    def epsilon(self) -> float:
        """The largest epsilon per unit of distance that a user of any cycle has spent; at most 2 beta for channels."""
        return max(cycle.epsilon for cycle in self.cycles)


@stepwise
def privic(
    domain: Domain,
    beta: float,
    collect: Collect,
    *,
    cycles: int = DEFAULT_CYCLES,
    start: object = None,
    tol: float | None = None,
    updates: int | None = None,
    first: Mechanism | None = None,
    estimator: Estimator | None = None,
    pooled: bool = False,
) -> Generator[Progress, None, PrivicRun]:
    """Collect in PRIVIC's cycles: design a channel, `collect` reports with it, estimate, and design the next.

    ``privic.steps(...)`` yields progress.

    Parameters
    ----------
    domain : Domain
        The values, with distances.
    beta : float
        The price of distance: each channel's epsilon per unit of distance is at most 2 beta.
    collect : callable
        Gets each cycle's mechanism to the users of that cycle and returns their `Reports`, from devices or simulated.
        The users of a cycle must not have reported before.
    cycles : int, default 10
        How many cycles at most.
    start : array, optional
        What is known of the crowd before the first cycle; left out, equal shares.
    tol : float, optional
        Stop once an estimate differs from the one before by no more than this, in total variation.
    updates : int, optional
        Stop Blahut's and Arimoto's iteration after so many updates, as in the authors' experiments, instead of solving
        it.
    first : Mechanism, optional
        The mechanism of the first cycle, instead of a channel for `start`; the authors' experiments use planar noise.
    estimator : callable, optional
        Turns reports into an `Estimate`; left out, ``estimate(reports, "ibu")``.
    pooled : bool, default False
        Whether an estimate is about the reports of all cycles so far, instead of the last cycle's alone.

    Returns
    -------
    PrivicRun
        All cycles, with the estimate of the last one.

    Raises
    ------
    DomainError
        If `domain` is none.
    SettingError
        If `collect` is no function, or `beta`, `cycles`, `tol` or `start` has a wrong value.
    MechanismError
        If `first` has another domain.
    ReportsError
        If `collect` returns reports of another mechanism.

    Examples
    --------
    Users who are simulated, 20,000 in each of two cycles:

    >>> import numpy as np
    >>> import hubbub as hb
    >>> steps, truth, rng = hb.Integers(0, 4), [0.05, 0.4, 0.1, 0.15, 0.3], np.random.default_rng(1)
    >>> def collect(mechanism):
    ...     values = rng.choice(steps.labels, size=20_000, p=truth)
    ...     return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    >>> run = hb.privic(steps, 2.5, collect, cycles=2)
    >>> len(run.cycles), hb.total_variation(run.estimate.probabilities, truth) < 0.03
    (2, True)
    """
    where = "privic"
    _check_study(domain, collect)
    price, limit = validation.positive(beta, "beta", where), validation.whole(cycles, "cycles", where)
    if tol is not None:
        tol = validation.positive(tol, "tol", where)
    if first is not None and first.domain != domain:
        raise MechanismError(
            "the first mechanism has another domain",
            where="privic(first=)",
            got=first.domain.describe(),
            expected=domain.describe(),
            remedy="build it over the domain that is passed",
        )
    everything = np.arange(len(domain))
    apart = domain.distances_between(everything, everything)
    shares = _start(start, len(domain))
    infer = _by_ibu if estimator is None else estimator
    done: list[PrivicCycle] = []
    mechanism: Mechanism
    gathered: Reports | None = None
    while len(done) < limit:
        yield Progress(len(done), limit, f"cycle {len(done) + 1}")
        design: RateDistortion | None = None
        if first is not None and not done:
            mechanism = first
        else:
            design = _design(shares, apart, price, updates)
            mechanism = Matrix(domain, domain.labels[design.outputs], design.channel)
        reports = _checked(collect(mechanism), mechanism)
        gathered = reports if gathered is None or not pooled else gathered + reports
        result = infer(gathered)
        table = mechanism.matrix()
        change = total_variation(shares, result.probabilities)
        epsilon = epsilon_per_distance(table, apart)
        done.append(PrivicCycle(mechanism, design, result, reports.users, table.shape[1], epsilon, change))
        shares = result.probabilities
        if tol is not None and change <= tol:
            return PrivicRun(price, tuple(done), settled=True)
    return PrivicRun(price, tuple(done), settled=False)


def _check_study(domain: object, collect: object) -> None:
    if not isinstance(domain, Domain):
        expected, remedy = "a domain, such as hb.Grid(6, 6)", "build the domain first; of a study it is study.domain"
        raise DomainError("not a domain", where="privic(domain)", got=shorten(domain), expected=expected, remedy=remedy)
    if not callable(collect):
        expected = "a function that gets a mechanism and returns its Reports"
        remedy = "write a function that hands the mechanism to a cycle's users and collects what they send"
        raise validation.wrong(collect, "collect", "privic", expected, remedy=remedy)


def _start(start: object, values: int) -> Floats:
    return np.full(values, 1.0 / values) if start is None else validation.distribution(start, values, "privic(start=)")


def _by_ibu(reports: Reports) -> Estimate:
    return estimate(reports, "ibu")


def _design(shares: Floats, apart: Floats, beta: float, updates: int | None) -> RateDistortion:
    if updates is None:
        return solve_rate_distortion(shares, apart, beta)
    return blahut_arimoto(shares, apart, beta, tol=0.0, max_iter=updates)


def _checked(reports: object, mechanism: Mechanism) -> Reports:
    """Return what was collected, if it is reports of that mechanism alone: another would have another epsilon."""
    if isinstance(reports, Reports) and all(sent == mechanism for sent in reports.mechanisms):
        return reports
    raise ReportsError(
        "the reports of a cycle do not come from its mechanism",
        where="privic(collect=)",
        got=shorten(reports),
        expected="Reports of the mechanism that collect was called with",
        remedy="return Reports.from_counts(mechanism, counts) or Reports.from_outputs(mechanism, outputs)",
    )
