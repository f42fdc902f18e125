"""All that the page shows, computed: what turns reports into a page and what draws it meet here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hubbub.core.arrays import Floats
from hubbub.core.portable import Portable
from hubbub.domains import Domain
from hubbub.rendering import Fact

GOOD, WARNING, BAD, UNKNOWN = "good", "warning", "bad", "unknown"


@dataclass(frozen=True)
class Verdict(Portable):
    """A question, its answer in a word or two, and in sentences."""

    question: str
    answer: str
    text: str
    tone: str = UNKNOWN  # GOOD, WARNING, BAD or UNKNOWN: never told by colour alone


@dataclass(frozen=True, eq=False)
class Covariance(Portable):
    """Intervals of the share of any set of values: centre summed over it, plus or minus z times its deviation.

    `centre` is an estimate without regard to signs, `matrix` its covariance: sets chosen in advance are covered.
    """

    centre: Floats
    matrix: Floats
    z: float


@dataclass(frozen=True, eq=False)
class Bounds(Portable):
    """Bounds that hold for all values together: of any set they give outer bounds. NaN: nothing is known of a value."""

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
    low: Floats  # NaN: not computed
    high: Floats
    noisy: Floats | None  # what the reports look like if they are taken at their word
    noisy_note: str  # what `noisy` is, or why there is none
    sets: Covariance | Bounds
    verdicts: tuple[Verdict, ...]
    facts: tuple[Fact, ...]  # how it was computed
    notes: tuple[str, ...] = ()  # rows that were rejected, intervals that were left out, ...
    texts: Mapping[str, str] = field(default_factory=dict)  # files offered for download: name to content (GeoJSON)
