"""`plan_attributes`: which way to report several attributes, before anybody reports."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.client import as_whole
from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.defaults import TRUTH_SHAPES
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.serialization import Portable
from hubbub.core.text import listed
from hubbub.domains import Product
from hubbub.mechanisms import (
    Split,
)
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.planning.attribute_errors import VariationQuantiles, expected_error, told_by
from hubbub.planning.attribute_ways import WHERE, named_ways
from hubbub.planning.plan_tables import TextTable
from hubbub.planning.truths import truths_from
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.sampling import Randomness

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_RUNS = 200
MAX_CELLS = 100_000  # of two attributes whose joint shares are simulated
NEARLY = 1.02  # an error that is larger by less is as good


@dataclass(frozen=True)
class WayErrors:
    """The error of one way to report, for one attribute or for two together.

    `told` says whether reports tell about them at all; where they do and `median` is None, it could not be simulated.
    """

    way: str
    epsilon: float
    attributes: tuple[str, ...]
    median: float | None
    ninth: float | None
    told: bool = True


@dataclass(frozen=True, eq=False)
class AttributesPlan(Portable):
    """The errors to expect of each way to report several attributes.

    Attributes
    ----------
    errors : tuple of WayErrors
        For each way, the total variation of every attribute's distribution, and of the joint one of every pair.
    users : int
        The number of users.
    truth : str
        The name of the assumed distribution.
    runs : int
        The number of simulated studies for each error.
    seed : int or str
        The seed of these, or a note that a generator was passed.

    Examples
    --------
    >>> import hubbub as hb
    >>> people = hb.Product(sex=hb.Categories(["f", "m"]), town=hb.Categories(["a", "b", "c"]))
    >>> plan = hb.plan_attributes(people, epsilon=1.0, users=10_000)
    >>> print(plan.sentences()[0])
    For single attributes, sample-one errs least: a total variation of about 0.015, on average.
    """

    errors: tuple[WayErrors, ...]
    users: int
    truth: str
    runs: int
    seed: int | str

    @cached_property
    def ways(self) -> dict[str, float]:
        """The epsilon of each way to report, between any two combinations."""
        return {error.way: error.epsilon for error in self.errors}

    def mean_error(self, way: str, size: int) -> float | None:
        """Return the mean over all single attributes (`size` 1) or pairs (2); None where reports do not tell.

        Parameters
        ----------
        way : str
            A way to report.
        size : int
            How many attributes together.

        Returns
        -------
        float or None
            A total variation.
        """
        medians = [error.median for error in self.errors if error.way == way and len(error.attributes) == size]
        known = [median for median in medians if median is not None]
        return float(np.mean(known)) if len(known) == len(medians) and medians else None

    def best(self, size: int = 1) -> str | None:
        """Return the way with the least mean error.

        Parameters
        ----------
        size : int, default 1
            1 for single attributes, 2 for pairs.

        Returns
        -------
        str or None
            Its name; None if no way tells.
        """
        means = {way: self.mean_error(way, size) for way in self.ways}
        known = {way: mean for way, mean in means.items() if mean is not None}
        return min(known, key=known.__getitem__) if known else None

    def sentences(self) -> list[str]:
        """Return the answer in plain words.

        Returns
        -------
        list of str
            For single attributes, for pairs, and what the errors assume.
        """
        lines = []
        for size, what in ((1, "single attributes"), (2, "pairs of attributes")):
            best = self.best(size)
            if best is None:
                lines.append(f"No way here tells about {what}.")
                continue
            mean = self.mean_error(best, size)
            near = [
                way
                for way in self.ways
                if way != best and (self.mean_error(way, size) or np.inf) < NEARLY * (mean or 0)
            ]
            if len(self.ways) == 1:
                lines.append(f"For {what}, expect a total variation of about {mean:.2g}, on average.")
                continue
            as_good = f" ({listed(near)} is as good)" if near else ""
            lines.append(f"For {what}, {best} errs least{as_good}: a total variation of about {mean:.2g}, on average.")
        silent = list(dict.fromkeys(error.way for error in self.errors if not error.told))
        if silent and self.best(2) is not None:
            verb = "do" if len(silent) > 1 else "does"
            lines.append(
                f"{listed(silent)} {verb} not tell how attributes go together: every report is about one of them."
            )
        if len({round(epsilon, 6) for epsilon in self.ways.values()}) > 1:
            told = listed([f"{way} {epsilon:.4g}" for way, epsilon in self.ways.items()])
            lines.append(f"The ways do not protect equally: between any two combinations, epsilon is {told}.")
        assumed = f"{self.users:,} users, {_truth_text(self.truth)}"
        lines.append(f"Assumed: {assumed}; medians of {self.runs} simulated studies per error.")
        return lines

    def explain(self) -> str:
        """Return the sentences, one line each.

        Returns
        -------
        str
            The answer.
        """
        return "\n".join(self.sentences())

    @property
    def table(self) -> TextTable:
        """The table that people read: attributes and pairs by ways."""
        kinds = list(dict.fromkeys(error.attributes for error in self.errors))
        by_key = {(error.way, error.attributes): error for error in self.errors}
        header = ["attributes", *(f"{way} (epsilon {epsilon:.4g})" for way, epsilon in self.ways.items())]
        rows = []
        for attributes in kinds:
            texts = [_cell_text(by_key[way, attributes]) for way in self.ways]
            rows.append([" and ".join(attributes), *texts])
        return TextTable("Total variation to expect", header, rows)

    def __str__(self) -> str:
        shown = self.table
        rows, widths = [shown.header, *shown.rows], shown.widths()
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, "", self.explain()])

    def _repr_html_(self) -> str:
        return table_html(self.table.header, self.table.rows) + facts_html([Fact("answer", self.explain())])

    def to_frame(self) -> pd.DataFrame:
        """Return the errors as a pandas table.

        Returns
        -------
        pandas.DataFrame
            Columns ``way``, ``epsilon``, ``attributes``, ``median``, ``ninth`` and ``told``.
        """
        import pandas as pd

        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each error.

        Returns
        -------
        list of dict
            As in `to_frame`.
        """
        return [
            {
                "way": error.way,
                "epsilon": error.epsilon if np.isfinite(error.epsilon) else None,
                "attributes": list(error.attributes),
                "median": error.median,
                "ninth": error.ninth,
                "told": error.told,
            }
            for error in self.errors
        ]

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With the errors and the sentences.
        """
        return {
            "version": 1,
            "users": self.users,
            "truth": self.truth,
            "runs": self.runs,
            "seed": self.seed,
            "best": {"attributes": self.best(1), "pairs": self.best(2)},
            "errors": self.rows(),
            "text": self.explain(),
        }

    def to_json(self) -> str:
        """Return the plan as one JSON document.

        Returns
        -------
        str
            With a version.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)


def _truth_text(name: str) -> str:
    """Return the assumed truth in words: a shape, what the caller passed, or a file."""
    passed = {"given": "the given shares", "counts": "the given counts", "estimate": "the given estimate"}
    return f"a {name} truth" if name in TRUTH_SHAPES else passed.get(name, f"the shares in {name}")


def _cell_text(error: WayErrors) -> str:
    if error.median is None:
        return "not simulated" if error.told else "not told"
    return f"{error.median:.3f}"


@stepwise
def plan_attributes(
    ways: object,
    *,
    users: int,
    epsilon: float | None = None,
    truth: object = "uniform",
    runs: int = DEFAULT_RUNS,
    rng: Randomness = None,
) -> Generator[Progress, None, AttributesPlan]:
    """Compare ways to report several attributes: the errors of each attribute, and of each pair together.

    Parameters
    ----------
    ways : Product, Mechanism, list, mapping or Study
        `Split`, `SampleOne` and `SampleOneWithFakes` over one `Product`, such as
        ``{"all": hb.Split(...), "one": hb.SampleOne(...)}``. For a `Product` and an `epsilon`, the ways are: every
        attribute with an equal part of epsilon, one at random, and one among fakes; all protect any two combinations
        by epsilon. Each attribute has the better of k-RR and optimized unary encoding (among fakes k-RR).
    users : int
        The number of users.
    epsilon : float, optional
        For a `Product`: the plain budget of a user.
    truth : str, array, mapping or Estimate, default "uniform"
        The joint distribution to assume, as in `plan`. A shape such as "bell" is that of each attribute, independent
        of the others.
    runs : int, default 200
        The number of simulated studies for each error.
    rng : int or numpy.random.Generator, optional
        A seed or generator; left out, a fixed and recorded seed.

    Returns
    -------
    AttributesPlan
        Errors as sentences, a table and JSON.

    Raises
    ------
    SettingError
        If a keyword has a wrong value, or the ways are not over one product.

    Examples
    --------
    >>> import hubbub as hb
    >>> people = hb.Product(sex=hb.Categories(["f", "m"]), town=hb.Categories(["a", "b", "c"]))
    >>> plan = hb.plan_attributes(people, epsilon=1.0, users=10_000)
    >>> print(plan.to_frame()[["way", "attributes", "median"]].round(3))
                         way   attributes  median
    0                  split        [sex]   0.015
    1                  split       [town]   0.031
    2                  split  [sex, town]   0.124
    3             sample-one        [sex]   0.010
    4             sample-one       [town]   0.020
    5             sample-one  [sex, town]     NaN
    6  sample-one-with-fakes        [sex]   0.015
    7  sample-one-with-fakes       [town]   0.028
    8  sample-one-with-fakes  [sex, town]     NaN
    """
    count = as_whole(users)
    count = validation.whole(users if count is None else count, "users", WHERE, at_least=1, default="10_000")
    runs = validation.whole(runs, "runs", WHERE, at_least=20, default=str(DEFAULT_RUNS))
    generator, seed = validation.generator(rng, WHERE)
    named = named_ways(ways, epsilon)
    product = next(iter(named.values())).domain
    name, shares = _truth(truth, product)
    return _planned(named, product, (name, shares), count, runs, generator, seed)


def _planned(
    named: Mapping[str, SeveralAttributes],
    product: Product,
    truth: tuple[str, Floats],
    users: int,
    runs: int,
    generator: np.random.Generator,
    seed: int | str,
) -> Generator[Progress, None, AttributesPlan]:
    names, sides = list(product.attributes), product.sides
    places = [(place,) for place in range(len(names))] + list(combinations(range(len(names)), 2))
    errors, total = [], len(named) * len(places)
    for number, (way, mechanism) in enumerate(named.items()):
        for done, chosen in enumerate(places):
            yield Progress(number * len(places) + done, total, f"simulating {way}")
            own = [sides[place] for place in chosen]
            told = told_by(mechanism, chosen) if np.prod(own) <= MAX_CELLS else None
            found: VariationQuantiles | None = None
            if told is not None:
                joint = _margin(truth[1], product, chosen)
                possible = (_margin(np.ones(len(product)), product, chosen) > 0).astype(np.float64)
                found = expected_error(told, joint, possible, users, runs, generator.spawn(1)[0])
            attributes = tuple(names[place] for place in chosen)
            median, ninth = (None, None) if found is None else (found.median, found.ninth)
            alone = len(chosen) == 1 or isinstance(mechanism, Split)
            errors.append(WayErrors(way, mechanism.epsilon, attributes, median, ninth, alone))
    return AttributesPlan(tuple(errors), users, truth[0], runs, seed)


def _margin(shares: Floats, product: Product, chosen: Sequence[int]) -> Floats:
    """Return the shares of some attributes together, with an axis for each."""
    own = product.coordinates_of(np.arange(len(product)))
    sides = [product.sides[place] for place in chosen]
    cells = np.ravel_multi_index([own[place] for place in chosen], sides)
    return np.asarray(np.bincount(cells, weights=shares, minlength=int(np.prod(sides))).reshape(sides))


def _truth(truth: object, product: Product) -> tuple[str, Floats]:
    if not isinstance(truth, str):
        (assumed,) = truths_from([truth], product)
        return assumed.name, assumed.probabilities
    shares = np.ones(len(product))
    for domain, places in zip(
        product.attributes.values(), product.coordinates_of(np.arange(len(product))), strict=True
    ):
        (shape, *more) = truths_from(truth, domain)
        if more:
            raise SettingError(
                "several shapes at once",
                where=f"{WHERE}(truth=)",
                got=shorten(truth),
                expected="one shape",
                remedy="plan once for each",
            )
        shares = shares * shape.probabilities[places]
    return truth, np.asarray(shares / shares.sum())
