"""Several attributes as people see them: tables, pictures, the page in a real browser, and synthetic records."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from scipy.stats import chisquare

import hubbub as hb
from browser import visiting
from hubbub.attribute_shares import AttributeShares, attribute_shares
from hubbub.cli.attribute_tables import crossed, print_attributes
from hubbub.core.text import percent
from hubbub.domains.table_groups import attribute_groups, crossed_shares, table_groups
from hubbub.exporting.result_files import write_comparison
from hubbub.intake.value_counts import read_counts
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.reporting.html_page import write_page
from hubbub.reporting.page_content import make_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PEOPLE = hb.Product(age=hb.Bins([18, 30, 50, 90]), sex=hb.Categories(["f", "m"]))
LEVEL = 0.95


def reports_on(product: hb.Product, truth: Any, users: int, *, epsilon: float = 3.0, seed: int = 5) -> hb.Reports:
    """Return simulated reports of everybody on all attributes."""
    split = hb.Split({name: hb.RandomizedResponse(own, epsilon) for name, own in product.attributes.items()})
    rng = np.random.default_rng(seed)
    values = product.labels[rng.choice(len(product), users, p=truth)]
    return hb.Reports.from_outputs(split, split.privatize(values, rng=rng))


@cache
def answer() -> tuple[hb.Reports, hb.Estimate]:
    reports = reports_on(PEOPLE, [0.2, 0.1, 0.05, 0.25, 0.15, 0.25], 2_000)
    return reports, hb.estimate(reports, "mle")


@cache
def tables() -> AttributeShares:
    reports, estimate = answer()
    return attribute_shares(estimate, reports, LEVEL)


# -- tables with columns of their own ----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("share", "independent"), ("likeliest", "difference"), ("estimate", "extended")])
def test_attributes_are_not_lost_behind_columns_of_the_table(names: tuple[str, str], tmp_path: Path) -> None:
    """A column of an attribute is called `value.NAME` where the table has a column NAME of its own."""
    first, second = names
    reports = reports_on(hb.Product({first: hb.Integers(1, 3), second: hb.Categories(["f", "m"])}), [1 / 6] * 6, 300)
    estimate = hb.estimate(reports, "mle")
    related = hb.independence(reports, first, second, estimate=estimate)
    frames = [estimate.to_frame(), hb.band(reports, estimate=estimate).to_frame(), related.to_frame()]
    write_comparison(related, related.document(), tmp_path / "related.csv")
    for frame in [*frames, pd.read_csv(tmp_path / "related.csv")]:
        own = list(frame)[2:]
        for name, values in zip(names, ([1, 1, 2, 2, 3, 3], ["f", "m"] * 3), strict=True):
            assert list(frame[f"value.{name}" if name in own else name]) == values
        assert all(frame[name].dtype.kind in "fb" for name in own)
    assert len(pd.read_csv(tmp_path / "related.csv").columns) == 4
    assert list(frames[2])[2:] == ["share", "independent", "difference"]


def test_tables_of_groups_and_periods_keep_attributes_of_these_names(tmp_path: Path) -> None:
    product = hb.Product(group=hb.Categories(["f", "m"]), changed=hb.Categories(["a", "b"]))
    groups = [reports_on(product, truth, 300) for truth in ([0.25] * 4, [0.4, 0.2, 0.2, 0.2])]
    compared = hb.compare_groups(dict(zip("xy", groups, strict=True)))
    write_comparison(compared, compared.document(), tmp_path / "groups.csv")
    frame = pd.read_csv(tmp_path / "groups.csv")
    assert set(frame["group"]) == {"x", "y"}
    assert set(frame["value.group"]) == {"f", "m"}
    assert set(frame["value.changed"]) == {"a", "b"}


def test_a_table_of_counts_may_have_an_attribute_called_share(tmp_path: Path) -> None:
    people = hb.Product(share=hb.Categories(["low rent", "own"]), count=hb.Integers(1, 2))
    (tmp_path / "truth.csv").write_text("share,count,probability\nown,1,0.75\nlow rent,2,0.25\n")
    study = hb.Study(people, {"any": hb.RandomizedResponse(people, epsilon=1.0)})
    assert read_counts(tmp_path / "truth.csv", study) == {("own", 1): 0.75, ("low rent", 2): 0.25}


# -- groups of values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [hb.Integers(0, 81), hb.Bins(np.arange(51)), hb.Categories(range(63))])
def test_groups_divide_the_values(domain: hb.Domain) -> None:
    shares = np.random.default_rng(1).dirichlet(np.ones(len(domain)))
    groups = table_groups(domain, shares, 7)
    assert len(groups) <= 7
    assert sorted(np.concatenate([group.positions for group in groups])) == list(range(len(domain)))
    if domain.places is None:
        rest = groups[-1].positions
        assert shares[rest].max() <= min(shares[group.positions[0]] for group in groups[:-1])
        assert groups[-1].title == "57 others"
    else:
        assert all((np.diff(group.positions) == 1).all() for group in groups)


def test_crossed_shares_are_the_crosstab() -> None:
    product = hb.Product(age=hb.Integers(1, 4), sex=hb.Categories(["f", "m"]), impossible=[{"age": 1, "sex": "m"}])
    estimate = replace(answer()[1], domain=product, probabilities=np.arange(1.0, 8.0) / 28.0)
    groups = attribute_groups(product, estimate.probabilities)
    joint, possible = crossed_shares(product, estimate.probabilities, ("sex", groups["sex"]), ("age", groups["age"]))
    np.testing.assert_allclose(joint, estimate.crosstab("sex", "age").to_numpy(), atol=1e-15)
    assert np.argwhere(~possible).tolist() == [[1, 0]]


# -- intervals ------------------------------------------------------------------------------------------------------


def test_intervals_are_those_of_band() -> None:
    """One number for one thing: what tables show is what `band` returns, of marginals and of conditional shares."""
    reports, estimate = answer()
    shown = tables()
    assert shown.notes == ()
    for own, asked in (
        (shown.marginals["age"], {"of": "age"}),
        (shown.conditionals["age", "sex"][1], {"of": "age", "given": {"sex": "m"}}),
    ):
        expected = hb.band(reports, LEVEL, estimate=estimate, **asked)
        np.testing.assert_allclose(own.estimate, expected.estimate, atol=1e-12)
        np.testing.assert_allclose(own.low, expected.low, atol=1e-6)
        np.testing.assert_allclose(own.high, expected.high, atol=1e-6)
        assert (own.low <= own.estimate).all()
        assert (own.estimate <= own.high).all()


def test_quick_intervals_of_ratios_refute_what_the_normal_test_refutes() -> None:
    """Fieller's ends against a search over all ratios, with the covariance written out."""
    reports, estimate = answer()
    linear = set_shares(reports, estimate.probabilities)
    assert isinstance(linear, SetShares)
    quick = attribute_shares(estimate, reports, LEVEL, linear=linear, quick=True)
    assert "linear estimate" in quick.notes[0]
    women = PEOPLE.having({"sex": "f"}).astype(float)
    young = women * PEOPLE.having({"age": 0})
    ratios = np.linspace(0.0, 1.0, 20_001)
    weights = young - ratios[:, None] * women
    deviation = np.sqrt(np.einsum("ij,jk,ik->i", weights, linear.matrix, weights))
    kept = ratios[np.abs(weights @ linear.centre) <= 1.959963984540054 * deviation]
    own = quick.conditionals["age", "sex"][0]
    assert (own.low[0], own.high[0]) == pytest.approx((kept[0], kept[-1]), abs=1e-4)


def test_without_reports_there_are_no_intervals() -> None:
    alone = attribute_shares(answer()[1], None, LEVEL)
    assert np.isnan(alone.marginals["sex"].low).all()
    np.testing.assert_allclose(alone.marginals["sex"].estimate, answer()[1].marginal("sex").probabilities)


def test_nobody_among_given_values() -> None:
    estimate = replace(answer()[1], probabilities=np.array([0.5, 0.0, 0.25, 0.0, 0.25, 0.0]))
    alone = attribute_shares(estimate, None, LEVEL)
    assert np.isnan(alone.conditionals["age", "sex"][1].estimate).all()


# -- the terminal ---------------------------------------------------------------------------------------------------


def printed(capsys: pytest.CaptureFixture[str], estimate: hb.Estimate, shares: AttributeShares, pair: Any) -> str:
    print_attributes(estimate, shares, pair)
    return capsys.readouterr().out


def test_the_terminal_crosses_attributes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    estimate = answer()[1]
    pair = crossed(None, PEOPLE)
    assert pair == ("age", "sex")  # the one with more values is down the side
    said = printed(capsys, estimate, tables(), pair)
    for number in (*estimate.probabilities, *estimate.marginal("sex").probabilities):
        assert f"{number:.4f}" in said
    own = tables().marginals["sex"]
    assert f"{own.low[0]:.4f} to {own.high[0]:.4f}" in said


def test_wide_tables_fold_at_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    towns = hb.Categories([f"town number {number}" for number in range(40)])
    product = hb.Product(age=hb.Integers(0, 99), town=towns)
    shares = np.random.default_rng(2).dirichlet(np.ones(len(product)))
    estimate = replace(answer()[1], domain=product, probabilities=shares)
    said = printed(capsys, estimate, attribute_shares(estimate, None, LEVEL), ("age", "town"))
    assert max(map(len, said.splitlines())) <= 80
    assert "others" in said
    assert "95 to 99" in said


def test_three_attributes_are_shown_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    product = hb.Product(a=hb.Categories(["x", "y"]), b=hb.Categories(["x", "y"]), c=hb.Categories(["x", "y"]))
    estimate = replace(answer()[1], domain=product, probabilities=np.full(8, 0.125))
    assert crossed(None, product) is None
    assert crossed("c, a", product) == ("c", "a")
    assert "--crosstab a,b" in printed(capsys, estimate, attribute_shares(estimate, None, LEVEL), None)


# -- pictures and notebooks -----------------------------------------------------------------------------------------


def test_pictures_show_the_crosstab() -> None:
    import matplotlib.pyplot as plt

    estimate = answer()[1]
    axes: Any = estimate.plot()
    np.testing.assert_allclose(axes.images[0].get_array(), estimate.crosstab("age", "sex").to_numpy(), atol=1e-12)
    _, above, beside = axes.figure.axes
    assert [bar.get_height() for bar in above.patches] == pytest.approx(estimate.marginal("sex").probabilities)
    assert [bar.get_width() for bar in beside.patches] == pytest.approx(estimate.marginal("age").probabilities)
    with pytest.raises(hb.SettingError, match="no room for the truth"):
        estimate.plot(axes, truth=estimate.probabilities)
    plt.close("all")


@pytest.mark.parametrize(("attributes", "panels"), [(3, 3), (5, 5)])
def test_more_attributes_have_a_panel_for_each_two_or_one(attributes: int, panels: int) -> None:
    import matplotlib.pyplot as plt

    product = hb.Product({f"a{number}": hb.Categories(["x", "y"]) for number in range(attributes)})
    estimate = replace(answer()[1], domain=product, probabilities=np.full(2**attributes, 0.5**attributes))
    assert len(estimate.plot().figure.axes) == panels
    plt.close("all")


def test_a_notebook_shows_the_crosstab_and_escapes_labels() -> None:
    estimate = answer()[1]
    shown = re.findall(r"<td>(\d\.\d{4})<div", estimate._repr_html_())
    assert shown == [f"{share:.4f}" for share in estimate.probabilities]
    product = hb.Product(a=hb.Categories(["<b>", "&"]), b=hb.Categories(["x", "y"]))
    hostile = replace(estimate, domain=product, probabilities=np.full(4, 0.25))
    assert "<b>" not in hostile._repr_html_()


# -- the page -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reports, estimate = answer()
    made = make_page(reports, estimate=estimate, quick=True)
    path = tmp_path_factory.mktemp("attributes") / "page.html"
    write_page(replace(made, attributes=tables()), path)
    return path


def test_the_page_shows_conditional_shares(chromium: Browser, page: Path) -> None:
    """A click on a category, or a key on it, shows the other attribute among those who have it."""
    estimate, shown = answer()[1], tables()
    with visiting(chromium, page) as visit:
        crosstab = estimate.crosstab("age", "sex").to_numpy()
        numbers = np.array(visit.numbers("#crosstab")).reshape(4, 3)
        np.testing.assert_allclose(numbers[:3, :2], crosstab, atol=1e-12)
        np.testing.assert_allclose(numbers[:3, 2], crosstab.sum(axis=1), atol=1e-12)
        visit.tab.locator("#crosstab thead button").nth(1).click()
        men = estimate.conditional("age", given={"sex": "m"}).probabilities
        np.testing.assert_allclose(visit.numbers("#strips"), men, atol=1e-12)
        own = shown.conditionals["age", "sex"][1]
        top = int(np.argmax(men))
        interval = f"{percent(own.low[top])} to {percent(own.high[top])}"
        said = visit.text("#among")
        assert said.startswith("Among those with sex m: age ")
        assert f"{percent(men[top])} ({interval} at 95%)" in said
        assert visit.each("#strips small")[top] == interval
        assert visit.each("#crosstab [aria-pressed=true]") == ["m"]
        visit.tab.locator("#crosstab tbody button").first.focus()
        visit.tab.keyboard.press("Enter")
        np.testing.assert_allclose(
            visit.numbers("#strips"), estimate.conditional("sex", given={"age": 0}).probabilities, atol=1e-12
        )
        visit.tab.locator("#everybody").click()
        marginals = [*estimate.marginal("age").probabilities, *estimate.marginal("sex").probabilities]
        np.testing.assert_allclose(visit.numbers("#strips"), marginals, atol=1e-12)


def test_the_page_can_be_read_on_a_phone_in_the_dark(chromium: Browser, page: Path) -> None:
    with visiting(chromium, page, width=360, dark=True) as visit:
        visit.tab.locator("#crosstab thead button").first.click()
        visit.settled()
        assert visit.widths()[0] <= visit.widths()[1] == 360
        violations = Axe().run(visit.tab).response["violations"]
        assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
        name, content = visit.saved("#csv", page.parent)
    table = pd.read_csv(io.BytesIO(content))
    assert name.endswith(".csv")
    assert list(table.columns[:3]) == ["age", "sex", "probability"]
    np.testing.assert_allclose(table["probability"], answer()[1].probabilities, atol=1e-15)
    assert table["sex"].tolist() == ["f", "m"] * 3


def test_without_scripts_the_marginals_are_there(page: Path) -> None:
    own = tables().marginals["sex"]
    text = page.read_text(encoding="utf-8")
    assert "Shares of <bdi>sex</bdi>" in text
    assert f"<td>{percent(own.low[0])} to {percent(own.high[0])}</td>" in text


def test_one_attribute_has_no_such_section() -> None:
    from hubbub.reporting.html_page import render_page

    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    text = render_page(make_page(hb.Reports.from_counts(coin, {"yes": 60, "no": 40}), quick=True))
    assert 'id="crosstab"' not in text


# -- synthetic records ----------------------------------------------------------------------------------------------


def test_records_follow_the_estimate() -> None:
    """Chi-square at level 1e-4; the same test rejects records of another distribution."""
    estimate, records = answer()[1], 20_000
    drawn = hb.synthesize(estimate, records, rng=3)
    bins = PEOPLE.attributes["age"].locate(drawn["age"])  # type: ignore[attr-defined]
    counts = np.bincount(PEOPLE.index({"age": bins, "sex": drawn["sex"]}), minlength=len(PEOPLE))
    assert chisquare(counts, records * estimate.probabilities).pvalue > 1e-4
    assert chisquare(counts, records * np.roll(estimate.probabilities, 1)).pvalue < 1e-4


def test_records_are_values_that_can_be_privatized_again() -> None:
    """Bins are raw numbers in the middle of the bins; the same seed gives the same records; other values are labels."""
    drawn = hb.synthesize(answer()[1], 50)
    assert set(drawn["age"]) <= {24.0, 40.0, 70.0}
    assert drawn.equals(hb.synthesize(answer()[1], 50))
    assert not drawn.equals(hb.synthesize(answer()[1], 50, rng=1))
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    certain = replace(
        hb.estimate(hb.Reports.from_counts(coin, {"yes": 60, "no": 40})), probabilities=np.array([0.0, 1.0])
    )
    assert hb.synthesize(certain, 4)["value"].tolist() == ["no"] * 4


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_records_in_files(tmp_path: Path, ending: str) -> None:
    from hubbub.exporting.result_files import write_records

    records, path = hb.synthesize(answer()[1], 20, rng=1), tmp_path / f"records{ending}"
    write_records(records, path)
    read = pd.read_csv(path) if ending == ".csv" else pd.read_parquet(path)
    pd.testing.assert_frame_equal(read, records, check_dtype=False)


@pytest.mark.parametrize(
    ("estimate", "count", "rng", "error", "words"),
    [
        ("no estimate", 5, None, hb.EstimateError, "no distribution to draw from"),
        (None, 0, None, hb.SettingError, "whole number, 1 or more"),
        (None, 2.5, None, hb.SettingError, "whole number"),
        (None, 10**12, None, hb.SettingError, "do not fit in memory"),
        (None, 5, -1, hb.SettingError, "not a source of randomness"),
    ],
)
def test_mistakes_of_synthesize(estimate: Any, count: Any, rng: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        hb.synthesize(answer()[1] if estimate is None else estimate, count, rng=rng)
