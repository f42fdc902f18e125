"""The truths of the accuracy study: domains, and how a crowd is distributed over them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from problems import residents
from town_maps import TOWN, harbour_town, river_town

Floats = NDArray[np.float64]

LINE, DELAYS, WORDS = hb.Integers(0, 99), hb.Bins(np.arange(-60.0, 245.0, 5.0)), hb.Categories(range(100))
FEW, BLOCKS = hb.Categories(range(32)), hb.Grid(12, 8, cell=1.0)
HOURS, SHORT, TWENTY = hb.Integers(0, 80), hb.Integers(0, 19), hb.Categories(range(20))
UNEVEN = {"60/40": 0.6, "90/10": 0.9, "99/1": 0.99}  # the share of the first of a few values; the others are alike
FEW_SHAPES, FEW_SIZES = ("even", *UNEVEN, "Zipf", "one empty"), (2, 3, 5, 10)
HELD, WORD_SIZES = (1, 5, 20), (100, 1000)  # how many words somebody holds, of how many


def two_humps(places: Floats) -> Floats:
    """Return a wide hump and a narrow one."""
    low, high = places.min(), places.max()
    wide = np.exp(-0.5 * ((places - (0.3 * high + 0.7 * low)) / (0.08 * (high - low))) ** 2)
    narrow = np.exp(-0.5 * ((places - (0.75 * high + 0.25 * low)) / (0.03 * (high - low))) ** 2)
    return np.asarray(0.6 * wide / wide.sum() + 0.4 * narrow / narrow.sum())


def delays(minutes: Floats) -> Floats:
    """Return departures: most a little early, some late, few very late."""
    early = np.exp(-0.5 * ((minutes + 4.0) / 7.0) ** 2)
    late = np.where(minutes > 0, np.exp(-minutes / 40.0), 0.0)
    return np.asarray(0.65 * early / early.sum() + 0.35 * late / late.sum())


def heaped(ages: Floats) -> Floats:
    """Return ages as people tell them: a wide hump, and heaps at multiples of ten."""
    smooth = np.exp(-0.5 * ((ages - 42.0) / 18.0) ** 2)
    return smooth * np.where(ages % 10 == 0, 3.0, 0.8)


def hours_worked(hours: Floats) -> Floats:
    """Return hours a week: a wide bump, and heaps at contracts and round numbers."""
    bump = np.exp(-0.5 * ((hours - 36.0) / 13.0) ** 2)
    shares = 0.5 * bump / bump.sum()
    for number, share in ((20, 0.07), (35, 0.08), (40, 0.25), (45, 0.05), (50, 0.05)):
        shares[number] += share
    return np.asarray(shares)


def round_ages(ages: Floats) -> Floats:
    """Return ages of mostly young people, with small heaps at multiples of five and larger ones at multiples of ten."""
    smooth = np.exp(-0.5 * ((np.log1p(ages) - np.log(34.0)) / 0.45) ** 2) * (ages >= 16)
    return np.asarray(smooth * np.select([ages % 10 == 0, ages % 5 == 0], [5.0, 2.2], 0.8))


def few_values(shape: str, size: int) -> Floats:
    """Return the shares of two to ten values without order."""
    if shape == "Zipf":
        shares = 1.0 / np.arange(1.0, size + 1.0)
    elif shape == "one empty":
        shares = np.append(np.ones(size - 1), 0.0)
    else:
        first = UNEVEN.get(shape, 1.0 / size)
        shares = np.append(first, np.full(size - 1, (1.0 - first) / (size - 1)))
    return np.asarray(shares / shares.sum())


def held_words(held: int, size: int, *, falling: bool) -> Floats:
    """Return the shares of words of which only some are held: alike, or each a bit less than the one before."""
    shares = np.zeros(size)
    ratio = 1.0 - 2.0 / held if falling else 1.0
    shares[:held] = ratio ** np.arange(held)
    return np.random.default_rng([7, held, size]).permutation(shares)


def _lines_and_words() -> dict[str, tuple[hb.Domain, Floats]]:
    from scipy.stats import binom

    places = np.arange(100.0)
    zipf = 1.0 / (1.0 + places) ** 1.2
    spikes, point = np.zeros(100), np.zeros(100)
    spikes[[7, 30, 31, 58, 90]], point[37] = [0.3, 0.25, 0.1, 0.25, 0.1], 1.0
    few = 1.0 / (1.0 + np.arange(32.0))
    bump = np.exp(-0.5 * ((places - 40.0) / 12.0) ** 2)
    return {
        "binomial": (LINE, binom.pmf(np.arange(100), 99, 0.5)),
        "block": (LINE, ((places >= 20) & (places < 40)).astype(np.float64)),
        "two humps": (LINE, two_humps(places)),
        "Zipf": (LINE, zipf),
        "spikes": (LINE, spikes),
        "one point": (LINE, point),
        "uniform": (LINE, np.ones(100)),
        "flight delays": (DELAYS, delays(DELAYS.places)),
        "shuffled Zipf": (LINE, np.random.default_rng(3).permutation(zipf)),
        "words": (WORDS, np.random.default_rng(4).permutation(zipf)),
        "few words": (FEW, np.random.default_rng(5).permutation(few)),
        "few even words": (FEW, np.ones(32)),
        "one word": (WORDS, np.random.default_rng(6).permutation(point)),
        "heaped ages": (LINE, heaped(places)),
        "three blocks": (LINE, 1.0 * (places < 10) + 3.0 * ((places >= 45) & (places < 55)) + 2.0 * (places >= 85)),
        "hours worked": (HOURS, hours_worked(np.arange(81.0))),
        "round ages": (LINE, round_ages(places)),
        "bump with a spike": (LINE, 0.8 * bump / bump.sum() + 0.2 * (places == 63)),
    }


def _maps() -> dict[str, tuple[hb.Domain, Floats]]:
    x, y = BLOCKS.labels % 12, BLOCKS.labels // 12
    city = residents(None)
    return {
        "two towns": (BLOCKS, np.exp(-0.5 * ((x - 3) ** 2 + (y - 5) ** 2)) + 0.5 * (x >= 8) * (y < 3)),
        "hills": (BLOCKS, np.exp(np.sin(0.9 * x) + np.cos(0.7 * y + 0.3 * x))),
        "city": (city[0], city[1].astype(np.float64)),
        "river town": (TOWN, river_town()),
        "harbour town": (TOWN, harbour_town()),
    }


def _few_or_sparse() -> dict[str, tuple[hb.Domain, Floats]]:
    """Return what has few values, or few that anybody holds."""
    places = np.arange(20.0)
    found: dict[str, tuple[hb.Domain, Floats]] = {
        "short bell": (SHORT, np.exp(-0.5 * ((places - 8.0) / 3.0) ** 2)),
        "short slope": (SHORT, np.exp(-places / 6.0)),
        "short humps": (SHORT, two_humps(places) + 0.004),
        "short even": (SHORT, np.ones(20)),
        "twenty words": (TWENTY, np.random.default_rng(8).permutation(1.0 / (1.0 + places))),
    }
    for size in FEW_SIZES:
        for shape in FEW_SHAPES:
            found[f"{shape} of {size} values"] = hb.Categories(range(size)), few_values(shape, size)
    for size in WORD_SIZES:
        words = hb.Categories(range(size))
        for held in HELD:
            found[f"{held} of {size} words"] = words, held_words(held, size, falling=False)
            if held > 1:
                found[f"falling {held} of {size} words"] = words, held_words(held, size, falling=True)
    return found


def truth_of(name: str, counts: Path | None) -> tuple[hb.Domain, Floats]:
    """Return a domain, and how the crowd is distributed over it."""
    if name == "San Francisco":
        grid, people = residents(counts)
        return grid, people / people.sum()
    domain, shape = (_lines_and_words() | _maps() | _few_or_sparse())[name]
    return domain, shape / shape.sum()
