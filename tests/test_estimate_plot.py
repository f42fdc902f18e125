"""The picture of an estimate: intervals and the truth are drawn where they are known, never thrown away."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

import hubbub as hb


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def reports_of(mechanism: hb.Mechanism, users: int = 3_000) -> hb.Reports:
    rng = np.random.default_rng(1)
    values = rng.choice(mechanism.domain.labels, users)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def spans(axes: Axes, label: str) -> list[tuple[float, float]]:
    """Return the ends of the vertical lines of that label, or the height of the horizontal ones, twice."""
    lines = next(one for one in axes.collections if isinstance(one, LineCollection) and one.get_label() == label)
    return [(float(segment[0][1]), float(segment[1][1])) for segment in lines.get_segments()]


def test_bars_have_whiskers_once_there_are_intervals_and_marks_for_the_truth() -> None:
    reports = reports_of(hb.RandomizedResponse(hb.Categories(["tea", "coffee", "water"]), 2.0))
    estimate = hb.estimate(reports)
    assert estimate.plot().get_legend() is None
    band = hb.band(reports)
    truth = np.array([0.5, 0.3, 0.2])
    axes = estimate.plot(truth=truth)
    assert spans(axes, "interval") == [(low, high) for low, high in zip(band.low, band.high, strict=True)]
    assert spans(axes, "truth") == [(share, share) for share in truth]
    assert spans(band.plot(), "interval") == spans(axes, "interval")


def test_a_map_has_a_panel_for_the_intervals_and_one_for_the_truth() -> None:
    reports = reports_of(hb.RandomizedResponse(hb.Grid(3, 2, cell=1.0), 4.0))
    estimate = hb.estimate(reports)
    assert [panel.get_title() for panel in maps(estimate.plot())] == ["3,000 users, by auto"]
    band = hb.band(reports, values=[0, 1, 2, 3])
    panels = maps(estimate.plot(truth=np.full(6, 1 / 6)))
    assert [panel.get_title() for panel in panels] == [
        "3,000 users, by auto, 95% intervals; faint:\nhardly known",
        "half the width of the 95% intervals",
        "truth",
    ]
    opacity = np.asarray(panels[0].images[0].get_alpha())
    half = ((band.high - band.low) / 2).reshape(2, 3)
    shares = estimate.probabilities.reshape(2, 3)
    known = ~np.isnan(half)
    assert (opacity[known] > opacity[~known].max()).all()  # what was not computed is faintest
    assert np.argmax(opacity[known]) == np.argmin((half / shares)[known])
    drawn = panels[1].images[0].get_array()
    assert drawn is not None
    widths = np.ma.filled(drawn, np.nan)
    assert np.allclose(widths, half, equal_nan=True)


def maps(axes: Axes) -> list[Axes]:
    """Return the panels of a figure that show a map."""
    figure = axes.figure
    assert figure is not None
    return [panel for panel in figure.axes if panel.images]


def test_what_cannot_be_drawn_is_refused() -> None:
    estimate = hb.estimate(reports_of(hb.RandomizedResponse(hb.Grid(3, 2, cell=1.0), 4.0)))
    _, axes = plt.subplots()
    with pytest.raises(hb.SettingError, match="no room for the truth"):
        estimate.plot(axes, truth=np.full(6, 1 / 6))
    assert estimate.plot(axes) is axes
    with pytest.raises(hb.EstimateError, match=r"plot\(truth=\)"):
        estimate.plot(truth=[0.5, 0.5])


def test_values_that_are_whole_numbers_have_ticks_at_whole_numbers_only() -> None:
    reports = reports_of(hb.TruncatedGeometric(hb.Integers(0, 4), 1.0))
    for axes in (hb.estimate(reports).plot(), hb.compare(reports, reports).plot(), hb.resolve(reports).plot()):
        axes.figure.canvas.figure.draw_without_rendering()
        assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_the_truth_of_many_values_on_a_line_is_one_line() -> None:
    reports = reports_of(hb.TruncatedGeometric(hb.Integers(0, 59), 1.0))
    truth = np.full(60, 1 / 60)
    (drawn,) = hb.estimate(reports, "ibu").plot(truth=truth).lines
    assert drawn.get_label() == "truth"
    np.testing.assert_array_equal(drawn.get_ydata(), truth)


def test_a_map_of_differences_has_its_sides_in_kilometres() -> None:
    noise = hb.RandomizedResponse(hb.Grid(3, 2, cell=0.5), 4.0)
    west, east = (
        hb.Reports.from_outputs(noise, noise.privatize([cell] * 900 + [4] * 100, rng=cell)) for cell in (0, 5)
    )
    comparison = hb.compare(west, east)
    axes = comparison.plot()
    assert axes.get_xlabel() == "east (km)"
    assert tuple(axes.images[0].get_extent()) == (0.0, 1.5, 0.0, 1.0)
    marks = np.asarray(axes.lines[0].get_xydata()).tolist()
    assert [0.25, 0.25] in marks  # the changed cells are marked in their middle: the first,
    assert [1.25, 0.75] in marks  # and the last
