"""The path of EM from the uniform distribution, and the errors along it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.domains import LineDomain

Floats = NDArray[np.float64]

DELTAS = (1.0, 0.1, 0.01, 0.001)
END, MOST_STEPS = 1e-4, 20_000  # the path ends at such a change of the total log-likelihood, or after so many steps
SPACING = 1.15  # of iterates whose distance takes milliseconds


@dataclass(frozen=True)
class Path:
    """All iterates, the uniform start first, and their total log-likelihoods up to a constant."""

    iterates: Floats
    log_likelihoods: Floats

    @property
    def steps(self) -> int:
        """How many updates were made."""
        return len(self.iterates) - 1

    def stop(self, delta: float) -> int:
        """Return the first iterate whose log-likelihood differs by less than delta from the one before."""
        small = np.flatnonzero(np.abs(np.diff(self.log_likelihoods)) < delta)
        return int(small[0]) + 1 if small.size else self.steps


def em_path(reports: hb.Reports) -> Path:
    """Run EM from the uniform distribution, and keep everything."""
    channel, weights = reports.channel, reports.weights
    theta = np.full(len(reports.domain), 1.0 / len(reports.domain))
    fitted = channel.forward(theta)
    iterates, values = [theta], [float(weights @ np.log(fitted))]
    for _ in range(MOST_STEPS):
        theta = theta * channel.backward(weights / fitted)
        theta /= theta.sum()
        fitted = channel.forward(theta)
        iterates.append(theta)
        values.append(float(weights @ np.log(fitted)))
        if abs(values[-1] - values[-2]) < END:
            break
    return Path(np.stack(iterates), np.array(values))


def total_variations(path: Path, truth: Floats) -> Floats:
    """Return the total variation of every iterate."""
    errors: Floats = np.abs(path.iterates - truth).sum(axis=1) / 2
    return errors


def earth_mover_distances(path: Path, truth: Floats, domain: hb.Domain) -> dict[int, float] | None:
    """Return the distances of all iterates on a line, of some on a grid, and None where there is no distance."""
    if isinstance(domain, hb.Categories):
        return None
    if isinstance(domain, LineDomain):
        moved = np.abs(np.cumsum(path.iterates - truth, axis=1)[:, :-1])
        found = moved @ np.diff(domain.places)
        check_distance(float(found[-1]), hb.earth_mover_distance(path.iterates[-1], truth, domain))
        return dict(enumerate(found.tolist()))
    wanted = sorted({*spaced(path.steps), *(path.stop(delta) for delta in DELTAS)})
    return {step: hb.earth_mover_distance(path.iterates[step], truth, domain) for step in wanted}


def spaced(last: int) -> set[int]:
    """Return steps from 0 to the last, ever farther apart."""
    count = math.ceil(math.log(max(1, last), SPACING)) + 1
    return {0, last, *(min(last, math.floor(SPACING**power)) for power in range(count))}


def check_distance(own: float, library: float) -> None:
    """Refuse to measure with a formula that differs from the library's."""
    if not math.isclose(own, library, rel_tol=1e-9, abs_tol=1e-9):
        raise AssertionError(f"the distance along the path is {own}, the library's {library}")
