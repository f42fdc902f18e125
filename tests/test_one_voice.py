"""One number for one thing: estimate, interval, verdict, document and page of the same reports never disagree.

Random studies over all kinds of domains and mechanisms; the whole sample is slow, a few are in every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.exporting.json_documents import check_document, estimate_document
from hubbub.reporting.page_content import make_page
from hubbub.reporting.page_input import page_input

STUDIES = 500
OFTEN = (0, 1, 3, 4, 5, 6, 8, 9)  # every kind of domain, each on a page once
PAGES = 3  # one of so many studies is put on a page as well, which takes as long as all else
CLOSE = 1e-12

Floats = NDArray[np.float64]


def lines(rng: np.random.Generator) -> hb.Mechanism:
    line = hb.Integers(0, int(rng.integers(2, 12)))
    kinds: list[Callable[[], hb.Mechanism]] = [
        lambda: hb.TruncatedGeometric(line, float(rng.uniform(0.2, 2.0))),
        lambda: hb.Laplace(line, float(rng.uniform(0.2, 2.0))),
        lambda: hb.RandomizedResponse(line, float(rng.uniform(0.5, 3.0))),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def categories(rng: np.random.Generator) -> hb.Mechanism:
    words = hb.Categories([f"answer {number}" for number in range(int(rng.integers(2, 10)))])
    epsilon = float(rng.uniform(0.5, 4.0))
    kinds: list[Callable[[], hb.Mechanism]] = [
        lambda: hb.RandomizedResponse(words, epsilon),
        lambda: hb.OptimizedUnary(words, epsilon),
        lambda: hb.Rappor(words, epsilon),
        lambda: hb.LocalHashing(words, epsilon),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def maps(rng: np.random.Generator) -> hb.Mechanism:
    grid = hb.Grid(int(rng.integers(2, 5)), int(rng.integers(2, 4)), cell=0.5, unit="km")
    epsilon = float(rng.uniform(0.5, 4.0))
    kinds: list[Callable[[], hb.Mechanism]] = [
        lambda: hb.PlanarGeometric(grid, epsilon),
        lambda: hb.RandomizedResponse(grid, epsilon),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def yes_or_no(rng: np.random.Generator) -> hb.Mechanism:
    return hb.RandomizedResponse(hb.Categories(["yes", "no"]), float(rng.uniform(0.3, 4.0)))


KINDS = (yes_or_no, categories, lines, maps)


def random_study(seed: int) -> tuple[hb.Reports, np.random.Generator]:
    """Return reports of a random population, by one mechanism or two."""
    rng = np.random.default_rng([22, seed])
    mechanism = KINDS[seed % len(KINDS)](rng)
    domain = mechanism.domain
    truth = rng.dirichlet(np.full(len(domain), float(rng.choice([0.1, 0.5, 2.0]))))
    users = int(rng.choice([30, 300, 3_000]))
    values = rng.choice(domain.labels, users, p=truth)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    if rng.random() < 0.2:
        other = hb.RandomizedResponse(domain, 1.0)
        reports = reports + hb.Reports.from_outputs(other, other.privatize(values[: users // 2 + 1], rng=rng))
    return reports, rng


def contradictions(seed: int) -> list[str]:
    """Return every disagreement between two answers about the same random study."""
    reports, rng = random_study(seed)
    domain, found = reports.domain, list[str]()

    def expect(what: str, *, holds: bool) -> None:
        if not holds:
            found.append(f"study {seed}: {what}")

    def inside(low: Floats | float, estimate: Floats | float, high: Floats | float) -> bool:
        known = ~np.isnan(np.atleast_1d(low))
        low, estimate, high = (np.atleast_1d(numbers)[known] for numbers in (low, estimate, high))
        return bool(np.all(low <= estimate) and np.all(estimate <= high))

    method = str(rng.choice(["auto", "auto", "mle", "ibu"]))
    shown = hb.estimate(reports, method)
    given = None if method == "auto" else shown
    shares = shown.probabilities
    check = hb.check(reports, estimate=given, values=domain.labels)
    band = check.band
    expect("the band shows another estimate", holds=np.array_equal(band.estimate, shares))
    expect("an estimate is outside its band", holds=inside(band.low, band.estimate, band.high))
    expect("a likeliest value is outside", holds=inside(band.low - CLOSE, band.likeliest, band.high + CLOSE))
    expect("an end is inside the confidence interval", holds=inside(band.low, band.confidence_low, band.high))

    single = int(rng.integers(len(domain)))
    several = rng.choice(len(domain), max(1, len(domain) // 3), replace=False)
    asked: list[tuple[object, Floats]] = [
        (domain.labels.tolist()[single], np.eye(len(domain))[single]),
        (domain.labels[several].tolist(), np.isin(np.arange(len(domain)), several).astype(np.float64)),
    ]
    for of, weights in asked:
        around = hb.interval(reports, of, estimate=given)
        expect("an interval shows another estimate", holds=math.isclose(around.estimate, float(weights @ shares)))
        expect("an estimate is outside its interval", holds=around.low <= around.estimate <= around.high)
    one = hb.interval(reports, asked[0][0], estimate=given)
    ends = (band.low[single], band.estimate[single], band.high[single])
    expect("band and interval differ", holds=bool(np.allclose(ends, (one.low, one.estimate, one.high), atol=1e-9)))

    shift = check.shift
    expect("the shift is about another estimate", holds=_is_share(shift.before, shift.value, domain, shares))
    if domain.places is not None:
        median = hb.quantile(reports, 0.5, estimate=given)
        places = [int(domain.index(np.array([end]))[0]) for end in (median.low, median.estimate, median.high)]
        expect("the median is outside its interval", holds=places == sorted(places))
        own = min(int(np.searchsorted(np.cumsum(shares), 0.5 - CLOSE)), len(domain) - 1)
        expect("the median is that of another estimate", holds=places[1] == own)

    parts = hb.resolve(reports, estimate=given).to_frame()
    ends_of_parts = (parts[name].to_numpy() for name in ("low", "estimate", "high"))
    expect("a part is outside its interval", holds=inside(*ends_of_parts))
    expect("parts do not add up", holds=math.isclose(float(parts["estimate"].sum()), 1.0, abs_tol=1e-9))

    summary = page_input(reports, None).summary
    assert summary is not None
    document = estimate_document(summary, shown, check)
    entries = document["estimate"]
    for name, numbers in (("probability", shares), ("low", band.low), ("high", band.high)):
        expect(f"the document has another {name}", holds=[entry[name] for entry in entries] == numbers.tolist())
    values = check_document(summary, check)["values"]
    expect("the check has another estimate", holds=[entry["estimate"] for entry in values] == shares.tolist())
    expect("another contradiction", holds=document["fit"]["rejected"] == bool(check.contradiction))

    frame = shown.to_frame()
    expect("the table has another interval", holds=frame["low"].tolist() == band.low.tolist())
    if seed % PAGES:
        return found
    page = make_page(reports, estimate=shown)
    expect("the page shows another estimate", holds=np.array_equal(page.estimate, shares))
    expect("an estimate is outside on the page", holds=inside(page.shown_low, page.estimate, page.shown_high))
    for name, on_page, elsewhere in (("low", page.shown_low, band.low), ("high", page.shown_high, band.high)):
        expect(f"the page has another {name} end", holds=bool(np.allclose(on_page, elsewhere)))
    return found


def _is_share(share: float, value: object, domain: hb.Domain, shares: Floats) -> bool:
    return math.isclose(share, float(shares[int(domain.index(np.array([value]))[0])]), abs_tol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", OFTEN)
def test_no_contradictions(seed: int) -> None:
    assert contradictions(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, STUDIES, 50))
def test_no_contradictions_in_many_studies(first: int) -> None:
    assert [text for seed in range(first, first + 50) for text in contradictions(seed)] == []
