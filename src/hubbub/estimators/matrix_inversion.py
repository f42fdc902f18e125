"""The methods "inv-n" and "inv-p": matrix inversion, made a distribution by normalising or by projecting."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.core.arrays import Floats
from hubbub.estimators.base import MethodRun, as_estimate, gap_text
from hubbub.estimators.method_settings import MethodSettings
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import Outcome, invert
from hubbub.solvers.inversion import normalised, projected


def inv_n(reports: Reports, settings: MethodSettings) -> MethodRun:  # noqa: ARG001 (inversion has no settings)
    """Invert, set negative shares to 0 and divide by the sum."""
    return _inverted(reports, "inv-n", normalised, "negative shares set to 0, the others normalised")


def inv_p(reports: Reports, settings: MethodSettings) -> MethodRun:  # noqa: ARG001
    """Invert, and take the nearest distribution."""
    return _inverted(reports, "inv-p", projected, "projected to the nearest distribution")


def _inverted(reports: Reports, method: str, repair: Callable[[Floats], Floats], repair_text: str) -> MethodRun:
    yield from ()  # a single step: there is no progress to report
    point = Likelihood.of(reports).at(repair(invert(reports)))
    status = f"inverted; {repair_text}; {gap_text(point)}"
    return as_estimate(reports, method, Outcome(point, 0, met=True), status, {"solver": "inversion"})
