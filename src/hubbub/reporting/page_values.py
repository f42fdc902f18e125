"""Everything the page shows, as computed values: `page_content` fills it in, `html_page` renders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hubbub.attribute_shares import AttributeShares
from hubbub.core.arrays import Floats, largest_first
from hubbub.core.errors import HubbubError
from hubbub.core.serialization import Portable
from hubbub.domains import Domain
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.set_intervals import SetShares
from hubbub.rendering import Fact
from hubbub.reporting.map_regions import MapRegions
from hubbub.resolution import Resolution, is_mostly_unknown, suggestion

DEFAULT_TITLE = "What the crowd said"
DEFAULT_LEVEL = 0.95
GOOD, WARNING, BAD, UNKNOWN = "good", "warning", "bad", "unknown"
VALUES_VIEW, CERTAINTY_VIEW, PARTS_VIEW = "values", "certainty", "parts"
HOPELESS_SHARE = 0.1  # fewer values than this are known not to be empty: the page opens with parts that are told


class View(NamedTuple):
    """One of the ways in which the chart shows the estimate."""

    name: str  # VALUES_VIEW, CERTAINTY_VIEW or PARTS_VIEW
    label: str


@dataclass(frozen=True)
class Verdict(Portable):
    """A question, its answer in a word or two, and the reasons in sentences."""

    question: str
    answer: str
    text: str
    tone: str = UNKNOWN  # GOOD, WARNING, BAD or UNKNOWN


@dataclass(frozen=True, eq=False)
class Bounds(Portable):
    """Bounds that hold for all values at once, and so give outer bounds for any set. NaN: no bound is known."""

    low: Floats
    high: Floats
    reason: str  # why there is nothing tighter, in a sentence


@dataclass(frozen=True, eq=False)
class Page(Portable):
    """The content of a report, in the order of ``domain.labels`` where it is about values."""

    title: str
    summary: str  # one or two plain sentences: what the crowd said
    domain: Domain
    users: int
    method: str
    level: float
    estimate: Floats
    low: Floats  # of confidence intervals, which need not hold the estimate; NaN: not computed
    high: Floats
    noisy: Floats | None  # the outputs as they were sent, counted by value
    noisy_note: str  # what `noisy` is, or why there is none
    sets: SetShares | Bounds  # from which the interval of any set is computed
    verdicts: tuple[Verdict, ...]
    facts: tuple[Fact, ...]  # how it was computed
    notes: tuple[str, ...] = ()  # rejected rows, intervals that were left out, ...
    texts: Mapping[str, str] = field(default_factory=dict)  # files offered for download: name to content (GeoJSON)
    resolution: Resolution | None = None  # the parts that the reports tell apart; None: not computed
    regions: MapRegions | None = None  # districts that readers know; None: none were given
    attributes: AttributeShares | None = None  # of combinations; None: values are no combinations

    def __post_init__(self) -> None:
        """Refuse parts that do not belong to the values of the domain: numbers would stand beside the wrong names."""
        values = len(self.domain)
        arrays = {"estimate": self.estimate, "low": self.low, "high": self.high, "noisy": self.noisy}
        arrays |= {f"sets.{name}": array for name, array in vars(self.sets).items() if isinstance(array, np.ndarray)}
        if isinstance(self.sets, SetShares) and isinstance(self.sets.covariance, CompactCovariance):
            arrays["sets.covariance.diagonal"] = self.sets.covariance.diagonal
        for name, array in arrays.items():
            if array is None:
                continue
            shape = (values, values) if name == "sets.covariance" else (values,)
            if array.shape != shape:
                raise HubbubError(
                    f"{name} does not have one number for each value of the page's domain",
                    where=f"Page({name}=)",
                    got=f"shape {array.shape}",
                    expected=f"shape {shape}: {self.domain.describe()}",
                    remedy="give one number for each value, in the order of domain.labels",
                )
            if (name == "estimate" or name.startswith(("sets.centre", "sets.covariance"))) and not np.isfinite(
                array
            ).all():
                raise HubbubError(
                    f"{name} has entries that are not finite",
                    where=f"Page({name}=)",
                    got=f"{int((~np.isfinite(array)).sum()):,} of {array.size:,} entries",
                    expected="finite numbers; only bounds may be unknown (NaN)",
                    remedy="leave out intervals that could not be computed: give Bounds instead of SetShares",
                )
        if self.regions is not None and len(self.regions.of_cell) != values:
            raise HubbubError(
                "regions do not say for each value of the page's domain where it is",
                where="Page(regions=)",
                got=f"the regions of {len(self.regions.of_cell):,} cells",
                expected=f"those of {values:,}: {self.domain.describe()}",
                remedy="make the regions for the grid of the page",
            )
        if self.resolution is not None:
            positions = np.concatenate([part.positions for part in self.resolution.parts])
            if not np.array_equal(np.sort(positions), np.arange(values)):
                raise HubbubError(
                    "resolution does not divide the values of the page's domain",
                    where="Page(resolution=)",
                    got=f"parts with {positions.size:,} positions",
                    expected=f"every one of {values:,} values in one part: {self.domain.describe()}",
                    remedy="resolve the reports that the page is about",
                )

    @property
    def shown_low(self) -> Floats:
        """The low ends as the page shows them: extended to the estimate where that lies below."""
        return np.minimum(self.low, self.estimate)

    @property
    def shown_high(self) -> Floats:
        """The high ends as the page shows them: extended to the estimate where that lies above."""
        return np.maximum(self.high, self.estimate)

    @property
    def single_told(self) -> int:
        """How many values are known not to be empty."""
        return int(np.count_nonzero(self.shown_low > 0.0))

    @property
    def suggestion(self) -> str:
        """What the reports tell apart beside single values, as a sentence; empty where that does not help."""
        if self.resolution is None or not is_mostly_unknown(self.shown_low):
            return ""
        return suggestion(self.resolution, self.shown_low)

    @property
    def has_parts(self) -> bool:
        """Whether there are parts to show beside single values."""
        return self.resolution is not None and bool(self.resolution.told)

    @property
    def opens_with_parts(self) -> bool:
        """Whether parts are shown first: single values are hopeless, and at least two parts are told."""
        hopeless = self.single_told < HOPELESS_SHARE * len(self.domain)
        return hopeless and self.resolution is not None and len(self.resolution.told) > 1

    @property
    def views(self) -> tuple[View, ...]:
        """The views of the chart: of a map also how sure its shares are; parts where there are any."""
        is_map = self.domain.chart == "map"
        views = [View(VALUES_VIEW, "Estimate" if is_map else "Single values")]
        if is_map and not np.isnan(self.low).all():
            views.append(View(CERTAINTY_VIEW, "How sure"))
        if self.resolution is not None and self.has_parts:
            told = f"{self.resolution.words.part.capitalize()}s that can be told apart"
            views.append(View(PARTS_VIEW, "What the reports resolve" if is_map else told))
        return tuple(views)

    @property
    def first_view(self) -> View:
        """The view that the page opens with."""
        return self.views[-1 if self.opens_with_parts else 0]

    def largest_first(self) -> list[int]:
        """Return the positions of all values, those with the largest shares first."""
        order: list[int] = largest_first(self.estimate).tolist()
        return order
