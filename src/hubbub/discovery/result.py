"""The result of `discover`: the words that were found, how frequent they are, and what could have been missed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Array, Floats
from hubbub.core.serialization import Portable
from hubbub.core.text import percent, plural, quoted, whole_percent
from hubbub.discovery.prefix_search import PrefixSearch
from hubbub.discovery.support_counts import SupportLaw
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_ROWS_IN_NOTEBOOK = 20
USUAL_CHANCE = 0.9  # of being found: what `explain` states


class SearchRound(NamedTuple):
    """What one round of a search tested.

    Attributes
    ----------
    asked : int
        The letters of its prefixes.
    users : int
        How many people reported in it.
    candidates : int
        How many prefixes were tested.
    kept : int
        How many of them were extended; in the last round, the words that were found.
    cutoff : int
        A candidate that more of the reports support is sure to be kept.
    missed_at_most : float
        An upper limit of the share of all candidates that were not kept. Those of all rounds hold together.
    """

    asked: int
    users: int
    candidates: int
    kept: int
    cutoff: int
    missed_at_most: float


@dataclass(frozen=True, eq=False)
class Discovery(Portable):
    """The most frequent words, how frequent they are, and what could have been missed: what `hubbub.discover` returns.

    Estimates are unbiased for words named beforehand; words found because their reports were many tend to have too
    large a one. The intervals take that into account.

    Attributes
    ----------
    search : PrefixSearch
        What people reported for.
    users : int
        How many people reported.
    level : float
        How likely all intervals hold at once.
    words : tuple of str
        The words, the most frequent first.
    estimates : array
        The estimated share of each word.
    low, high : array
        The interval of each.
    rounds : tuple of SearchRound
        What each round tested, and left out.
    notes : tuple of str
        What was not used of the reports: columns that no search knows.

    Examples
    --------
    >>> import hubbub as hb
    >>> search = hb.PrefixSearch("abcdefghijklmnopqrstuvwxyz", length=6, epsilon=4.0, keep=8)
    >>> found = hb.discover(search, search.privatize(["tea"] * 6000 + ["coffee"] * 4000, rng=1))
    >>> found.words[:2], int(found.certain.sum()), found.epsilon
    (('tea', 'coffee'), 2, 4.0)
    """

    search: PrefixSearch
    users: int
    level: float
    words: tuple[str, ...]
    estimates: Floats
    low: Floats
    high: Floats
    rounds: tuple[SearchRound, ...]
    notes: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """What each person spent, with her one report."""
        return self.search.epsilon

    @property
    def certain(self) -> Array:
        """For each word, whether its interval lies above 0: somebody has it. All of them are right at once."""
        return self.low > 0

    @property
    def missed_at_most(self) -> float:
        """With the probability `level`, no word that was not found has a larger share."""
        return max(each.missed_at_most for each in self.rounds)

    def chance(self, share: float) -> float:
        """Return a lower bound of how likely a word with this share is found, by as many people and with these cutoffs.

        More reports than the cutoff have to support it in every round. Its prefixes are at least as frequent as the
        word, and reports of different rounds are independent, so this is the product over the rounds of binomial
        probabilities: a lower bound, as what agrees with earlier rounds is kept below the cutoff, too.

        Parameters
        ----------
        share : float
            The share of the word, between 0 and 1.

        Returns
        -------
        float
            The probability.

        Raises
        ------
        SettingError
            If the share is not a number between 0 and 1.
        """
        return float(self._chances(np.array([validation.share(share, "share", "Discovery.chance")]))[0])

    def findable(self, chance: float = USUAL_CHANCE) -> float | None:
        """Return a share from which on a word is found with this probability, or a larger one.

        Parameters
        ----------
        chance : float, default 0.9
            The probability, as in `chance`.

        Returns
        -------
        float or None
            The share, rounded up to a thousandth of itself; None if with so few reports no share is found so surely.

        Raises
        ------
        SettingError
            If the chance is not a number between 0 and 1.
        """
        chance = validation.share(chance, "chance", "Discovery.findable")
        low, high = 1e-12, 1.0
        if self._chances(np.array([high]))[0] < chance:
            return None
        while high / low > 1.001:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if self._chances(np.array([middle]))[0] >= chance else (middle, high)
        return high

    def _chances(self, shares: Floats) -> Floats:
        chances = np.ones_like(shares)
        for each in self.rounds:
            law = SupportLaw(each.users, self.search.own_support, self.search.other_support)
            chances *= law.chance_above(each.cutoff, shares)
        return chances

    @property
    def sentence(self) -> str:
        """What a reader should take away."""
        if not self.words:
            return f"No word was found among the reports of {plural(self.users, 'person', 'people')}."
        first = (
            f"{quoted(self.words[0])} with {percent(self.estimates[0])} "
            f"({percent(self.low[0])} to {percent(self.high[0])})"
        )
        sure = int(self.certain.sum())
        surely = "all of which are surely used" if sure == len(self.words) else f"of which {sure:,} are surely used"
        return f"{plural(len(self.words), 'word')} found, {surely}; the most frequent is {first}."

    def explain(self) -> str:
        """Return the result in plain sentences.

        Returns
        -------
        str
            What was found, how far the numbers can be trusted, what could have been missed, and what people spent.
        """
        level, chance = whole_percent(self.level), whole_percent(USUAL_CHANCE)
        findable = self.findable()
        return " ".join(
            [
                self.sentence,
                f"All intervals hold at once with a probability of {level}.",
                f"With the same probability, no word that was not found has more than {percent(self.missed_at_most)}."
                if self.missed_at_most < 1.0
                else "So few reports say nothing about words that were not found.",
                f"No share is large enough to be found with a probability of {chance} by so few reports."
                if findable is None
                else f"A word with {percent(findable)} is found with a probability of {chance} or more.",
                f"Each of {plural(self.users, 'person', 'people')} reported once, and spent epsilon {self.epsilon:g}.",
                *(f"Note: {note}." for note in self.notes),
            ]
        )

    def facts(self) -> list[Fact]:
        """Return everything but the table, as labels with texts."""
        rounds = "\n".join(
            f"{plural(each.asked, 'letter')}: {plural(each.users, 'report')}, {plural(each.candidates, 'candidate')}, "
            f"{each.kept:,} kept; others have at most {percent(each.missed_at_most)}"
            for each in self.rounds
        )
        return [
            Fact("in short", self.sentence),
            Fact("intervals", f"{whole_percent(self.level)} for all at once"),
            Fact("missed", f"no word has more than {percent(self.missed_at_most)} ({whole_percent(self.level)})"),
            Fact("rounds", rounds),
            Fact("users", f"{self.users:,}, each with epsilon {self.epsilon:g}"),
            *(Fact("note", note) for note in self.notes),
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return the words as a pandas table, the most frequent first.

        Returns
        -------
        pandas.DataFrame
            Columns `word`, `estimate`, `low`, `high` and `certain`.
        """
        import pandas as pd

        columns = {"estimate": self.estimates, "low": self.low, "high": self.high, "certain": self.certain}
        return pd.DataFrame({"word": np.array(self.words, dtype=object), **columns})

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With the words, the rounds, and the settings of the search.
        """
        numbers = zip(self.words, *(each.tolist() for each in self._columns()), strict=True)
        return {
            "version": 1,
            "users": self.users,
            "epsilon": self.epsilon,
            "level": self.level,
            "missed_at_most": self.missed_at_most,
            "text": self.explain(),
            "search": {**self.search.device_settings, "keep": self.search.keep},
            "rounds": [each._asdict() for each in self.rounds],
            "words": [
                {"word": word, "estimate": estimate, "low": low, "high": high} for word, estimate, low, high in numbers
            ],
        }

    def to_json(self) -> str:
        """Return the result as one JSON document, with a version.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def plot(self, axes: Axes | None = None, *, most: int = 30) -> Axes:
        """Draw the most frequent words with their intervals.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.
        most : int, default 30
            How many words to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        SettingError
            If `most` is not a whole number, at least 1.
        """
        from hubbub.discovery.discovery_plot import draw_discovery

        most = validation.whole(most, "most", "Discovery.plot", default="30")
        axes = axes_or_new(axes)
        draw_discovery(self, axes, most)
        return axes

    def _columns(self) -> tuple[Floats, Floats, Floats]:
        return self.estimates, self.low, self.high

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"Discovery({plural(len(self.words), 'word')}, {plural(self.users, 'user')})"

    def _repr_html_(self) -> str:
        shown = zip(self.words[:MAX_ROWS_IN_NOTEBOOK], *self._columns(), strict=False)
        rows = [[word, percent(estimate), percent(low), percent(high)] for word, estimate, low, high in shown]
        return facts_html(self.facts()) + table_html(["word", "share", "low", "high"], rows)
