"""`discover`: the most frequent words of people, from one report of each."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.discovery.collected_outputs import WHERE, checked_outputs
from hubbub.discovery.prefix_search import PrefixSearch
from hubbub.discovery.result import Discovery, SearchRound
from hubbub.discovery.support_counts import SupportLaw, count_supports
from hubbub.discovery.word_codes import Letters, continuations, prefix_keys, words_of_letters


@stepwise
def discover(
    search: PrefixSearch,
    outputs: Any,
    *,
    level: float = 0.95,
) -> Generator[Progress, None, Discovery]:
    """Find the most frequent words, and say how frequent they are and what could have been missed.

    The first round's candidates are all prefixes of its length, those of each further round all continuations of the
    prefixes that were kept: the `search.keep` with the most supporting reports, among those with more than by chance.
    What is left after the last round are the words.

    Candidates were chosen by reports of other people than those they are then judged by. So, with C candidates in the
    last round, the exact binomial limits at an error of (1 - level) / (2 C) on either side hold for all words at once,
    although those with the most reports are the ones that are shown.

    A word is missed if, in some round, its prefix was a candidate and not kept. `missed_at_most` is the largest upper
    limit, over all rounds, of candidates that were not kept; with the probability `level` none of them has more, and so
    no word that was not found.

    Parameters
    ----------
    search : PrefixSearch
        The search that people reported for.
    outputs : numpy.ndarray or pandas.DataFrame
        What `search.privatize` returned, or a table of reports of devices: with columns `round`, `seed` and `bucket`,
        or `round` and `output`. One report of each person.
    level : float, default 0.95
        How likely all intervals hold at once; and how likely no missed word is more frequent than `missed_at_most`.

    Returns
    -------
    Discovery
        With `words`, `estimates`, `low`, `high`, `missed_at_most`, `to_frame()`, `explain()` and `plot()`.

    Raises
    ------
    SettingError
        If `search` is not a search, or `level` is not between 0 and 1.
    OutputError
        If the outputs are not those of this search.
    ReportsError
        If a round has no reports.

    Examples
    --------
    >>> import hubbub as hb
    >>> search = hb.PrefixSearch("abcdefghijklmnopqrstuvwxyz", length=6, epsilon=4.0)
    >>> outputs = search.privatize(["tea"] * 6000 + ["coffee"] * 3000 + ["water"] * 1000, rng=1)
    >>> found = hb.discover(search, outputs)
    >>> found.words[:3]
    ('tea', 'coffee', 'water')
    """
    if not isinstance(search, PrefixSearch):
        raise SettingError(
            "not a search",
            where=f"{WHERE}(search)",
            got=shorten(search),
            expected="a hubbub.PrefixSearch",
            remedy="build it with the settings that the devices had",
        )
    level = validation.level(level, WHERE)
    turns, codes = checked_outputs(search, outputs)
    candidates: Letters = np.zeros((1, search.length), dtype=np.uint32)
    rounds, known, error = [], 0, 1.0 - level
    for turn, asked in enumerate(search.lengths):
        yield Progress(turn, search.rounds, f"prefixes of {asked} letters")
        candidates = continuations(candidates, known, asked, search.letters)
        own = codes[turns == turn]
        law = SupportLaw(len(own), search.own_support, search.other_support)
        counts = count_supports(own, prefix_keys(candidates, asked), int(search.buckets or 2))
        order = np.argsort(-counts, kind="stable")
        kept = order[: search.keep]
        kept = kept[law.estimate(counts[kept]) > 0]
        left_out = int(counts[order[kept.size]]) if kept.size < counts.size else -1
        missed = _limit(law, left_out, error / (search.rounds * counts.size))
        rounds.append(SearchRound(asked, len(own), counts.size, kept.size, left_out, missed))
        tested, counts, candidates, known = counts.size, counts[kept], candidates[kept], asked
    return Discovery(
        search,
        turns.size,
        level,
        tuple(words_of_letters(candidates)),
        frozen(np.minimum(law.estimate(counts), 1.0)),
        frozen(law.low(counts, error / (2 * tested))),
        frozen(law.high(counts, error / (2 * tested))),
        tuple(rounds),
    )


def _limit(law: SupportLaw, left_out: int, error: float) -> float:
    """Return the upper limit of all candidates with at most `left_out` supports; 0 if none was left out."""
    return 0.0 if left_out < 0 else float(law.high(np.array([left_out]), error)[0])
