"""`PrefixSearch`: what is asked of people whose words nobody can list, and how they report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import ClientError, WordClient, response_parameters
from hubbub.core.errors import DomainError, HubbubError, MechanismError, restated, shorten
from hubbub.core.serialization import Portable
from hubbub.core.validation import whole
from hubbub.discovery.word_codes import (
    Letters,
    continuation_count,
    letters_of_words,
    places_of,
    prefix_keys,
)
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.sampling import Randomness, ResponseLaw, source_of

NAME = "PrefixSearch"
USUAL_CANDIDATES = 25_000  # of a round, by default: a million users then take seconds
MAX_CANDIDATES = 2_000_000  # of a round: more would take hours
OUTPUTS = np.dtype([("round", np.uint32), ("seed", np.uint64), ("bucket", np.uint32)])


@dataclass(frozen=True)
class PrefixSearch(Portable):
    """A search for the most frequent words of people, where nobody can list the words.

    Every person is dealt to one of the rounds at random, and reports once, about the prefix of her word that the round
    asks for. With l the round's number of letters, g buckets and h the hash of texts under her seed::

        P(round, b | word, seed) = 1/rounds * e^epsilon / (e^epsilon + g - 1)   if b = h(first l letters of the word)
                                   1/rounds * 1 / (e^epsilon + g - 1)           otherwise

    A word that is shorter than l is followed by its end, so that a round tells "tea" from what begins with it. All
    reports can be collected at once: the server extends the most frequent prefixes of one round to the candidates of
    the next (`hubbub.discover`). This is PEM of Wang, Li and Jha (2018), by letters.

    Words are texts of code points: "é" written in two is not "é" written in one, so bring them into one form first.

    Guarantee: epsilon-local differential privacy of the whole word, for one report of each person.

    Parameters
    ----------
    alphabet : str
        All letters that a word may have.
    length : int
        The letters of the longest word.
    epsilon : float
        Plain epsilon, positive: smaller is more private.
    prefix_lengths : sequence of int, optional
        What each round asks for: increasing numbers of letters, the last one `length`. By default as few rounds as keep
        the candidates of each round below 25,000, where that is possible: people are shared among the rounds.
    keep : int, default 128
        How many prefixes of each round are extended.
    buckets : int, optional
        The number of buckets of the hash; by default round(e^epsilon) + 1.
    other : str, optional
        The letter of the alphabet that replaces letters outside it. By default such a word is refused.
    cut : bool, default False
        Whether longer words are cut after `length` letters; by default they are refused.

    Raises
    ------
    MechanismError
        If a setting has a wrong value, or a round would have more than 2,000,000 candidates.

    Examples
    --------
    >>> import hubbub as hb
    >>> search = hb.PrefixSearch("abcdefghijklmnopqrstuvwxyz", length=6, epsilon=4.0)
    >>> search.prefix_lengths
    (3, 4, 5, 6)
    >>> search.privatize(["tea", "coffee"], rng=1)["round"]
    array([4, 3], dtype=uint32)
    """

    alphabet: str
    length: int
    epsilon: float
    prefix_lengths: Sequence[int] | None = None
    keep: int = 128
    buckets: int | None = None
    other: str | None = None
    cut: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon, NAME)
        keep = whole(self.keep, "keep", NAME, default="128", error=MechanismError)
        try:
            checked = self._device([1] if self.length == 1 else [1, self.length])
            lengths = self.prefix_lengths
            if lengths is None:
                lengths = usual_prefix_lengths(len(self.alphabet), checked.length, keep)
            checked = self._device(lengths)
        except ClientError as error:
            raise restated(error, MechanismError, where=error.where.replace("WordClient", NAME)) from None
        kept = {"epsilon": checked.epsilon, "length": checked.length, "keep": keep, "buckets": checked.buckets}
        for name, value in {**kept, "prefix_lengths": tuple(checked.prefix_lengths)}.items():
            object.__setattr__(self, name, value)
        self._check_candidates()

    def _device(self, lengths: Sequence[int]) -> WordClient:
        return WordClient(self.alphabet, self.length, self.epsilon, lengths, self.buckets, self.other, self.cut)

    def _check_candidates(self) -> None:
        known = 0
        for asked in self.lengths:
            prefixes = self.keep if known else 1
            candidates = continuation_count(prefixes, asked - known, len(self.alphabet), is_first=not known)
            if candidates > MAX_CANDIDATES:
                raise MechanismError(
                    "a round has too many candidates",
                    where=f"{NAME}(prefix_lengths=)",
                    got=f"{candidates:,} continuations from {known} to {asked} letters",
                    expected=f"at most {MAX_CANDIDATES:,}",
                    remedy="ask for fewer letters more in each round, keep fewer prefixes, or leave prefix_lengths out",
                )
            known = asked

    @property
    def lengths(self) -> tuple[int, ...]:
        """The letters that each round asks for."""
        return tuple(self.prefix_lengths or ())

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.lengths)

    @property
    def device_settings(self) -> dict[str, Any]:
        """What a device needs to know, as plain values: ``hubbub.client.WordClient(**search.device_settings)``."""
        names = ("alphabet", "length", "epsilon", "prefix_lengths", "buckets", "other", "cut")
        return {name: getattr(self, name) for name in names} | {"prefix_lengths": list(self.lengths)}

    def to_json(self) -> str:
        """Return the settings as JSON, as ``hubbub discover`` reads them from a file.

        Returns
        -------
        str
            The document; ``hubbub.PrefixSearch(**json.loads(text))`` is the same search.
        """
        return json.dumps({**self.device_settings, "keep": self.keep}, ensure_ascii=False)

    @cached_property
    def law(self) -> HashedResponseLaw:
        """The exact distribution of a round's reports, over the keys of prefixes."""
        g = int(self.buckets or 2)
        return HashedResponseLaw(ResponseLaw(g, *response_parameters(g, Fraction(self.epsilon))))

    @cached_property
    def own_support(self) -> float:
        """The probability that the bucket is that of the own prefix: (keep + (1 - keep) / buckets) of the exact law."""
        response = self.law.response
        keep = Fraction(response.keep, 1 << response.width)
        return float(keep + (1 - keep) / response.values)

    @property
    def other_support(self) -> float:
        """The probability that the bucket is that of another text: under a random seed, 1 / buckets."""
        return 1.0 / self.law.response.values

    @cached_property
    def letters(self) -> Letters:
        """The alphabet's code points."""
        rows = letters_of_words([self.alphabet], len(self.alphabet))
        return rows.ravel()

    def privatize(self, words: Iterable[str], *, rng: Randomness = None) -> NDArray[Any]:
        """Return one report for each person's word.

        Parameters
        ----------
        words : iterable of str
            One word of each person.
        rng : numpy.random.Generator or int, optional
            None for real reports, drawn from the exact `law` with the operating system's randomness; a generator or a
            seed to simulate.

        Returns
        -------
        numpy.ndarray
            A structured array with `round` (from 1), `seed` and `bucket`.

        Raises
        ------
        DomainError
            If a word is empty or no text; or too long, or of letters outside the alphabet, and the search does not say
            what then.
        MechanismError
            If `rng` is not a source of randomness.

        Examples
        --------
        >>> import hubbub as hb
        >>> search = hb.PrefixSearch("abc", length=2, epsilon=1.0)
        >>> search.privatize(["a", "cb"], rng=0).dtype.names
        ('round', 'seed', 'bucket')
        """
        source = source_of(rng)
        given = self._listed(words)
        device, lengths = self._device(self.lengths), self.lengths
        distinct = list(dict.fromkeys(given))
        sent = [_letters(device, word) for word in distinct]
        rows, place = letters_of_words(sent, self.length), places_of(given, distinct)
        outputs: NDArray[Any] = np.empty(len(given), dtype=OUTPUTS)
        turns = source.integers(self.rounds, len(given))
        outputs["round"] = turns + 1
        for turn, asked in enumerate(lengths):
            mine = turns == turn
            codes = self.law.draw(prefix_keys(rows, asked)[place[mine]].astype(np.int64), source)
            outputs["seed"][mine], outputs["bucket"][mine] = codes[:, 0], codes[:, 1]
        return outputs

    def _listed(self, words: object) -> list[Any]:
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise self._no_list(words)
        given = words.tolist() if isinstance(words, np.ndarray) else list(words)
        if not all(isinstance(word, str) for word in given):
            wrong = next(place for place, word in enumerate(given) if not isinstance(word, str))
            raise DomainError(
                "not a word",
                where=f"{NAME}.privatize(words), position {wrong}",
                got=shorten(given[wrong]),
                expected="a text of at least one letter",
                remedy="leave out people without a word",
            )
        return given

    def _no_list(self, words: object) -> HubbubError:
        return DomainError(
            "words must be a list",
            where=f"{NAME}.privatize(words)",
            got=shorten(words),
            expected="one word of each person",
            remedy="write [word] for a single person",
        )


def _letters(device: WordClient, word: str) -> str:
    """Return a word as it is reported; here, unlike on a device, a message may show it."""
    try:
        return device.letters(word)
    except ClientError as error:
        raise restated(error, DomainError, where=f"{NAME}.privatize(words)", got=shorten(word)) from None


def usual_prefix_lengths(letters: int, length: int, keep: int) -> tuple[int, ...]:
    """Return the fewest rounds with at most `USUAL_CANDIDATES` each, one letter each where even these are more.

    >>> usual_prefix_lengths(26, 6, 64), usual_prefix_lengths(26, 6, 32), usual_prefix_lengths(2, 20, 64)
    ((3, 4, 5, 6), (2, 4, 6), (13, 20))
    """
    first = _most_steps(1, letters, length, is_first=True)
    further = _most_steps(keep, letters, length, is_first=False)
    rounds = 1 + max(0, math.ceil((length - first) / further))
    return tuple(sorted(length - further * turn for turn in range(rounds)))


def _most_steps(prefixes: int, letters: int, length: int, *, is_first: bool) -> int:
    fits = (
        steps
        for steps in range(length, 1, -1)
        if continuation_count(prefixes, steps, letters, is_first=is_first) <= USUAL_CANDIDATES
    )
    return next(fits, 1)
