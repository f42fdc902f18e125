"""The keywords of `estimate`: each does what its name says in a method, or is refused with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hubbub.core import validation
from hubbub.core.errors import SettingError, shorten
from hubbub.likelihood import ScatteredReports
from hubbub.reports import Reports
from hubbub.solvers import EM, SOLVERS

SCATTERED_METHODS = ("ibu", "ems", "mle")  # those that need only sums over the reports, wherever these are stored

REFUSAL_REASONS = {
    "start": "it does not iterate from a single starting point",
    "tol": "the gap at which to stop is a setting of method='mle'",
    "delta": "the change of the log-likelihood at which to stop is a setting of method='ibu' and 'ems'",
    "max_iter": "it does not iterate",
    "rng": "it uses no randomness",
    "history": "it has no single sequence of iterates",
    "solver": "the way to the maximum is a setting of method='mle'",
}


@dataclass(frozen=True)
class MethodSettings:
    """The keywords as the caller passed them; None stands for the method's own default."""

    start: object = None
    tol: float | None = None
    delta: float | None = None
    max_iter: int | None = None
    rng: object = None
    history: bool = False
    solver: str | None = None
    own: Mapping[str, object] = field(default_factory=dict)  # keywords of estimators that are not hubbub's

    def given(self, names: Collection[str]) -> dict[str, object]:
        """Return the keywords among `names` that the caller passed."""
        standard = {name: getattr(self, name) for name in REFUSAL_REASONS}
        passed = {name: value for name, value in standard.items() if value is not getattr(MethodSettings, name)}
        return {name: value for name, value in {**passed, **self.own}.items() if name in names}

    def refuse_unused(self, accepted: frozenset[str], method: str) -> None:
        """Refuse keywords that mean nothing to this method."""
        validation.boolean(self.history, "history", "estimate")
        for name, value in self.given({*REFUSAL_REASONS, *self.own}).items():
            if name not in accepted:
                reason = REFUSAL_REASONS.get(name, "it has no such keyword")
                raise SettingError(
                    f"this method does not use {name}",
                    where=f"estimate(method={method!r}, {name}=)",
                    got=shorten(value),
                    expected=f"no {name}: {reason}",
                    remedy=f"leave {name} out",
                )

    def checked_tol(self, default: float) -> float:
        """Return the gap at which to stop."""
        return _positive(self.tol, "tol", default)

    def checked_delta(self, default: float) -> float:
        """Return the change of the log-likelihood at which to stop."""
        return _positive(self.delta, "delta", default)

    def checked_max_iter(self, default: str) -> int | None:
        """Return the limit of iterations, None where the caller set none; `default` describes the method's own."""
        if self.max_iter is None:
            return None
        return validation.whole(self.max_iter, "max_iter", "estimate", default=default)

    def checked_solver(self) -> str | None:
        """Return the name of the solver, None where the structure of the problem decides."""
        if self.solver is None:
            return None
        return validation.one_of(
            self.solver, SOLVERS, "solver", "estimate", default="the one that suits the structure of the problem"
        )


def _positive(value: float | None, name: str, default: float) -> float:
    return default if value is None else validation.positive(value, name, "estimate", default=f"{default:g}")


def check_scattered(reports: Reports | ScatteredReports, method: str, settings: MethodSettings) -> None:
    """Refuse methods and solvers that cannot work with reports stored elsewhere, in parts."""
    solver = settings.checked_solver()
    if not isinstance(reports, ScatteredReports):
        return
    if method not in SCATTERED_METHODS:
        accepted = ", ".join(map(repr, SCATTERED_METHODS)) + ": the methods that work on reports stored elsewhere"
        raise _needs_one_process(reports, "method", method, accepted, "choose one of these, for example method='mle'")
    if solver not in (None, EM):
        accepted = f"{EM!r}, the only solver that works on reports stored elsewhere"
        raise _needs_one_process(reports, "solver", solver, accepted, "leave solver out")


def _needs_one_process(
    reports: ScatteredReports, keyword: str, value: str | None, accepted: str, remedy: str
) -> SettingError:
    return SettingError(
        f"the {keyword} {value!r} needs the reports in one process",
        where=f"estimate({keyword}=)",
        got=f"{reports!r}, stored elsewhere",
        expected=accepted,
        remedy=f"{remedy}; or merge what fits on one machine: estimate(reports.merged(), {keyword}={value!r})",
    )
