"""Settings: every keyword does what its name says in a method, or is refused with the reason."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, as_distribution, as_real
from hubbub.core.errors import EstimateError, SettingError, shorten
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
        if not isinstance(self.history, bool):
            raise SettingError(
                "history is neither true nor false",
                where="estimate(history=)",
                got=shorten(self.history),
                expected="True (keep all iterates) or False",
                remedy="leave history out for False",
            )
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


def check_reports(reports: object, where: str) -> None:
    """Refuse what is not reports in this process."""
    if isinstance(reports, ScatteredReports):
        raise EstimateError(
            "this needs the reports in one process",
            where=f"{where}(reports)",
            got=f"{reports!r}: they lie elsewhere",
            expected="a hubbub.Reports",
            remedy="merge what fits on one machine with reports.merged(); estimate(), log_likelihood() and "
            "optimality_gap() take reports where they lie",
        )
    check_any_reports(reports, where)


def check_any_reports(reports: object, where: str) -> None:
    """Refuse what is not reports, in this process or elsewhere."""
    if isinstance(reports, ScatteredReports):
        return
    if not isinstance(reports, Reports):
        raise EstimateError(
            "not reports",
            where=f"{where}(reports)",
            got=shorten(reports),
            expected="a hubbub.Reports",
            remedy="build them with hubbub.Reports.from_outputs(mechanism, outputs)",
        )


def positive(value: object, name: str, default: float) -> float:
    """Return a positive number."""
    if value is None:
        return default
    number = as_real(value)
    if not math.isfinite(number) or number <= 0:
        raise SettingError(
            f"{name} must be positive",
            where=f"estimate({name}=)",
            got=shorten(value),
            expected="a positive number",
            remedy=f"leave {name} out for {default:g}",
        )
    return number


def whole(value: object, name: str, default: int, *, named: str | None = None, where: str = "estimate") -> int:
    """Return a whole number from 1."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise SettingError(
            f"{name} must be a whole number from 1",
            where=f"{where}({name}=)",
            got=shorten(value),
            expected="1 or more",
            remedy=f"leave {name} out for {named or format(default, ',')}",
        )
    return int(value)


def one_of(value: object, name: str, allowed: tuple[str, ...]) -> str | None:
    """Return one of the allowed words, or None."""
    if value is None or (isinstance(value, str) and value in allowed):
        return value
    raise SettingError(
        f"no such {name}",
        where=f"estimate({name}=)",
        got=shorten(value),
        expected=", ".join(map(repr, allowed)),
        remedy=f"leave {name} out: the structure of the problem then decides",
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


def recorded_seed(rng: object) -> int | str:
    """Return what `rng` stands for, to be kept with the estimate; without one the seed is 0, always."""
    if rng is None:
        return 0
    if isinstance(rng, np.random.Generator):
        return "a generator"
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    raise SettingError(
        "not a source of randomness",
        where="estimate(rng=)",
        got=shorten(rng),
        expected="a numpy.random.Generator, or a seed that is at least 0",
        remedy="leave rng out: the same reports then give the same answer",
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
    given = as_distribution(start, size, SettingError, where="estimate(start=)").copy()
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
