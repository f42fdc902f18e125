"""The result of `resolve`: the parts that the reports tell, and what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.core.arrays import Array, Floats, Positions
from hubbub.core.serialization import Portable
from hubbub.core.text import percent, plural, whole_percent
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_value
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new
from hubbub.resolution.part_names import part_title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Words(NamedTuple):
    """What parts and values are called."""

    part: str
    value: str


MAX_KNOWN_SHARE = 0.5  # of single values that are known not to be empty: with more, nobody needs parts
WORDS = {"map": Words("area", "cell"), "line": Words("range", "value"), "bars": Words("group", "value")}


@dataclass(frozen=True, eq=False)
class Part(Portable):
    """One part of a `Resolution`: a set of values, the estimate of their joint share, and its interval.

    Attributes
    ----------
    positions : array
        The positions of the values in the domain.
    values : array
        The values.
    estimate : float
        The sum of the estimate over the values.
    confidence_low, confidence_high : float
        The ends of the confidence interval. All parts' intervals hold together.
    told : bool
        Whether the interval is above 0 and half its width is at most the share of its middle that was asked for.
    title : str
        The part in a few words.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> answer = hb.resolve(hb.Reports.from_counts(travel, {"car": 500, "train": 300, "bike": 200}))
    >>> part = answer.parts[0]
    >>> part.title, part.told, round(part.low, 3), round(part.estimate, 3), round(part.high, 3)
    ('car', True, 0.527, 0.578, 0.63)
    """

    positions: Positions
    values: Array
    estimate: float
    confidence_low: float
    confidence_high: float
    told: bool
    title: str

    @property
    def low(self) -> float:
        """The low end of the interval that is shown, which holds the confidence interval and the estimate."""
        return min(self.confidence_low, self.estimate)

    @property
    def high(self) -> float:
        """The high end of the interval that is shown, which holds the confidence interval and the estimate."""
        return max(self.confidence_high, self.estimate)

    @property
    def extended(self) -> bool:
        """Whether the estimate lies outside the confidence interval, so that the interval that is shown is longer."""
        return not self.confidence_low <= self.estimate <= self.confidence_high


@dataclass(frozen=True, eq=False)
class Resolution(Portable):
    """The finest division of the values into parts whose shares the reports tell.

    Attributes
    ----------
    domain : Domain
        The values that are divided.
    parts : tuple of Part
        The told parts and what is left, in the order of the domain; of categories, the largest first.
    level : float
        The probability with which the intervals of all parts hold together, the choice of the parts included.
    relative : float
        The largest half-width of a told interval, relative to its middle.
    method : str
        ``"family"`` or ``"halves"``.
    note : str
        What limits the answer.
    divided : bool
        Whether a division was looked for; if not, `note` says why not, and what to ask instead.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> answer = hb.resolve(hb.Reports.from_counts(travel, {"car": 50, "train": 30, "bike": 20}))
    >>> print(answer.summary())
    These reports tell 2 groups apart, and nothing is left.
    >>> print(answer.to_frame()[["part", "low", "estimate", "high"]].round(2))
                 part   low  estimate  high
    0             car  0.41      0.58  0.75
    1  train and bike  0.25      0.42  0.59
    """

    domain: Domain
    parts: tuple[Part, ...]
    level: float
    relative: float
    method: str
    note: str = ""
    divided: bool = True

    @property
    def told(self) -> tuple[Part, ...]:
        """The parts whose shares the reports tell."""
        return tuple(part for part in self.parts if part.told)

    @property
    def rest(self) -> tuple[float, float] | None:
        """The low and the high end of the share of everything that is in no told part; None if nothing is."""
        left = [part for part in self.parts if not part.told]
        if not left:
            return None
        share = sum(part.estimate for part in left)
        low = max(sum(part.confidence_low for part in left), 1.0 - sum(part.confidence_high for part in self.told))
        high = min(sum(part.confidence_high for part in left), 1.0 - sum(part.confidence_low for part in self.told))
        return max(0.0, min(low, share)), min(1.0, max(high, share))

    @property
    def words(self) -> Words:
        """What parts and values of this domain are called."""
        return WORDS[self.domain.chart]

    def summary(self) -> str:
        """Return the answer as a sentence.

        Returns
        -------
        str
            How many parts the reports tell, and what is left.
        """
        told, rest = len(self.told), self.rest
        if not self.divided:
            return "These reports were not divided."
        if told == 0:
            return f"These reports tell no {self.words.part}s apart."
        text = f"These reports tell {plural(told, self.words.part)}{' apart' if told > 1 else ''}"
        if rest is None:
            return f"{text}, and nothing is left."
        return f"{text}; the rest holds {percent(rest[0])} to {percent(rest[1])}."

    def explain(self) -> str:
        """Return the answer with what it means, and what limits it.

        Returns
        -------
        str
            What printing shows, too.
        """
        if not self.divided:
            return f"{self.summary()} {self.note}"
        meaning = (
            f"The intervals of all parts hold together at {whole_percent(self.level)}, whatever parts the reports "
            f"suggested; half the width of a told one is at most {whole_percent(self.relative)} of its middle."
        )
        return f"{self.summary()} {meaning} {self.note}".strip()

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"Resolution({len(self.told)} told of {plural(len(self.parts), 'part')}, level={self.level:g})"

    def to_frame(self) -> pd.DataFrame:
        """Return the parts as a pandas table, with a row for each.

        Returns
        -------
        pandas.DataFrame
            Columns ``part``, ``values``, ``estimate``, ``low``, ``high`` and ``told``.
        """
        import pandas as pd

        return pd.DataFrame(
            [[part.title, part.values.tolist(), part.estimate, part.low, part.high, part.told] for part in self.parts],
            columns=["part", "values", "estimate", "low", "high", "told"],
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the parts: ranges as steps with bands, areas by their density, groups as bars with whiskers.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        from hubbub.resolution.resolution_plot import draw_parts

        axes = axes_or_new(axes)
        draw_parts(self, axes)
        return axes

    def document(self) -> dict[str, Any]:
        """Return the answer as plain Python values, ready for JSON.

        Returns
        -------
        dict
            With a version; the ends of the confidence intervals are in it, too.
        """
        rest = self.rest
        return {
            "version": 1,
            "level": self.level,
            "relative": self.relative,
            "method": self.method,
            "divided": self.divided,
            "told": len(self.told),
            "rest": None if rest is None else {"low": rest[0], "high": rest[1]},
            "note": self.note,
            "text": self.summary(),
            "parts": [
                {
                    "part": part.title,
                    "values": [json_value(value, self.domain) for value in part.values.tolist()],
                    "estimate": part.estimate,
                    "low": part.low,
                    "high": part.high,
                    "confidence_low": part.confidence_low,
                    "confidence_high": part.confidence_high,
                    "extended": part.extended,
                    "told": part.told,
                }
                for part in self.parts
            ],
        }

    def _repr_html_(self) -> str:
        rows = [
            [
                part.title,
                *(f"{number:.4f}" for number in (part.low, part.estimate, part.high)),
                "" if part.told else "rest",
            ]
            for part in self.parts
        ]
        facts = [Fact("resolution", self.explain())]
        return facts_html(facts) + table_html(["part", "low", "estimate", "high", ""], rows)


def make_part(domain: Domain, positions: Positions, estimate: float, low: float, high: float, *, told: bool) -> Part:
    """Return a part with its values and its title."""
    title = part_title(domain, positions, told=told)
    return Part(positions, domain.labels[positions], estimate, low, high, told, title)


def renamed(resolution: Resolution, domain: Domain) -> Resolution:
    """Return the same parts of the same values, named as another domain with these values names them."""
    parts = [replace(part, title=part_title(domain, part.positions, told=part.told)) for part in resolution.parts]
    return replace(resolution, domain=domain, parts=tuple(parts))


def suggestion(resolution: Resolution, lows: Floats) -> str:
    """Return the sentence for people who look at single values; `lows` are the low ends of their intervals, or NaN."""
    told, words = len(resolution.told), resolution.words
    apart = {0: f"no {words.part}s apart", 1: f"1 {words.part}"}.get(told, f"{told:,} {words.part}s apart")
    asked, known = int(np.count_nonzero(~np.isnan(lows))), int(np.count_nonzero(lows > 0.0))
    singles = f"single {words.value}s" if asked == lows.size else f"the {asked:,} {words.value}s with intervals"
    count = "none is" if known == 0 else f"{known:,} {'is' if known == 1 else 'are'}"
    if not resolution.divided:
        return f"Of {singles} {count} known not to be empty. {resolution.note}"
    return f"These reports tell {apart}; of {singles} {count} known not to be empty."


def is_mostly_unknown(lows: Floats) -> bool:
    """Whether most single values may be empty; then parts say more, or that there are none does."""
    asked, known = int(np.count_nonzero(~np.isnan(lows))), int(np.count_nonzero(lows > 0.0))
    return known < MAX_KNOWN_SHARE * asked
