"""Pages of every kind, from real estimates, and labels that try to be more than labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.comparison.equality_test import Equality
from hubbub.comparison.group_comparison import GroupComparison
from hubbub.comparison.group_order import Ranked
from hubbub.comparison.partial_pooling import Pooled
from hubbub.core.arrays import Floats
from hubbub.domains import Domain
from hubbub.intervals.linear_statistic import parse_statistics
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.rendering import Fact
from hubbub.reporting.groups_page import GroupsPage, GroupStatistic
from hubbub.reporting.page_values import BAD, GOOD, UNKNOWN, WARNING, Bounds, Page, Verdict
from hubbub.resolution import Resolution
from hubbub.resolution.result import make_part

Z = 1.959963984540054

VERDICTS = (
    Verdict("Is there only one answer?", "Yes", "These reports have one most likely distribution.", GOOD),
    Verdict("Do the reports fit the study?", "Doubtful", "Reports like these come about in 3 of 100 studies.", WARNING),
    Verdict("How far could liars shift it?", "Far", "One user in 100 could move any share by 9.1%.", BAD),
    Verdict("What did it cost in privacy?", "Not known", "Cloaking has no bound that can be added.", UNKNOWN),
)
FACTS = (
    Fact("method", "inversion, negative entries cut off"),
    Fact("study", "colours of the town"),
    Fact("mechanisms", "krr: k-RR, epsilon 2\nlight: k-RR, epsilon 4"),
    Fact("fingerprint", "ab" * 32),
    Fact("version", "hubbub 0.1.0"),
)


def page_of(
    domain: Domain, truth: Floats, *, epsilon: float = 3.0, users: int = 20_000, bounds: bool = False, seed: int = 5
) -> Page:
    """Return the page of a simulated study with randomized response; its covariance is that of the inversion."""
    rng = np.random.default_rng(seed)
    mechanism = hb.RandomizedResponse(domain, epsilon)
    values = domain.labels[rng.choice(len(domain), users, p=truth / truth.sum())]
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    found = hb.estimate(reports, method="inv-n").probabilities
    count = len(domain)
    stays, goes = np.exp(epsilon) / (np.exp(epsilon) + count - 1), 1 / (np.exp(epsilon) + count - 1)
    noisy = goes + (stays - goes) * found
    deviation = np.sqrt(noisy * (1 - noisy) / users) / (stays - goes)
    low, high = np.clip(found - Z * deviation, 0, 1), np.clip(found + Z * deviation, 0, 1)
    sets: SetShares | Bounds
    if bounds:
        sets = Bounds(low, high, "There are too many values for a covariance of all pairs.")
    else:
        covariance = (np.diag(noisy) - np.outer(noisy, noisy)) / users / (stays - goes) ** 2
        sets = SetShares((noisy - goes) / (stays - goes), covariance, 1.0)
    return Page(
        title="What the town likes",
        summary=f"{users:,} people answered. The largest share is {found.max():.1%}.",
        domain=domain,
        users=users,
        method="inversion",
        level=0.95,
        estimate=found,
        low=low,
        high=high,
        noisy=noisy,
        noisy_note="Shares of the answers as they were sent, which the mechanism has mixed.",
        sets=sets,
        verdicts=VERDICTS,
        facts=FACTS,
    )


def divided(page: Page, part_of: Sequence[int] | NDArray[np.int64]) -> Page:
    """Return a page with parts, the last of which is the rest: which values they are is given, not resolved.

    The confidence interval of the first one does not hold the estimate.
    """
    parts, numbers = [], np.asarray(part_of)
    last = int(numbers.max())
    for number in range(last + 1):
        positions = np.flatnonzero(numbers == number)
        share, told = float(page.estimate[positions].sum()), number < last
        low, high = (1.02 * share, 1.2 * share) if number == 0 else (0.8 * share if told else 0.0, 1.25 * share)
        parts.append(make_part(page.domain, positions, share, low, high, told=told))
    return replace(page, resolution=Resolution(page.domain, tuple(parts), page.level, 0.5, "family"))


COLOURS = (
    "red", "green", "blue", "teal", "plum", "coral", "olive", "navy", "amber", "ivory", "rose", "khaki", "lilac",
    "mint", "peach", "rust", "sand", "slate", "wine", "azure", "beige", "bronze", "copper", "cream", "gold", "grape",
    "lime", "pearl", "ruby", "a colour that nobody can name in fewer words than these",
)  # fmt: skip


@cache
def two() -> Page:
    """Two categories."""
    return page_of(hb.Categories(["yes", "no"]), np.array([0.35, 0.65]), users=4_000)


@cache
def thirty() -> Page:
    """Thirty categories."""
    return divided(
        page_of(hb.Categories(COLOURS), 1.0 / np.arange(1.0, 31.0), epsilon=4.0),
        [0, 1, 2, *[3] * 4, *[4] * 8, *[5] * 15],
    )


@cache
def ages() -> Page:
    """A hundred whole numbers."""
    places = np.arange(100.0)
    truth = np.exp(-(((places - 35) / 12) ** 2)) + 0.5 * np.exp(-(((places - 70) / 8) ** 2))
    page = page_of(hb.Integers(0, 99), truth, epsilon=5.0, users=50_000)
    return divided(replace(page, title="Ages of the town"), np.digitize(places, [20, 33, 47, 80]))


@cache
def many_integers() -> Page:
    """More whole numbers than bars: a line with a band, and bounds instead of a covariance."""
    places = np.arange(-200.0, 201.0)
    return page_of(hb.Integers(-200, 200), np.exp(-np.abs(places) / 60), epsilon=7.0, users=80_000, bounds=True)


@cache
def hours() -> Page:
    """Bins of different widths."""
    return page_of(hb.Bins([0, 1.5, 3, 6, 9, 12, 18, 24]), np.array([1.0, 2, 4, 8, 7, 5, 2]), users=9_000)


def hills(columns: int, rows: int) -> Floats:
    east, north = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
    one = np.exp(-(((east - 0.7) / 0.15) ** 2) - ((north - 0.6) / 0.2) ** 2)
    return np.asarray(one + 0.6 * np.exp(-(((east - 0.25) / 0.1) ** 2) - ((north - 0.3) / 0.1) ** 2) + 0.02).ravel()


@cache
def city() -> Page:
    """A map of 24 x 16 cells, some of which are not kept, with a file to take away."""
    every = np.arange(384)
    kept = every[(every % 24 + every // 24 > 5) & (every % 24 - every // 24 < 20)]
    grid = hb.Grid.over(
        south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16, cells=kept.tolist()
    )
    page = page_of(grid, hills(24, 16)[kept], epsilon=6.0, users=40_000)
    square = {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "properties": {"cell": 1}, "geometry": None}] * 400,
    }
    notes = ("12 of 40,012 rows were rejected: their outputs are not of this study.",)
    quarters = np.where(kept // 24 < 3, 4, 2 * (kept // 24 > 9) + (kept % 24 > 12))
    page = replace(page, title="Where the town is at night", notes=notes, texts={"map.geojson": json.dumps(square)})
    return divided(page, quarters)


@cache
def region() -> Page:
    """A map of 2,500 cells: too many for a whole covariance, few enough for one of near cells."""
    grid, truth = hb.Grid(50, 50, cell=1.0), hills(50, 50)
    truth /= truth.sum()
    mechanism, rng = hb.PlanarGeometric(grid, 1.0), np.random.default_rng(3)
    values = grid.labels[rng.choice(2_500, 200_000, p=truth)]
    sets = set_shares(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng)), truth)
    assert isinstance(sets, SetShares)
    deviation = sets.deviations
    low, high = np.clip(sets.centre - Z * deviation, 0, 1), np.clip(sets.centre + Z * deviation, 0, 1)
    return replace(
        city(),
        resolution=None,
        title="All of the region",
        domain=grid,
        estimate=truth,
        low=low,
        high=high,
        noisy=truth,
        sets=sets,
    )


@cache
def large() -> Page:
    """A map of 256 x 256 cells: the most that a page must hold."""
    page = page_of(hb.Grid(256, 256), hills(256, 256), epsilon=12.0, users=400_000, bounds=True)
    unknown = np.full(65_536, np.nan)
    return replace(page, low=unknown, high=unknown, title="Every corner of the town")


def groups_page_of(domain: Domain, names: Sequence[str], *, seed: int = 3) -> GroupsPage:
    """Return a page of groups with drawn numbers: nothing is estimated or tested, every third difference holds."""
    rng = np.random.default_rng(seed)
    shape = (len(names), len(domain))
    shares = rng.dirichlet(np.ones(len(domain)), size=len(names))
    difference = shares - shares.mean(axis=0)
    margin = np.abs(difference) * rng.uniform(0.2, 0.9, shape)
    changed = np.arange(shares.size).reshape(shape) % 3 == 0
    order = np.argsort(-shares[:, 0], kind="stable").tolist()
    comparison = GroupComparison(
        domain,
        tuple(names),
        tuple(rng.integers(50, 5_000, len(names)).tolist()),
        None,
        shares,
        Pooled(0.5 * shares + 0.5 * shares.mean(axis=0), 100.0),
        difference,
        difference - margin,
        difference + margin,
        margin / 2.0,
        (("",) * len(domain),) * len(names),
        np.full(shape, 0.001),
        np.full(shape, 0.01),
        changed,
        0.95,
        Equality(50.0, 0.0001, 999, "999 deals of the users to the groups at random", shares[0], np.ones(3)),
        tuple(Ranked(names[place], float(shares[place, 0]), 1, len(names)) for place in order),
        domain.title(0),
        (),
        parse_statistics(domain, None).labels,
    )
    low, high = 0.8 * shares, np.minimum(1.0, 1.2 * shares)
    first = GroupStatistic(domain.title(0), shares[:, 0], low[:, 0], high[:, 0])
    return GroupsPage(
        title="Regions of the town",
        summary=comparison.sentence,
        by="region",
        comparison=comparison,
        low=low,
        high=high,
        statistic=None if domain.chart == "map" else first,
        facts=FACTS,
    )
