"""EM with smoothing."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from auto_studies import (
    HOLED,
    LINE,
    MAP,
    Floats,
    bump,
    categorical,
    check_estimate,
    lined,
    sent,
)

# -- EM with smoothing -----------------------------------------------------------------------------------


def dense_average(domain: hb.Domain) -> Floats:
    """The smoothing as a matrix, from the labels alone."""
    if isinstance(domain, hb.Grid):
        places = [divmod(cell, domain.columns) for cell in domain.labels.tolist()]
    else:
        places = [(0, place) for place in range(len(domain))]
    whole = np.eye(len(places))
    for step in ((0, 1), (1, 0)):
        matrix = 2.0 * np.eye(len(places))
        for one, (row, column) in enumerate(places):
            for other, place in enumerate(places):
                if place in ((row + step[0], column + step[1]), (row - step[0], column - step[1])):
                    matrix[one, other] = 1.0
        whole = matrix / matrix.sum(axis=1, keepdims=True) @ whole
    return whole


def ems(reports: hb.Reports, updates: int) -> list[Floats]:
    matrix, average = reports.channel.dense(), dense_average(reports.domain)
    path = [np.full(len(matrix), 1.0 / len(matrix))]
    for _ in range(updates):
        theta = path[-1] * (matrix @ (reports.weights / (path[-1] @ matrix))) / reports.weights.sum()
        theta = average @ theta
        path.append(theta / theta.sum())
    return path


SMOOTHED: list[hb.Mechanism] = [
    hb.Geometric(LINE, 0.5),
    hb.RandomizedResponse(hb.Bins([0, 1, 5, 6, 9]), 1.0),
    hb.PlanarGeometric(MAP, 1.0),
    hb.Exponential(HOLED, 1.0),
]


@pytest.mark.parametrize("mechanism", SMOOTHED, ids=lambda mechanism: type(mechanism).__name__)
def test_ems_is_em_and_a_smoothing_after_each_update(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(len(mechanism.domain), 700))
    estimate = hb.estimate(reports, "ems", max_iter=25, delta=1e-300, history=True)
    assert estimate.history is not None
    path = ems(reports, 25)
    assert (
        len(estimate.history.probabilities) == 26 or estimate.converged
    )  # a fixed point may be reached to the last bit
    for theta, expected in zip(estimate.history.probabilities, path, strict=False):
        np.testing.assert_allclose(theta, expected, rtol=1e-9)
    for value, expected in zip(estimate.history.log_likelihood, path, strict=False):
        assert value == pytest.approx(hb.log_likelihood(reports, expected), rel=1e-12)
    alone = hb.estimate(reports, "ems", max_iter=25, delta=1e-300)
    assert alone.history is None
    np.testing.assert_allclose(alone.probabilities, estimate.probabilities, rtol=1e-12)


def test_ems_comes_to_rest() -> None:
    reports = lined()
    loose, tight = hb.estimate(reports, "ems", delta=1.0), hb.estimate(reports, "ems", delta=1e-9)
    usual = hb.estimate(reports, "ems")
    assert loose.iterations < usual.iterations < tight.iterations
    assert usual.settings["delta"] == 1e-3
    assert tight.converged
    matrix = reports.channel.dense()
    theta = tight.probabilities
    moved = dense_average(reports.domain) @ (
        theta * (matrix @ (reports.weights / (theta @ matrix))) / reports.weights.sum()
    )
    np.testing.assert_allclose(moved / moved.sum(), theta, atol=1e-5)
    assert np.abs(np.diff(theta, 2)).max() < np.abs(np.diff(hb.estimate(reports, "mle").probabilities, 2)).max()
    assert "smoothed after each update" in usual.status
    assert "stopped by the delta rule" in usual.status
    limited = hb.estimate(reports, "ems", max_iter=3, delta=1e-12)
    assert not limited.converged
    assert "iteration limit of 3" in limited.status
    assert limited.iterations == 3


def test_ems_stops_at_the_first_small_change() -> None:
    reports = sent(hb.Geometric(LINE, 0.5), bump(8, 700))
    estimate = hb.estimate(reports, "ems", delta=0.05)
    values = [hb.log_likelihood(reports, theta) for theta in ems(reports, estimate.iterations)]
    changes = np.abs(np.diff(values))
    assert changes[-1] < 0.05
    assert (changes[:-1] >= 0.05).all()


def test_ems_takes_a_start() -> None:
    reports = sent(hb.Geometric(LINE, 0.5), bump(8, 700))
    start = np.arange(1.0, 9.0) / 36
    estimate = hb.estimate(reports, "ems", start=start, max_iter=1, delta=1e-300)
    matrix = reports.channel.dense()
    update = start * (matrix @ (reports.weights / (start @ matrix))) / 700
    expected = dense_average(LINE) @ update
    np.testing.assert_allclose(estimate.probabilities, expected / expected.sum(), rtol=1e-10)
    assert estimate.settings["start"] == "given"


def test_ems_needs_neighbours() -> None:
    for reports in (categorical(), categorical().restrict(["a", "b", "c"])):
        with pytest.raises(hb.SettingError, match="no neighbours") as refused:
            hb.estimate(reports, "ems")
        assert "auto" in str(refused.value)
    restricted = sent(hb.Geometric(LINE, 0.5), bump(8, 700)).restrict([1, 2, 5])
    assert hb.estimate(restricted, "ems").probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("edges", [[0.0, 1.0, 2.0, 3.0, 1e100], [1e-200 * edge for edge in range(11)]])
def test_bins_of_any_size(edges: list[float]) -> None:
    bins = hb.Bins(edges)
    counts = np.arange(1, len(bins) + 1) ** 2 * 100
    reports = hb.Reports.from_counts(hb.RandomizedResponse(bins, 2.0), counts)
    check_estimate(hb.estimate(reports), reports)
