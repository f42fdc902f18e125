"""`discover`: the most frequent words of people, from one report of each."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, frozen, largest_first
from hubbub.core.errors import SettingError, shorten, warn_caller
from hubbub.core.progress import Progress, stepwise
from hubbub.discovery.collected_outputs import WHERE, checked_outputs, collection_notes
from hubbub.discovery.consistent_shares import RoundShares, consistent_shares
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
    most: int = 32,
) -> Generator[Progress, None, Discovery]:
    """Find the most frequent words, and say how frequent they are and what could have been missed.

    The first round's candidates are all prefixes of its length, those of each further round all continuations of the
    `search.keep` most promising prefixes. Half of these are those with the most supports, the reports whose bucket is
    theirs. The others have the largest shares among those that agree with earlier rounds: the shares of all
    continuations of a prefix add up to its own. The words are those that are certain in the last round, and as many of
    the next promising as there is room for.

    Candidates were chosen by reports of other people than those they are then judged by. So, with C candidates in the
    last round, the exact binomial limits at an error of (1 - level) / (2 C) on either side hold for all words at once,
    although those that look most frequent are the ones that are shown. They use the last round's reports alone.

    A word is missed where, in some round, its prefix was a candidate and not kept. `missed_at_most` is the largest of
    the upper limits of such candidates, over all rounds; with the probability `level` none of them has more, and so no
    word that was not found.

    Parameters
    ----------
    search : PrefixSearch
        The search that people reported for.
    outputs : numpy.ndarray or pandas.DataFrame
        What `search.privatize` returned, or a table of reports of devices: with columns `round`, `seed` and `bucket`,
        or `round` and `output`. One report of each person; other columns are not used, with a warning.
    level : float, default 0.95
        How likely all intervals hold at once; and how likely no missed word is more frequent than `missed_at_most`.
    most : int, default 32
        How many words to find, at most `search.keep`.

    Returns
    -------
    Discovery
        With `words`, `estimates`, `low`, `high`, `missed_at_most`, `to_frame()`, `explain()` and `plot()`.

    Raises
    ------
    SettingError
        If `search` is not a search, or a keyword has a wrong value.
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
    error = 1.0 - level
    most = validation.whole(most, "most", WHERE, default="32")
    turns, codes = checked_outputs(search, outputs)
    notes = collection_notes(outputs)
    warn_caller(notes)
    rows: Letters = np.zeros((1, search.length), dtype=np.uint32)
    rounds: list[SearchRound] = []
    tested: list[RoundShares] = []
    known = 0
    for turn, asked in enumerate(search.lengths):
        yield Progress(turn, search.rounds, f"prefixes of {asked} letters")
        is_last = turn == search.rounds - 1
        rows, parents = continuations(rows, known, asked, search.letters)
        own = codes[turns == turn]
        law = SupportLaw(len(own), search.own_support, search.other_support)
        counts = count_supports(own, prefix_keys(rows, asked), int(search.buckets or 2))
        tested.append(RoundShares(law.estimate(counts), law.precision(counts), parents, np.zeros(0, dtype=np.int64)))
        slots = min(most, search.keep) if is_last else search.keep
        own_error = error / (2 * counts.size)  # of either limit of a word
        sure_slots, sure_error = (slots, own_error) if is_last else ((slots + 1) // 2, 0.5)
        first, cutoff = _sure_places(counts, law, sure_slots, sure_error)
        kept = _filled(first, consistent_shares(tested), slots)
        if kept.size == 0 and not is_last:  # the next round needs candidates
            kept = np.array([np.argmax(counts)])
        tested[-1] = tested[-1]._replace(kept=kept)
        left_out = int(np.delete(counts, kept).max(initial=-1))
        missed = _limit(law, left_out, error / (search.rounds * counts.size))
        rounds.append(SearchRound(asked, len(own), counts.size, kept.size, cutoff, missed))
        rows, known = rows[kept], asked
    order = largest_first(counts[kept].astype(np.float64))
    shown = kept[order]
    return Discovery(
        search,
        turns.size,
        level,
        tuple(words_of_letters(rows[order])),
        frozen(np.minimum(law.estimate(counts[shown]), 1.0)),
        frozen(law.low(counts[shown], own_error)),
        frozen(law.high(counts[shown], own_error)),
        tuple(rounds),
        notes,
    )


def _sure_places(counts: Positions, law: SupportLaw, slots: int, error: float) -> tuple[Positions, int]:
    """Return the candidates with the most supports, and the number of supports that is enough if it is exceeded.

    They are at most `slots`, and none has a number that is reached by chance with a probability above `error`.
    """
    order = np.argsort(-counts, kind="stable")
    by_chance = law.reached_by_chance(error)
    first = order[:slots]
    cutoff = by_chance if counts.size <= slots else max(by_chance, int(counts[order[slots]]))
    return first[counts[first] > by_chance], cutoff


def _filled(first: Positions, consistent: Floats, slots: int) -> Positions:
    """Return these candidates, and those with the largest consistent shares, as far as they are positive."""
    is_taken = np.zeros(consistent.size, dtype=bool)
    is_taken[first] = True
    order = np.argsort(-consistent, kind="stable")
    others = order[(consistent[order] > 0) & ~is_taken[order]]
    return np.concatenate([first, others[: slots - first.size]])


def _limit(law: SupportLaw, left_out: int, error: float) -> float:
    """Return the upper limit of all candidates with at most `left_out` supports; 0 if none was left out."""
    return 0.0 if left_out < 0 else float(law.high(np.array([left_out]), error)[0])
