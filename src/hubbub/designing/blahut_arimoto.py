"""Rate-distortion channels: the least mutual information at a given expected distance, by Blahut's and Arimoto's rule.

Values x have the distribution pi, the distance from x to output z is d(x, z), and beta > 0 is the price of distance.
Among all channels the ones that minimise

    I(P) + beta D(P),    I = sum_xz pi_x P(z | x) log(P(z | x) / sum_y pi_y P(z | y)),
                         D = sum_xz pi_x P(z | x) d(x, z)

have, by varying beta, every point of the rate-distortion curve R(D) = min {I : expected distance at most D}. Such a
channel is P(z | x) = p_z exp(-beta d(x, z)) / S_x(p), S_x(p) = sum_z p_z exp(-beta d(x, z)), with output weights p that
minimise F(p) = - sum_x pi_x log S_x(p).

**The same problem as estimation.** -F is the mean log-likelihood of a mixture: "values" z with unknown shares p,
"patterns" x that were sent with frequencies pi, and g_zx = exp(-beta d(x, z)) for the probabilities. Blahut's and
Arimoto's iteration is EM (the iterative Bayesian update) on it,

    p_z <- p_z c_z,    c_z = sum_x pi_x exp(-beta d(x, z)) / S_x(p),

and their stopping rule is hubbub's certificate: F(p) - min F <= log max_z c_z. So the likelihood, the steps and the
certified solvers are those of estimation; no second implementation exists.

**What the gap proves.** I(P) + beta D(P) <= F(p), because I is measured against the channel's own outputs, and
R(D) >= min F - beta D for every D. Hence at the expected distance D(P) no channel has less than I(P) - gap.

**Epsilon.** For distances that obey the triangle inequality P(z | x) / P(z | y) is at most
exp(beta d(x, y)) S_y / S_x <= exp(2 beta d(x, y)): epsilon is at most 2 beta per unit of distance, whatever p is.

Blahut, "Computation of channel capacity and rate-distortion functions", 1972; Arimoto, "An algorithm for computing the
capacity of arbitrary discrete memoryless channels", 1972. Outputs whose weight is 0 are left out.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, as_floats, frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, map_steps, stepwise
from hubbub.likelihood import MIN_PLAIN_PROBABILITY, Likelihood, Point
from hubbub.solvers import Outcome, SolverProgress, em_step, gap_rule, iterate, maximise

DEFAULT_TOL_NATS = 1e-6
EXACT_TOL_NATS = 1e-9
SPARE_FACTOR = 100.0  # of the tolerance, for leaving idle outputs out
MAX_UPDATES = 100_000
DROPPED_WEIGHTS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)  # below which outputs are left out, if the certificate allows it


@dataclass(frozen=True)
class RateDistortion:
    """A channel with (almost) the least mutual information at its expected distance, and the proof.

    `channel` has a row for each value and a column for each of `outputs`, which are the columns of the distances whose
    weight is not 0. `information` is at most `gap` nats above what is possible at `distortion`; the gap includes
    rounding. `converged` is whether it is at most the tolerance that was asked for.
    """

    channel: Floats = field(repr=False)
    outputs: Positions = field(repr=False)
    weights: Floats = field(repr=False)
    beta: float
    information: float
    distortion: float
    gap: float
    iterations: int
    converged: bool
    solver: str

    @property
    def epsilon_bound(self) -> float:
        """What is known of epsilon per unit of distance before the channel is: 2 beta."""
        return 2.0 * self.beta

    @property
    def status(self) -> str:
        """How the computation ended, in a sentence."""
        ended = "converged" if self.converged else "stopped before the tolerance was reached"
        return f"{ended} after {self.iterations:,} iterations ({self.solver}); gap {self.gap:.1e} nats"


@stepwise
def blahut_arimoto(
    prior: object,
    distances: object,
    beta: float,
    *,
    tol: float = DEFAULT_TOL_NATS,
    max_iter: int = MAX_UPDATES,
    start: object = None,
) -> Generator[Progress, None, RateDistortion]:
    """Return the rate-distortion channel by Blahut's and Arimoto's iteration, stopped by their own bound.

    It stops once log max_z c_z <= `tol` (nats), or after `max_iter` updates of the output weights. These start from
    `start`, a distribution over the columns; left out, they are equal. With ``tol=0`` exactly `max_iter` updates are
    made, and no output is left out unless its weight is 0.

    >>> import numpy as np
    >>> found = blahut_arimoto([0.5, 0.5], 1.0 - np.eye(2), beta=np.log(3.0))
    >>> found.channel.round(4).tolist(), round(found.distortion, 4)
    ([[0.75, 0.25], [0.25, 0.75]], 0.25)
    """
    likelihood, costs, shares = _mixture(prior, distances, beta, "blahut_arimoto")
    weights = _start(start, costs.shape[1])
    tol, limit = _tolerance(tol, "blahut_arimoto"), validation.whole(max_iter, "max_iter", "blahut_arimoto", at_least=0)
    steps = iterate(likelihood.at(weights), em_step, gap_rule(tol), limit)
    outcome: Outcome[Point] = yield from map_steps(steps, _named)
    return _result(outcome, costs, shares, beta, tol, "Blahut-Arimoto")


@stepwise
def solve_rate_distortion(
    prior: object, distances: object, beta: float, *, tol: float = EXACT_TOL_NATS
) -> Generator[Progress, None, RateDistortion]:
    """Return the same channel by the solver of maximum likelihood: exact to `tol` where the iteration would crawl.

    Near the optimum the weights of outputs that end at 0 fall only like one over the number of updates; an interior
    point takes some 20 iterations whatever the size.

    >>> import numpy as np
    >>> found = solve_rate_distortion([0.7, 0.3], 1.0 - np.eye(2), beta=np.log(4.0))
    >>> round(found.distortion, 6), found.converged  # D = 1 / (1 + e^beta) whatever the prior is
    (0.2, True)
    """
    likelihood, costs, shares = _mixture(prior, distances, beta, "solve_rate_distortion")
    tol = _tolerance(tol, "solve_rate_distortion")
    # What an interior point leaves on idle outputs falls with its gap: a part of `tol` is kept for leaving them out.
    steps = maximise(likelihood, _start(None, costs.shape[1]), tol / SPARE_FACTOR, solver=None, max_iter=None)
    maximum = yield from map_steps(steps, _named)
    return _result(maximum.outcome, costs, shares, beta, tol, str(maximum.settings["solver"]))


def epsilon_per_distance(channel: Floats, apart: Floats) -> float:
    """Return the realised epsilon per unit of distance: the largest log-ratio of a column over the values' distance.

    `apart` holds the distances between the values, one row and one column for each. A ratio with 0 in one place alone
    is infinite. Values at distance 0 from each other must have equal rows, or epsilon is infinite.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(channel)
    largest = 0.0
    for row, near in zip(logs, apart, strict=True):
        with np.errstate(invalid="ignore"):
            ratios = row - logs
        ratios[np.isnan(ratios)] = 0.0  # impossible for both
        most = ratios.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(most > 0.0, most / near, 0.0)
        largest = max(largest, float(rates.max()))
    return largest


def _mixture(prior: object, distances: object, beta: float, where: str) -> tuple[Likelihood, Floats, Floats]:
    """Return the likelihood whose maximum the output weights are, the distances and the prior."""
    costs = as_floats(distances)
    if costs is None or costs.ndim != 2 or costs.size == 0 or not np.isfinite(costs).all() or (costs < 0).any():
        got = shorten(distances) if costs is None else f"shape {costs.shape}"
        raise SettingError(
            "not a table of distances",
            where=f"{where}(distances=)",
            got=got,
            expected="a row for each value, a column for each output, finite and at least 0",
            remedy="pass domain.distances_between(values, outputs)",
        )
    shares = validation.distribution(prior, costs.shape[0], f"{where}(prior=)")
    price = validation.positive(beta, "beta", where)

    def logs(values: slice | Positions) -> Floats:
        return -price * costs.T[:, values]

    channel = DenseChannel.from_logs(costs.shape[1], costs.shape[0], logs)
    return Likelihood(channel, shares, users=1), costs, shares


def _start(start: object, outputs: int) -> Floats:
    if start is None:
        return np.full(outputs, 1.0 / outputs)
    return validation.distribution(start, outputs, "blahut_arimoto(start=)")


def _tolerance(tol: float, where: str) -> float:
    if isinstance(tol, int | float) and 0.0 <= tol < math.inf:
        return float(tol)
    raise validation.wrong(tol, "tol", where, "a number of nats, at least 0")


def _named(step: SolverProgress) -> Progress:
    return Progress(step.iteration, step.max_iter, "computing the channel")


def _result(
    outcome: Outcome[Point], costs: Floats, prior: Floats, beta: float, tol: float, solver: str
) -> RateDistortion:
    """Leave outputs out, and measure what is left."""
    met = outcome.point.measured_gap <= tol  # also where rounding stopped a solver that was asked for less
    point = _without_idle(outcome.point, tol) if met else outcome.point
    outputs = np.flatnonzero(point.theta > MIN_PLAIN_PROBABILITY)  # what an update has brought below it is 0
    weights = point.theta[outputs]
    channel = channel_of(weights, costs[:, outputs], beta)
    return RateDistortion(
        frozen(channel),
        frozen(outputs),
        frozen(weights),
        float(beta),
        mutual_information(prior, channel),
        float(prior @ (channel * costs[:, outputs]).sum(axis=1)),
        point.gap,
        outcome.iterations,
        met,
        solver,
    )


def mutual_information(prior: Floats, channel: Floats) -> float:
    """Return what an output tells about the value, in nats; values that nobody has do not count."""
    held = prior > 0.0
    shares, rows = prior[held], channel[held]
    sent = shares @ rows
    counted = (rows > 0.0) & (sent > 0.0)
    logs = np.log(rows, out=np.zeros_like(rows), where=counted)
    logs -= np.where(counted, np.log(sent, out=np.zeros_like(sent), where=sent > 0.0), 0.0)
    return max(0.0, float(shares @ (rows * logs).sum(axis=1)))


def channel_of(weights: Floats, distances: Floats, beta: float) -> Floats:
    """Return P(z | x) = p_z exp(-beta d(x, z)) / S_x, computed from logarithms: far values keep their rows."""
    logs = np.log(weights) - beta * distances
    logs -= logs.max(axis=1, keepdims=True)
    channel = np.exp(logs)
    channel /= channel.sum(axis=1, keepdims=True)
    return channel


def _without_idle(point: Point, tol: float) -> Point:
    """Return the point without outputs that hardly matter: as many as the certificate, which prices them, allows."""
    for least in DROPPED_WEIGHTS:
        kept = np.where(point.theta >= least, point.theta, 0.0)
        fewer = point.at(kept / kept.sum()) if kept.any() else point
        if fewer.measured_gap <= tol:
            return fewer
    return point
