"""Which reports fake users might send: for each value those that speak most for it; all of them where they are few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.likelihood import Point
from hubbub.mechanisms import Geometric, LocalHashing, Mechanism, PlanarGeometric, SubsetSelection
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.unary import UnaryEncoding
from hubbub.reports import Reports
from hubbub.reports.blocks import BitSums, Joint, Singles

MOST_SCANNED = 4_000_000  # entries of the likelihoods of all reports that are looked at
FEWEST_SCANNED = 32  # reports that are looked at on the largest domains
MOST_SEEDS = 4_096  # seeds of a hash among which a good one is searched
MOST_HASHED = 2_000_000  # hashes for that search
MOST_FORMS = 4  # ways in which users combine mechanisms, for each of which fakes are tried
MOST_LETTERS = 60  # of an output in a sentence
SAME = 1e-9  # reports whose votes agree to this are one


@dataclass(frozen=True)
class Fakes:
    """What fake users of one block might send: one report for each column."""

    block: int
    votes: Floats  # g / f, values by reports; the mean over its patterns where a report has several
    length: float  # of how many patterns a report consists: 1, or a bit for each value where only sums were kept
    words: Callable[[int], str]
    codes: Codes | None = None  # of reports that are one output...
    logs: Floats | None = None  # ...and the log-likelihoods of the reports; neither for sums of bits


class Fake(NamedTuple):
    """One of them."""

    fakes: Fakes
    column: int

    @property
    def votes(self) -> Floats:
        """Its vote for each value."""
        return self.fakes.votes[:, self.column]

    def like(self, other: Fake) -> bool:
        """Whether both say the same: their likelihoods agree but for a factor."""
        same = self.fakes.length == other.fakes.length
        return same and bool(np.allclose(self.votes, other.votes, rtol=SAME, atol=0.0))


def fake_reports(reports: Reports, honest: Point, share: float) -> list[Fakes]:
    """Return what fakes might send, block by block of the reports, given the maximum without them."""
    size = honest.theta.size
    around = (1.0 - share) * honest.theta + share / size  # a report that no value with mass can give has a vote, too
    whole = _Values(around, honest, reports.domain.among)
    found: list[Fakes] = []
    for place, block in enumerate(reports.blocks):
        if isinstance(block, BitSums):
            found.append(_of_sums(place, block, whole))
        elif isinstance(block, Singles):
            codes = whole.outputs(block.mechanism, block.codes)
            logs = block.mechanism.log_columns(codes, whole.among)
            words = _words_of(block.mechanism, codes)
            found.append(Fakes(place, whole.votes(logs), 1.0, words, codes, logs))
        elif isinstance(block, Joint):
            found.extend(_of_joint(place, block, whole))
    return found


@dataclass(frozen=True)
class _Values:
    """The values as fakes see them: how likely each is, and which are kept."""

    shares: Floats
    honest: Point
    among: Positions | None  # positions of the values in the mechanisms' domain; None: all of it

    @property
    def places(self) -> Positions:
        return np.arange(self.shares.size) if self.among is None else self.among

    def votes(self, logs: Floats) -> Floats:
        """Return g / f."""
        return np.exp(self.log_votes(logs))

    def log_votes(self, logs: Floats) -> Floats:
        """Return log (g / f), -inf throughout for a report that no value can give."""
        from scipy.special import logsumexp

        fitted = np.asarray(logsumexp(np.log(self.shares)[:, None] + logs, axis=0))
        return logs - np.where(np.isfinite(fitted), fitted, 0.0)

    @property
    def targets(self) -> Positions:
        """The values that fakes may aim at: all of them, or those closest to having mass and some of the others."""
        if self.shares.size <= self._most:
            return np.arange(self.shares.size)
        order = closest(self.honest)
        return np.unique(np.concatenate([order[: self._most // 2], _spread(order, self._most // 2)]))

    def outputs(self, mechanism: Mechanism, sent: Codes) -> Codes:
        """Return the encoded outputs that speak most for each value; all outputs where they are few."""
        aims, size = self.targets, len(mechanism.domain)
        if isinstance(mechanism, UnaryEncoding):
            bits = np.zeros((aims.size, size), dtype=bool)
            bits[np.arange(aims.size), self.places[aims]] = True
            return np.packbits(bits, axis=1)
        if isinstance(mechanism, LocalHashing):
            return self._seeds(mechanism)[aims]
        if isinstance(mechanism, SubsetSelection):
            return self._subsets(mechanism, self.places[aims])
        if isinstance(mechanism, Geometric):  # beyond the ends the likelihoods are those at the ends, but for a factor
            return np.asarray(mechanism.domain.labels[self.places[aims]])
        if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:  # the grid and one cell around it
            grid = mechanism.domain
            columns, rows = np.arange(-1, grid.columns + 1), np.arange(-1, grid.rows + 1)
            return _spread(np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2), self._most)
        outputs = mechanism.outputs
        if outputs is None:  # a mechanism of the user's own: what was sent can be sent
            return _spread(sent, self._most)
        if len(outputs) <= self._most:
            return mechanism.output_space.encode(outputs)
        return self.places[aims] if mechanism.answers_in_domain else _spread(np.arange(len(outputs)), self._most)

    @property
    def _most(self) -> int:
        return max(FEWEST_SCANNED, MOST_SCANNED // self.shares.size)

    def _seeds(self, mechanism: LocalHashing) -> Codes:
        """Return for each value a seed and bucket that it shares with few others, and unlikely ones."""
        size = self.shares.size
        seeds = np.arange(min(MOST_SEEDS, max(1, MOST_HASHED // size)), dtype=np.uint64)
        buckets = hash_v1(seeds[:, None], self.places[None, :], int(mechanism.buckets or 2))
        keys = seeds[:, None] * np.uint64(mechanism.buckets or 2) + buckets
        _, sets = np.unique(keys, return_inverse=True)
        crowd = np.tile(self.shares + 1.0 / size, seeds.size)
        weight = np.bincount(sets.ravel(), weights=crowd)[sets.ravel()].reshape(keys.shape)
        best = weight.argmin(axis=0)
        return np.stack([seeds[best], buckets[best, np.arange(size)]], axis=1)

    def _subsets(self, mechanism: SubsetSelection, aims: Positions) -> Codes:
        """Return for each value the subset of it and of the least likely others."""
        size, chosen = len(mechanism.domain), int(mechanism.size or 1)
        weight, slack = np.zeros(size), np.full(size, np.inf)  # values that are not kept come first
        weight[self.places], slack[self.places] = self.shares, np.maximum(0.0, 1.0 - self.honest.gradient)
        order = np.lexsort((weight, -slack))
        packed = np.empty((aims.size, (size + 7) // 8), dtype=np.uint8)
        for position, place in enumerate(aims.tolist()):
            row = np.zeros(size, dtype=bool)
            row[order[:chosen]] = True
            if not row[place]:
                row[order[chosen - 1]], row[place] = False, True
            packed[position] = np.packbits(row)
        return packed


def _spread(codes: Codes, most: int) -> Codes:
    """Return at most so many of the codes, evenly from first to last."""
    return codes if len(codes) <= most else codes[np.linspace(0, len(codes) - 1, most).astype(np.int64)]


def _words_of(mechanism: Mechanism, codes: Codes, noun: str = "output") -> Callable[[int], str]:
    def words(column: int) -> str:
        if isinstance(mechanism, UnaryEncoding):
            value = int(np.unpackbits(codes[column], count=len(mechanism.domain)).argmax())
            return f"a one for {mechanism.domain.title(value)} alone"
        space = mechanism.output_space
        text = space.write(space.decode(codes[column : column + 1])[0])
        return f"{noun} {text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + '…'}"

    return words


def _of_joint(place: int, block: Joint, values: _Values) -> list[Fakes]:
    """Return fakes who combine mechanisms as honest users do, all outputs of one mechanism being the same."""
    codes = [values.outputs(mechanism, own) for mechanism, own in block.sources]
    logs = [mechanism.log_columns(own, values.among) for (mechanism, _), own in zip(block.sources, codes, strict=True)]
    source = np.repeat(np.arange(len(block.sources)), [len(own) for _, own in block.sources])
    often = np.stack([block.repeats @ (source == number) for number in range(len(block.sources))], axis=1)
    forms = np.unique(often, axis=0)
    forms = forms[np.argsort(-forms.sum(axis=1), kind="stable")][:MOST_FORMS]
    found = []
    for form in forms.tolist():
        used = [number for number, times in enumerate(form) if times]
        times = [form[number] for number in used]
        parts = [
            _times(block.sources[number][0], codes[number], logs[number], form[number], values.among) for number in used
        ]
        if len(used) == 1:
            picks = [np.arange(parts[0].shape[1])]
        else:  # for each value the output of each mechanism that speaks most for it
            picks = [values.log_votes(part)[values.targets].argmax(axis=1) for part in parts]
        together: Floats = np.sum([part[:, pick] for part, pick in zip(parts, picks, strict=True)], axis=0)
        named = [block.sources[number][0] for number in used]
        texts = [_words_of(m, codes[number], type(m).__name__) for m, number in zip(named, used, strict=True)]
        words = _joint_words(texts, picks, times)
        found.append(Fakes(place, values.votes(together), 1.0, words, logs=together))
    return found


def _times(mechanism: Mechanism, codes: Codes, logs: Floats, times: int, among: Positions | None) -> Floats:
    """Return the log-likelihoods of outputs that one user sends so many times."""
    if not mechanism.remembers:
        return times * logs
    return mechanism.joint_log_columns(codes, sparse.csr_array(times * sparse.eye_array(len(codes), dtype=int)), among)


def _joint_words(texts: list[Callable[[int], str]], picks: list[Positions], times: list[int]) -> Callable[[int], str]:
    def words(column: int) -> str:
        parts = [text(int(pick[column])) for text, pick in zip(texts, picks, strict=True)]
        return " and ".join(
            part if often == 1 else f"{part} {often} times" for part, often in zip(parts, times, strict=True)
        )

    return words


def _of_sums(place: int, block: BitSums, values: _Values) -> Fakes:
    """Return fakes who send a one for one value and zeros for all others, added to the sums."""
    bits, size = values.places[values.targets], block.ones.size
    own_one, own_zero, other_one, other_zero = np.exp(block.mechanism.log_bits)
    held = np.zeros(size)  # the share of each bit's value; 0 for values that are not kept
    held[values.places] = values.shares
    ones, zeros = (other + (own - other) * held for own, other in ((own_one, other_one), (own_zero, other_zero)))
    peak = values.places[:, None] == bits
    none = (other_zero / zeros).sum() + ((own_zero - other_zero) / zeros)[values.places]
    votes = none[:, None] + np.where(peak, own_one, other_one) / ones[bits]
    votes -= np.where(peak, own_zero, other_zero) / zeros[bits]
    title = block.mechanism.domain.title
    return Fakes(
        place, votes / size, float(size), lambda column: f"a one for {title(int(bits[column]))} alone", codes=bits
    )


def closest(honest: Point) -> Positions:
    """Return all values, those with most mass and then those closest to having some first."""
    return np.argsort(np.maximum(0.0, 1.0 - honest.gradient) - honest.theta, kind="stable")
