"""The prediction of how far each fake report would move the estimate, which selects the promising ones.

At the maximum theta without fakes let D be the gradient (`likelihood`), H = G diag(w / (n f^2)) G' the curvature
(softened a little, see `_Prediction`), and v_x = g_xz / f_z the vote of a report z for x. To second order in the
honest part, the estimate with a share s of fakes is theta' = theta + delta >= 0 with the largest

    (1 - s) (D delta - delta H delta / 2)  +  s log(v theta')  -  sum_x delta_x

(the last term stands for sum theta' = 1, see `solvers.interior_point`). A shortlist comes from one linear system, in
which values without mass are held back by springs of strength (1 - D_x) / s; on the shortlist the problem is solved
value by value, for all reports at once. Reports are tried in the order of the largest predicted |delta_x|. On large
domains only the values that have mass, or are closest to having some, take part in the prediction.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.likelihood import Point
from hubbub.poisoning.fake_reports import MIN_SCANNED_REPORTS, FakeFamily, FakeReport, closest_to_mass
from hubbub.reports import Reports

MAX_TRIALS = 12  # reports whose shift is computed...
MIN_TRIALS = 3  # ...and if one estimate takes long
MAX_SOLVED_ENTRIES = 12_000_000  # of the channels of all estimates made, if more than the fewest are tried
MIN_SWEEPS = 10  # over all values, to solve the second-order problem: enough to find the first few in order...
MAX_STEPS = 6_000  # ...and more sweeps, up to this many steps of single values, find the worst among close ones
BLOCK_VALUES = 16  # whose steps are gathered into one matrix product
MAX_SWEEP_WORK = 6e8  # multiplications for the sweeps, some tenths of a second
MIN_FIT = 1e-12  # of the fakes' report while values move, relative to where it began
MAX_PREDICTED_VALUES = 1_000  # values whose movement is predicted
MAX_STORED_ENTRIES = 25_000_000  # of a channel that is written out for that prediction
RIDGE = 1e-10  # of the largest curvature: values with the same row have no curvature between them


def most_promising(families: list[FakeFamily], honest: Point, reports: Reports, share: float) -> list[FakeReport]:
    """Return the fake reports with the largest predicted shifts, without repeats."""
    prediction = _Prediction(honest, share)
    users = reports.effective_users
    candidates: list[FakeReport] = []
    scores: list[Floats] = []
    masses: list[float] = []
    for family in families:
        # What fakes add to the total weight: a bit for each value if only sums were kept.
        added = share * users * family.length
        mass = added / (added + (1.0 - share) * honest.likelihood.total)
        possible = np.flatnonzero(
            family.likelihood_ratios.max(axis=0) > 0.0
        )  # some value must be able to send the report
        scores.append(prediction.rough(family.likelihood_ratios[:, possible], mass))
        candidates.extend(FakeReport(family, int(column)) for column in possible)
        masses.extend([mass] * possible.size)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    if order.size > prediction.trials:  # otherwise all are tried
        order = order[: prediction.shortlist]
        likelihood_ratios = np.stack([candidates[number].likelihood_ratios for number in order], axis=1)
        order = order[np.argsort(-prediction.fine(likelihood_ratios, np.array(masses)[order]), kind="stable")]
    chosen: list[FakeReport] = []
    for number in order:
        candidate = candidates[number]
        if len(chosen) < prediction.trials and not any(candidate.is_like(other) for other in chosen):
            chosen.append(candidate)
    return chosen


class _Prediction:
    """The largest shift of a value, predicted from the likelihood ratios of each (values by reports)."""

    def __init__(self, honest: Point, share: float) -> None:
        likelihood = honest.likelihood
        channel, size = likelihood.channel, honest.theta.size
        self.trials = int(min(MAX_TRIALS, max(MIN_TRIALS, MAX_SOLVED_ENTRIES // channel.entries)))
        predicted = min(size, MAX_PREDICTED_VALUES, max(MIN_SCANNED_REPORTS, MAX_STORED_ENTRIES // channel.patterns))
        self._held = np.sort(closest_to_mass(honest)[:predicted])
        self._theta, self._gradient = honest.theta[self._held], honest.gradient[self._held]
        rows = channel.rows(self._held)
        # g / f - g / f' = g (f' - f) / (f f'): between two points the curvature is w / (f f'), which matters where one
        # value gives most of f. It is taken for a value that gains the share of the fakes.
        after = honest.fitted + share * rows.max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):  # what nobody sent may have probability 0
            rows *= np.sqrt(np.where(likelihood.sent, likelihood.shares / (honest.fitted * after), 0.0))
        self._system = rows @ rows.T
        self._system[np.diag_indices(predicted)] += RIDGE * float(self._system.diagonal().max())
        self._springs = np.maximum(0.0, 1.0 - self._gradient) / np.maximum(self._theta, share)
        self._sweeps = max(MIN_SWEEPS, MAX_STEPS // predicted)
        self.shortlist = max(3 * MAX_TRIALS, int(MAX_SWEEP_WORK / (self._sweeps * predicted**2)))

    def rough(self, likelihood_ratios: Floats, mass: float) -> Floats:
        """Predict from the linear system; the fakes have `mass` of the total weight."""
        return self._largest(self._linear(likelihood_ratios[self._held], np.float64(mass)))

    def fine(self, likelihood_ratios: Floats, mass: Floats) -> Floats:
        """Predict from the second-order problem; `mass` has an entry for each report."""
        likelihood_ratios, system = likelihood_ratios[self._held], self._system
        moved = self._linear(likelihood_ratios, mass)
        bent = system @ (moved - self._theta[:, None])
        fitted = np.maximum(np.einsum("xz,xz->z", likelihood_ratios, moved), MIN_FIT)
        for _ in range(self._sweeps):
            for first in range(0, self._theta.size, BLOCK_VALUES):
                block = slice(first, first + BLOCK_VALUES)
                own, before = bent[block].copy(), moved[block].copy()
                for row, value in enumerate(range(first, min(first + BLOCK_VALUES, self._theta.size))):
                    slope = (1.0 - mass) * (self._gradient[value] - own[row]) - 1.0
                    step = _best_step(
                        slope, (1.0 - mass) * system[value, value], mass, likelihood_ratios[value], fitted
                    )
                    np.maximum(step, -moved[value], out=step)
                    moved[value] += step
                    fitted += likelihood_ratios[value] * step
                    np.maximum(fitted, MIN_FIT, out=fitted)
                    own += system[block, value, None] * step
                bent += system[:, block] @ (moved[block] - before)
        return self._largest(moved)

    def _linear(self, likelihood_ratios: Floats, mass: Floats | np.float64) -> Floats:
        """Return theta' in the direction d that the linear system gives.

        The length of the step is exact: with a = (v - 1) d, the derivative of s log(1 + t a) - s a t^2 / 2 is 0
        where t (1 + t a) = 1.
        """
        from scipy.linalg import cho_factor, cho_solve

        pull = likelihood_ratios - 1.0
        moved = cho_solve(cho_factor(self._system + np.diag(self._springs)), mass * pull)
        moved *= 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * np.maximum(0.0, np.einsum("xz,xz->z", pull, moved))))
        return np.maximum(self._theta[:, None] + moved, 0.0)

    def _largest(self, moved: Floats) -> Floats:
        return np.asarray(np.abs(moved - self._theta[:, None]).max(axis=0))


def _best_step(slope: Floats, curved: Floats, mass: Floats, vote: Floats, fitted: Floats) -> Floats:
    """Return the t with the largest slope t - curved t^2 / 2 + mass log(fitted + vote t), for each report.

    Its derivative is 0 at the larger root of a quadratic equation, computed in the form that does not cancel.
    """
    middle = slope * vote - curved * fitted
    root = np.sqrt((slope * vote + curved * fitted) ** 2 + 4.0 * curved * mass * vote**2)
    above = middle > 0.0  # then the vote is not 0
    divisor = np.where(above, 2.0 * curved * vote, root - middle)
    return np.where(above, middle + root, 2.0 * (slope * fitted + mass * vote)) / divisor
