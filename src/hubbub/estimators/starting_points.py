"""Where EM starts: a distribution that gives every value a positive probability."""

from __future__ import annotations

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.likelihood import ScatteredReports
from hubbub.reports import Reports, Singles

USE_UNIFORM = "leave start out for the uniform distribution"


def starting_point(start: object, reports: Reports | ScatteredReports) -> tuple[Floats, str]:
    """Return a distribution with full support, and its name."""
    size = len(reports.domain)
    if start is None or (isinstance(start, str) and start == "uniform"):
        return np.full(size, 1.0 / size), "uniform"
    if isinstance(start, str) and start == "empirical":
        return _with_full_support(_output_shares(reports), reports, "the shares of the outputs"), "empirical"
    if isinstance(start, str):
        raise _wrong_start(
            "start must be 'uniform', 'empirical' or a distribution",
            got=shorten(start),
            expected="'uniform', 'empirical', or probabilities",
        )
    theta = validation.distribution(start, size, "estimate(start=)").copy()
    return _with_full_support(theta, reports, "the given start"), "given"


def _with_full_support(theta: Floats, reports: Reports | ScatteredReports, name: str) -> Floats:
    zeros = np.flatnonzero(theta == 0)
    if zeros.size:
        example = reports.domain.labels.tolist()[zeros[0]]
        raise _wrong_start(
            "the start gives some values probability 0, and they would stay at 0",
            got=f"{name}: probability 0 for {zeros.size} of {theta.size} values, such as {example!r}",
            expected="a positive probability for every value: an update multiplies, so that a zero stays zero",
            remedy=f"{USE_UNIFORM}, or give every value a small probability",
        )
    return theta


def _output_shares(reports: Reports | ScatteredReports) -> Floats:
    """Return the shares of users whose output was each value; they may be 0, all of them too."""
    where = "estimate(start='empirical')"
    if isinstance(reports, ScatteredReports):
        raise _wrong_start(
            "the shares of the outputs are not known in this process",
            where=where,
            got=f"{reports!r}, stored elsewhere",
            expected="'uniform', or probabilities",
        )
    shares = np.zeros(len(reports.domain))
    for block in reports.blocks:
        if not isinstance(block, Singles) or not block.mechanism.answers_in_domain:
            raise _wrong_start(
                "the outputs of these mechanisms are not values of the domain",
                where=where,
                got=" and ".join(type(mechanism).__name__ for mechanism in reports.mechanisms),
                expected="one output for each user, from mechanisms that answer in the domain",
            )
        positions = reports.domain.find(block.mechanism.output_space.decode(block.codes))
        inside = positions >= 0
        np.add.at(shares, positions[inside], block.weights[inside])
    shares /= max(1.0, shares.sum())
    return shares


def _wrong_start(
    what: str, *, got: str, expected: str, where: str = "estimate(start=)", remedy: str = USE_UNIFORM
) -> SettingError:
    return SettingError(what, where=where, got=got, expected=expected, remedy=remedy)
