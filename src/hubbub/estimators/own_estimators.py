"""Estimators of one's own: registered in Python, or offered by an installed package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from hubbub.core import validation
from hubbub.core.entry_points import load, offered
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.core.registered_names import check_name, is_same_definition
from hubbub.estimators.base import Method, MethodRun, as_estimate, gap_text
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.result import Estimate
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.solvers import Outcome

GROUP = "hubbub.estimators"
WHERE = "register_estimator"
EVERY = "all"  # where benchmarks take methods, this stands for every one of hubbub's
RESERVED_KEYWORDS = frozenset({"reports", "method", "history", "solver"})  # they mean something to `estimate` itself

Estimator = Callable[..., object]

_FUNCTIONS: dict[str, Estimator] = {}


def register(name: object, function: object, own: Mapping[str, Method]) -> None:
    """Register an estimator under a name that is not one of `own`, hubbub's methods."""
    if name == EVERY:
        raise SettingError(
            f"{EVERY!r} stands for all methods",
            where=f"{WHERE}(name)",
            got=shorten(name),
            expected="the name of one method",
            remedy="choose another name",
        )
    checked = check_name(name, own, WHERE, SettingError, kind="method")
    estimator, _ = _checked(function, f"{WHERE}(function)", SettingError)
    before = _FUNCTIONS.get(checked)
    if before is not None and not is_same_definition(before, estimator):
        raise SettingError(
            f"there is an estimator {checked!r} already",
            where=f"{WHERE}(name)",
            got=shorten(before),
            expected="a new name",
            remedy="choose another name",
        )
    _FUNCTIONS[checked] = estimator


def method_named(name: object, own: Mapping[str, Method], where: str) -> Method:
    """Return a method of hubbub's own, a registered one, or one that an installed package offers."""
    if isinstance(name, str) and name in own:
        return own[name]
    if isinstance(name, str) and name in _FUNCTIONS:
        return _method(name, _FUNCTIONS[name])
    points = offered(GROUP, {*own, EVERY}, EstimateError)
    if isinstance(name, str) and name in points:
        function, _ = _checked(load(points[name], EstimateError), f"entry points {GROUP}, {name}", EstimateError)
        _FUNCTIONS[name] = function
        return _method(name, function)
    names = [*own, *(each for each in sorted({*_FUNCTIONS, *points}))]
    return own[validation.one_of(name, names, "method", where, default="'auto'")]


def registered(name: str) -> Estimator | None:
    """Return the function of a method of one's own; None where nobody has asked for it or registered it."""
    return _FUNCTIONS.get(name)


def _checked(
    function: object, where: str, error: type[SettingError | EstimateError]
) -> tuple[Estimator, frozenset[str]]:
    """Return a function of reports, and its keywords; refuse anything that cannot be called so."""
    expected = "a function of reports, with its keywords after a star: def mine(reports, *, width=1.0)"
    try:
        parameters = list(inspect.signature(cast("Estimator", function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    keywords = frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
    others = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    is_right = len(others) == 1 and others[0].kind in (others[0].POSITIONAL_ONLY, others[0].POSITIONAL_OR_KEYWORD)
    if not is_right or keywords & RESERVED_KEYWORDS:
        raise error(
            "this is not an estimator",
            where=where,
            got=shorten(function),
            expected=expected,
            remedy="define such a function; all that it takes besides the reports is a keyword",
        )
    return cast("Estimator", function), keywords


def _method(name: str, function: Estimator) -> Method:
    """Return the method that calls a function of reports."""
    keywords = _checked(function, WHERE, SettingError)[1]

    def run(reports: Reports, settings: MethodSettings) -> MethodRun:
        yield from ()  # what the function does meanwhile is its own business
        given = settings.given(keywords)
        return _as_estimate(reports, name, function(reports, **given), given)

    return Method(run, keywords, is_own=True)


def _as_estimate(reports: Reports, name: str, result: object, given: dict[str, Any]) -> Estimate:
    """Return what a function returned, shares or an estimate, with the likelihood and the gap that hubbub computes."""
    shares = getattr(result, "probabilities", result)
    where = f"estimate(method={name!r}), what the estimator returned"
    theta = validation.distribution(shares, len(reports.domain), where, error=EstimateError)
    point = Likelihood.of(reports).at(theta)
    told = getattr(result, "status", None)
    status = f"{told if isinstance(told, str) else 'as the estimator returned it'}; {gap_text(point)}"
    met, iterations = getattr(result, "converged", True), getattr(result, "iterations", 0)
    outcome = Outcome(point, iterations if isinstance(iterations, int) else 0, met=bool(met))
    return as_estimate(reports, name, outcome, status, {"solver": "own estimator", **given})
