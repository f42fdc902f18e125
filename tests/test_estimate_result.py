"""`Estimate` as JSON, a table, a picture, HTML and text."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import hubbub as hb

mpl.use("Agg")

# Not symmetric, not doubly stochastic, invertible: reading A for its transpose changes everything.
SKEW = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
ABC = hb.Categories(["a", "b", "c"])
SKEWED = hb.Matrix(ABC, ["x", "y", "z"], SKEW)


def test_json_tells_everything_once() -> None:
    estimate = hb.estimate(hb.Reports.from_counts(SKEWED, [700, 100, 200]), "mle")
    document = json.loads(estimate.to_json())
    assert document["method"] == "mle"
    assert document["status"] == estimate.status
    assert document["converged"] is True
    assert document["users"] == 1000
    assert document["log_likelihood"] == estimate.log_likelihood
    assert document["gap"] == estimate.gap
    assert document["iterations"] == estimate.iterations
    assert [entry["value"] for entry in document["estimate"]] == ["a", "b", "c"]
    assert [entry["probability"] for entry in document["estimate"]] == estimate.probabilities.tolist()


# Inverted, the first two values get 0.95 each, the third -0.95 and the last 0.05, which the projection cuts off: the
# one value that can send "w" is left with probability 0, though "w" was sent.
STRICT = hb.Matrix(
    hb.Categories(["a", "b", "c", "d"]),
    ["x", "y", "z", "w"],
    [[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]],
)


def test_an_estimate_that_excludes_a_report_says_so_and_json_has_null() -> None:
    reports = hb.Reports.from_counts(STRICT, [1000, 1, 0, 50])
    estimate = hb.estimate(reports, "inv-p")
    assert estimate.probabilities[3] == 0
    assert estimate.log_likelihood == -math.inf
    assert estimate.gap == math.inf
    assert hb.log_likelihood(reports, estimate.probabilities) == -math.inf
    for each in (estimate, replace(estimate, gap=math.nan)):
        document = json.loads(each.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert document["log_likelihood"] is None
        assert document["gap"] is None
    assert "inf" in str(estimate)


def test_integer_labels_stay_integers_in_json() -> None:
    coin = hb.RandomizedResponse(hb.Integers(3, 5), 1.0)
    document = json.loads(hb.estimate(hb.Reports.from_counts(coin, [1, 2, 3])).to_json())
    assert [entry["value"] for entry in document["estimate"]] == [3, 4, 5]


def test_a_table_for_pandas() -> None:
    estimate = hb.estimate(hb.Reports.from_counts(SKEWED, [700, 100, 200]), "mle")
    frame = estimate.to_frame()
    assert frame.columns.tolist() == ["value", "probability"]
    assert frame["value"].tolist() == ["a", "b", "c"]
    assert frame["probability"].tolist() == estimate.probabilities.tolist()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "domain",
    [ABC, hb.Integers(0, 5), hb.Bins([0, 1, 3, 4]), hb.Grid(3, 2), hb.Grid(3, 2, cells=[0, 4, 5])],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("restricted", [False, True])
def test_plots_return_their_axes(domain: hb.Domain, restricted: bool) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    reports = hb.Reports.from_outputs(hb.RandomizedResponse(domain, 1.0), domain.labels)
    if restricted:
        reports = reports.restrict(domain.labels[:2])
    estimate = hb.estimate(reports)
    axes = estimate.plot()
    try:
        assert isinstance(axes, Axes)
        assert "ibu" in axes.get_title() or "auto" in axes.get_title()
        assert len(axes.patches) + len(axes.images) > 0
        if axes.patches:
            heights = [bar.get_height() for bar in axes.patches]  # type: ignore[attr-defined]
            np.testing.assert_allclose(heights, estimate.probabilities)
        axes.figure.canvas.draw()
        given_axes = plt.subplots()[1]
        assert estimate.plot(given_axes) is given_axes
    finally:
        plt.close("all")


def test_html_escapes_labels() -> None:
    domain = hb.Categories(["<script>alert(1)</script>", "a & b", '"quoted"'])
    estimate = hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(domain, 1.0), [5, 3, 2]))
    html = estimate._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
    assert estimate.status in html


def test_html_of_many_values_is_cut() -> None:
    coin = hb.RandomizedResponse(hb.Integers(1, 500), 3.0)
    html = hb.estimate(hb.Reports.from_outputs(coin, [1, 1, 2]), "ibu")._repr_html_()
    assert html.count("<tr>") < 60
    assert "480 more" in html


def test_text_says_how_it_ended() -> None:
    estimate = hb.estimate(hb.Reports.from_counts(SKEWED, [700, 100, 200]), "mle")
    assert estimate.status in str(estimate)
    assert "1,000" in str(estimate)
    assert "mle" in repr(estimate)
