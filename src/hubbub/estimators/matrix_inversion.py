"""The methods that invert: "inv" as it is, and with what makes it a distribution, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hubbub.core.arrays import Floats
from hubbub.estimators.base import Method, MethodRun, as_estimate, gap_text, without_likelihood
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.result import Estimate, is_distribution
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import Outcome, invert
from hubbub.solvers.inversion import null_deviations
from hubbub.solvers.repairs import base_cut, norm_cut, normalised, projected

SOLVER = {"solver": "inversion"}


class Repair(NamedTuple):
    """How inverted shares become a distribution, in numbers and in words."""

    apply: Callable[[Floats], Floats]
    text: str


REPAIRS = {  # those that look at the shares alone
    "inv-n": Repair(normalised, "negative shares set to 0, the others normalised"),
    "inv-p": Repair(projected, "projected to the nearest distribution"),
    "norm-sub": Repair(projected, "the same subtracted from all shares, negative ones set to 0 (as inv-p)"),
    "norm-cut": Repair(norm_cut, "negative and small shares set to 0, the others normalised"),
}
BASE_CUT = "shares that are not significantly above 0 set to 0, the others normalised"


def inv(reports: Reports, settings: MethodSettings) -> MethodRun:  # noqa: ARG001 (inversion has no settings)
    """Invert, and leave the shares as they are."""
    yield from ()  # a single step: there is no progress to report
    shares = invert(reports)
    if not is_distribution(shares):
        return without_likelihood(reports, "inv", shares, f"inverted; {_lack_text(shares)}", SOLVER)
    point = Likelihood.of(reports).at(shares)
    status = f"inverted; no share is negative; {gap_text(point)}"
    return as_estimate(reports, "inv", Outcome(point, 0, met=True), status, SOLVER)


def _lack_text(shares: Floats) -> str:
    """Return why inverted shares are no distribution."""
    negative = int((shares < 0.0).sum())
    if negative:
        noun = "share is" if negative == 1 else "shares are"
        return f"not a distribution: {negative:,} {noun} negative"
    return f"not a distribution: the shares add up to {shares.sum():.4f}"


def _repaired(method: str) -> Method:
    """Return the method that inverts and repairs."""

    def run(reports: Reports, settings: MethodSettings) -> MethodRun:  # noqa: ARG001
        yield from ()
        return _estimate(reports, method, REPAIRS[method].apply(invert(reports)), REPAIRS[method].text)

    return Method(run, frozenset())


def cut_to_significant(reports: Reports, settings: MethodSettings) -> MethodRun:  # noqa: ARG001
    """Invert, and keep what is significantly above 0 (base-cut)."""
    yield from ()
    return _estimate(reports, "base-cut", base_cut(invert(reports), null_deviations(reports)), BASE_CUT)


def _estimate(reports: Reports, method: str, shares: Floats, text: str) -> Estimate:
    point = Likelihood.of(reports).at(shares)
    return as_estimate(reports, method, Outcome(point, 0, met=True), f"inverted; {text}; {gap_text(point)}", SOLVER)


INVERSIONS = {
    "inv": Method(inv, frozenset()),
    **{method: _repaired(method) for method in REPAIRS},
    "base-cut": Method(cut_to_significant, frozenset()),
}
