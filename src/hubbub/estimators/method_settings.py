"""Settings: every keyword does what its name says in a method, or is refused with the reason."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.likelihood import ScatteredReports
from hubbub.reports import Reports, Singles
from hubbub.solvers import EM

SCATTERED = ("ibu", "ems", "mle")  # methods for reports that lie elsewhere

WHY_NOT = {
    "start": "it does not iterate from one start",
    "tol": "the gap at which to stop is a setting of method='mle'",
    "delta": "the change of the log-likelihood at which to stop is a setting of method='ibu' and 'ems'",
    "max_iter": "it does not iterate",
    "rng": "it uses no randomness",
    "history": "it has no one way to its answer",
    "solver": "the way to the maximum is a setting of method='mle'",
}


@dataclass(frozen=True)
class Settings:
    """What the caller asked for; None stands for the method's own default."""

    start: object = None
    tol: float | None = None
    delta: float | None = None
    max_iter: int | None = None
    rng: object = None
    history: bool = False
    solver: str | None = None

    def refuse_all_but(self, accepted: frozenset[str], method: str) -> None:
        """Refuse the keywords that mean nothing to this method."""
        validation.boolean(self.history, "history", "estimate")
        for name, reason in WHY_NOT.items():
            value = getattr(self, name)
            if name not in accepted and value is not getattr(Settings, name):
                raise SettingError(
                    f"{name} means nothing to this method",
                    where=f"estimate(method={method!r}, {name}=)",
                    got=shorten(value),
                    expected=f"no {name}: {reason}",
                    remedy=f"leave {name} out",
                )


def check_where_they_lie(reports: Reports | ScatteredReports, method: str, solver: str | None) -> None:
    """Refuse what cannot be done with reports that lie elsewhere, in parts."""
    if not isinstance(reports, ScatteredReports):
        return
    if method not in SCATTERED:
        raise SettingError(
            f"the method {method!r} needs the reports in one process",
            where="estimate(method=)",
            got=f"{reports!r}: they lie elsewhere",
            expected=", ".join(map(repr, SCATTERED)) + ": methods to which theta is sent, not the reports",
            remedy="name one of these, for example method='mle'; or merge what fits on one machine: "
            f"estimate(reports.merged(), method={method!r})",
        )
    if solver is not None and solver != EM:
        raise SettingError(
            f"the solver {solver!r} needs the reports in one process",
            where="estimate(solver=)",
            got=f"{reports!r}: they lie elsewhere",
            expected=f"{EM!r}, to which theta is sent, not the reports",
            remedy="leave solver out; or merge what fits on one machine: "
            f"estimate(reports.merged(), solver={solver!r})",
        )


def starting_point(start: object, reports: Reports | ScatteredReports) -> tuple[Floats, str]:
    """Return a distribution with full support, and its name."""
    size = len(reports.domain)
    if start is None or (isinstance(start, str) and start == "uniform"):
        return np.full(size, 1.0 / size), "uniform"
    if isinstance(start, str) and start == "empirical":
        return _full(_empirical(reports), reports, "the shares of the outputs"), "empirical"
    if isinstance(start, str):
        raise SettingError(
            "no such start",
            where="estimate(start=)",
            got=shorten(start),
            expected="'uniform', 'empirical', or probabilities",
            remedy="leave start out for the uniform distribution",
        )
    given = validation.distribution(start, size, "estimate(start=)", error=SettingError).copy()
    return _full(given, reports, "the given start"), "given"


def _full(theta: Floats, reports: Reports | ScatteredReports, what: str) -> Floats:
    zeros = np.flatnonzero(theta == 0)
    if zeros.size:
        example = reports.domain.labels.tolist()[zeros[0]]
        raise SettingError(
            "the start excludes some values for ever",
            where="estimate(start=)",
            got=f"{what}: probability 0 for {zeros.size} of {theta.size} values, such as {example!r}",
            expected="a positive probability for every value: an update multiplies, so that a zero stays zero",
            remedy="leave start out for the uniform distribution, or give every value a little",
        )
    return theta


def _empirical(reports: Reports | ScatteredReports) -> Floats:
    if isinstance(reports, ScatteredReports):
        raise SettingError(
            "the shares of the outputs are not known here",
            where="estimate(start='empirical')",
            got=f"{reports!r}: they lie elsewhere",
            expected="'uniform', or probabilities",
            remedy="leave start out for the uniform distribution",
        )
    shares = np.zeros(len(reports.domain))
    for block in reports.blocks:
        if not isinstance(block, Singles) or not block.mechanism.answers_in_domain:
            raise SettingError(
                "outputs are not values here",
                where="estimate(start='empirical')",
                got=" and ".join(type(mechanism).__name__ for mechanism in reports.mechanisms),
                expected="one output for each user, from mechanisms that answer in the domain",
                remedy="leave start out for the uniform distribution",
            )
        places = reports.domain.find(block.mechanism.output_space.decode(block.codes))
        np.add.at(shares, places[places >= 0], block.weights[places >= 0])
    shares /= max(1.0, shares.sum())  # zeros are refused by the caller, all of them too
    return shares
