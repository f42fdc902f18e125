"""Checks that the functions of this layer share."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats, as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.estimators import Estimate
from hubbub.estimators.method_settings import check_reports
from hubbub.reports import Reports
from hubbub.sampling import Randomness

__all__ = ["SEED", "check_estimate", "check_level", "check_reports", "check_share", "check_truth", "seeded"]

SEED = 0  # of simulations, unless the caller brings a generator: the same reports give the same answer


def check_level(level: object, where: str) -> float:
    """Return a level between 0 and 1."""
    return check_share(level, where, "level", "a probability such as 0.95, between 0 and 1")


def check_share(share: object, where: str, name: str, expected: str) -> float:
    """Return a number strictly between 0 and 1."""
    number = as_real(share)
    if not (math.isfinite(number) and 0.0 < number < 1.0):
        raise SettingError(
            f"{name} must lie between 0 and 1",
            where=f"{where}({name}=)",
            got=shorten(share),
            expected=expected,
            remedy="divide percentages by 100",
        )
    return number


def check_truth(value: object, where: str, name: str) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        raise SettingError(
            f"{name} is neither true nor false",
            where=f"{where}({name}=)",
            got=shorten(value),
            expected="True or False",
            remedy=f"write {name}=True or {name}=False",
        )


def seeded(rng: Randomness, where: str) -> tuple[np.random.Generator, int | str]:
    """Return a generator, and what is to be recorded of it."""
    if isinstance(rng, np.random.Generator):
        return rng, "a generator"
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        seed = SEED if rng is None else int(rng)
        return np.random.default_rng(seed), seed
    raise SettingError(
        "not a source of randomness",
        where=f"{where}(rng=)",
        got=shorten(rng),
        expected="a numpy.random.Generator, or a seed that is at least 0",
        remedy="leave rng out: the same reports then give the same answer",
    )


def check_estimate(estimate: object, reports: Reports, where: str) -> Floats | None:
    """Return the probabilities of an estimate over the same domain; None where none was given."""
    if estimate is None:
        return None
    if not isinstance(estimate, Estimate) or estimate.domain != reports.domain:
        raise SettingError(
            "the estimate is not one of these reports",
            where=f"{where}(estimate=)",
            got=shorten(estimate),
            expected="what hubbub.estimate returned for the same reports",
            remedy="leave estimate out for the maximum of the likelihood",
        )
    return estimate.probabilities
