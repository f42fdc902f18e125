"""The reports that fake users might send: for each value those that favour it most, or all of them if they are few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.likelihood import Point
from hubbub.mechanisms import DBitFlip, Geometric, LocalHashing, Mechanism, PlanarGeometric, Staircase, SubsetSelection
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.reports import Reports
from hubbub.reports.blocks import BitSums, Block, Joint, Singles, common_items

MAX_SCANNED_ENTRIES = 4_000_000  # of the likelihoods of all reports that are considered
MIN_SCANNED_REPORTS = 32  # that are considered on the largest domains
MAX_SEEDS = 4_096  # of a hash, among which a good one is searched
MAX_HASHES = 2_000_000  # for that search
MAX_COMBINATIONS = 4  # ways in which users combine mechanisms, for each of which fakes are tried
MAX_OUTPUT_LETTERS = 60  # of an output in a sentence
MAX_RELATIVE_DIFFERENCE = 1e-9  # reports whose likelihood ratios agree to this are equal


@dataclass(frozen=True)
class FakeFamily:
    """What fake users of one block of reports might send: one report for each column."""

    block: int
    likelihood_ratios: Floats  # g / f, values by reports; the mean over its patterns if a report has several
    length: float  # the number of patterns in a report: 1, or a bit for each value if only sums were kept
    text: Callable[[int], str]  # of the report in a column
    sent_by: Callable[[int, int], Block]  # the report in a column, as sent by a number of users


class FakeReport(NamedTuple):
    """A report that fake users might send."""

    family: FakeFamily
    column: int

    @property
    def likelihood_ratios(self) -> Floats:
        """Its vote for each value."""
        return self.family.likelihood_ratios[:, self.column]

    @property
    def text(self) -> str:
        """The report in words."""
        return self.family.text(self.column)

    def sent_by(self, users: int) -> Block:
        """Return the reports of users who all send it."""
        return self.family.sent_by(self.column, users)

    def is_like(self, other: FakeReport) -> bool:
        """Whether the likelihoods of both are equal up to a factor."""
        same = self.family.length == other.family.length
        return same and bool(
            np.allclose(self.likelihood_ratios, other.likelihood_ratios, rtol=MAX_RELATIVE_DIFFERENCE, atol=0.0)
        )


def fake_reports(reports: Reports, honest: Point, share: float) -> list[FakeFamily]:
    """Return what fakes might send, for each block of the reports, given the maximum without fakes."""
    size = honest.theta.size
    mixed = (1.0 - share) * honest.theta + share / size  # reports that no value with mass can send have ratios, too
    whole = _Targets(mixed, honest, reports.domain.among)
    families: list[FakeFamily] = []
    for number, block in enumerate(reports.blocks):
        if isinstance(block, BitSums):
            families.append(_fakes_of_sums(number, block, whole))
        elif isinstance(block, Singles):
            codes = whole.outputs(block.mechanism, block.codes)
            logs = block.mechanism.log_columns(codes, whole.among)
            text = _output_text(block.mechanism, codes)
            sent_by = partial(_singles, block.mechanism, codes)
            families.append(FakeFamily(number, whole.likelihood_ratios(logs), 1.0, text, sent_by))
        elif isinstance(block, Joint):
            families.extend(_fakes_of_joint(number, block, whole))
    return families


@dataclass(frozen=True)
class _Targets:
    """The values that fakes may favour: how likely each is, and which are kept."""

    shares: Floats
    honest: Point
    among: Positions | None  # positions of the values in the mechanisms' domain; None: all of it

    @property
    def positions(self) -> Positions:
        return np.arange(self.shares.size) if self.among is None else self.among

    def likelihood_ratios(self, logs: Floats) -> Floats:
        """Return g / f."""
        return np.exp(self.log_likelihood_ratios(logs))

    def log_likelihood_ratios(self, logs: Floats) -> Floats:
        """Return log (g / f), -inf throughout for a report that no value can send."""
        from scipy.special import logsumexp

        fitted = np.asarray(logsumexp(np.log(self.shares)[:, None] + logs, axis=0))
        return logs - np.where(np.isfinite(fitted), fitted, 0.0)

    @property
    def targets(self) -> Positions:
        """The values that fakes may favour: all of them, or those closest to having mass and some of the others."""
        if self.shares.size <= self._max_reports:
            return np.arange(self.shares.size)
        order = closest_to_mass(self.honest)
        return np.unique(np.concatenate([order[: self._max_reports // 2], _spread(order, self._max_reports // 2)]))

    def outputs(self, mechanism: Mechanism, sent: Codes) -> Codes:
        """Return the encoded outputs that favour each value most; all outputs if they are few."""
        aims, size = self.targets, len(mechanism.domain)
        if isinstance(mechanism, UnaryEncoding):
            bits = np.zeros((aims.size, size), dtype=bool)
            bits[np.arange(aims.size), self.positions[aims]] = True
            return np.packbits(bits, axis=1)
        if isinstance(mechanism, DBitFlip):
            return self._answers(mechanism, self.positions[aims])
        if isinstance(mechanism, LocalHashing):
            return self._seeds(mechanism)[aims]
        if isinstance(mechanism, SubsetSelection):
            return self._subsets(mechanism, self.positions[aims])
        if isinstance(mechanism, Geometric):  # beyond the ends likelihoods only change by a factor
            return np.asarray(mechanism.domain.labels[self.positions[aims]])
        if isinstance(mechanism, Staircase):  # further out likelihoods only change by a factor
            return _spread(mechanism.folded_outputs()[0], self._max_reports)
        if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:  # the grid and one cell around it
            grid = mechanism.domain
            columns, rows = np.arange(-1, grid.columns + 1), np.arange(-1, grid.rows + 1)
            return _spread(
                np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2), self._max_reports
            )
        outputs = mechanism.outputs
        if outputs is None:  # a custom mechanism: what was sent can be sent
            return _spread(sent, self._max_reports)
        if len(outputs) <= self._max_reports:
            return mechanism.output_space.encode(outputs)
        return (
            self.positions[aims] if mechanism.answers_in_domain else _spread(np.arange(len(outputs)), self._max_reports)
        )

    @property
    def _max_reports(self) -> int:
        return max(MIN_SCANNED_REPORTS, MAX_SCANNED_ENTRIES // self.shares.size)

    def _seeds(self, mechanism: LocalHashing) -> Codes:
        """Return for each value a seed and bucket that it shares with few and unlikely others."""
        size = self.shares.size
        seeds = np.arange(min(MAX_SEEDS, max(1, MAX_HASHES // size)), dtype=np.uint64)
        buckets = hash_v1(seeds[:, None], self.positions[None, :], int(mechanism.buckets or 2))
        keys = seeds[:, None] * np.uint64(mechanism.buckets or 2) + buckets
        _, sets = np.unique(keys, return_inverse=True)
        crowd = np.tile(self.shares + 1.0 / size, seeds.size)
        weight = np.bincount(sets.ravel(), weights=crowd)[sets.ravel()].reshape(keys.shape)
        best = weight.argmin(axis=0)
        return np.stack([seeds[best], buckets[best, np.arange(size)]], axis=1)

    def _answers(self, mechanism: DBitFlip, aims: Positions) -> Codes:
        """Return for each value a one for its bucket, and zeros for the likeliest other ones."""
        buckets, asked = int(mechanism.buckets or 2), int(mechanism.bits or 1)
        mass = np.bincount(mechanism.bucket_of(self.positions), weights=self.shares, minlength=buckets)
        likeliest, own = np.argsort(-mass, kind="stable"), mechanism.bucket_of(aims)
        rows = np.zeros((2, aims.size, buckets), dtype=bool)
        rows[:, np.arange(aims.size), own] = True
        for number, bucket in enumerate(own.tolist()):
            rows[0, number, likeliest[likeliest != bucket][: asked - 1]] = True
        return np.concatenate(np.packbits(rows, axis=2), axis=1)

    def _subsets(self, mechanism: SubsetSelection, aims: Positions) -> Codes:
        """Return for each value the subset of it and the least likely others."""
        size, chosen = len(mechanism.domain), int(mechanism.size or 1)
        weight, slack = np.zeros(size), np.full(size, np.inf)  # values that are not kept come first
        weight[self.positions], slack[self.positions] = self.shares, np.maximum(0.0, 1.0 - self.honest.gradient)
        order = np.lexsort((weight, -slack))
        packed = np.empty((aims.size, (size + 7) // 8), dtype=np.uint8)
        for number, position in enumerate(aims.tolist()):
            row = np.zeros(size, dtype=bool)
            row[order[:chosen]] = True
            if not row[position]:
                row[order[chosen - 1]], row[position] = False, True
            packed[number] = np.packbits(row)
        return packed


def _spread(codes: Codes, limit: int) -> Codes:
    """Return at most `limit` of the codes, evenly spaced from first to last."""
    return codes if len(codes) <= limit else codes[np.linspace(0, len(codes) - 1, limit).astype(np.int64)]


def _output_text(mechanism: Mechanism, codes: Codes, noun: str = "output", times: int = 1) -> Callable[[int], str]:
    often = "" if times == 1 else f" {times} times"

    def text(column: int) -> str:
        if isinstance(mechanism, DBitFlip):
            return f"a one for bucket {int(mechanism.answers(codes[column])[0].argmax())} alone{often}"
        if isinstance(mechanism, UnaryEncoding):
            value = int(np.unpackbits(codes[column], count=len(mechanism.domain)).argmax())
            return f"a one for {mechanism.domain.title(value)} alone{often}"
        written = mechanism.output_space.title(codes[column : column + 1])
        short = written if len(written) <= MAX_OUTPUT_LETTERS else written[: MAX_OUTPUT_LETTERS - 1] + "…"
        return f"{noun} {short}{often}"

    return text


def _fakes_of_joint(number: int, block: Joint, values: _Targets) -> list[FakeFamily]:
    """Return fakes who combine mechanisms as honest users do, and always send the same output of a mechanism."""
    codes = [values.outputs(mechanism, own) for mechanism, own in block.sources]
    logs = [mechanism.log_columns(own, values.among) for (mechanism, _), own in zip(block.sources, codes, strict=True)]
    source_of_item = np.repeat(np.arange(len(block.sources)), [len(own) for _, own in block.sources])
    counts = np.stack([block.repeats @ (source_of_item == source) for source in range(len(block.sources))], axis=1)
    combinations = np.unique(counts, axis=0)
    combinations = combinations[np.argsort(-combinations.sum(axis=1), kind="stable")][:MAX_COMBINATIONS]
    families = []
    for combination in combinations.tolist():
        used = [
            (mechanism, own_codes, own_logs, times)
            for (mechanism, _), own_codes, own_logs, times in zip(block.sources, codes, logs, combination, strict=True)
            if times
        ]
        parts = [_repeated_logs(*outputs, values.among) for outputs in used]
        if len(used) == 1:
            picks = [np.arange(parts[0].shape[1])]
        else:  # for each value the output of each mechanism that favours it most
            picks = [values.log_likelihood_ratios(part)[values.targets].argmax(axis=1) for part in parts]
        together: Floats = np.sum([part[:, pick] for part, pick in zip(parts, picks, strict=True)], axis=0)
        texts = [_output_text(mechanism, own, type(mechanism).__name__, times) for mechanism, own, _, times in used]
        outputs = [(mechanism, own, pick, times) for (mechanism, own, _, times), pick in zip(used, picks, strict=True)]
        sent_by = partial(_joint, outputs)
        families.append(FakeFamily(number, values.likelihood_ratios(together), 1.0, _joint_text(texts, picks), sent_by))
    return families


def _singles(mechanism: Mechanism, codes: Codes, column: int, users: int) -> Block:
    return Singles.build(mechanism, codes[column : column + 1], np.array([users]))


def _joint(outputs: list[tuple[Mechanism, Codes, Positions, int]], column: int, users: int) -> Block:
    """Return users who all send the outputs of a column, each as often as `outputs` says."""
    chosen = [(mechanism, codes[pick[column] : pick[column] + 1]) for mechanism, codes, pick, _ in outputs]
    sources, places = common_items(chosen)
    items = np.concatenate([np.repeat(place, times) for place, (*_, times) in zip(places, outputs, strict=True)])
    return Joint.build(sources, np.zeros(items.size, dtype=np.int64), items, np.array([users]))


def _repeated_logs(mechanism: Mechanism, codes: Codes, logs: Floats, times: int, among: Positions | None) -> Floats:
    """Return the log-likelihoods of outputs that one user sends `times` times."""
    if not mechanism.remembers:
        return times * logs
    return mechanism.joint_log_columns(codes, sparse.csr_array(times * sparse.eye_array(len(codes), dtype=int)), among)


def _joint_text(texts: list[Callable[[int], str]], picks: list[Positions]) -> Callable[[int], str]:
    return lambda column: " and ".join(text(int(pick[column])) for text, pick in zip(texts, picks, strict=True))


def _fakes_of_sums(number: int, block: BitSums, values: _Targets) -> FakeFamily:
    """Return fakes who send a one for one value and zeros for all others, added to the sums."""
    bits, size = values.positions[values.targets], block.ones.size
    own_one, own_zero, other_one, other_zero = np.exp(block.mechanism.log_bits)
    held = np.zeros(size)  # the share of each bit's value; 0 for values that are not kept
    held[values.positions] = values.shares
    ones, zeros = (other + (own - other) * held for own, other in ((own_one, other_one), (own_zero, other_zero)))
    peak = values.positions[:, None] == bits
    none = (other_zero / zeros).sum() + ((own_zero - other_zero) / zeros)[values.positions]
    likelihood_ratios = none[:, None] + np.where(peak, own_one, other_one) / ones[bits]
    likelihood_ratios -= np.where(peak, own_zero, other_zero) / zeros[bits]
    title = block.mechanism.domain.title

    def text(column: int) -> str:
        return f"a one for {title(int(bits[column]))} alone"

    def sent_by(column: int, users: int) -> Block:
        return BitSums(block.mechanism, np.where(np.arange(size) == bits[column], users, 0), users)

    return FakeFamily(number, likelihood_ratios / size, float(size), text, sent_by)


def closest_to_mass(honest: Point) -> Positions:
    """Return all values: first those with most mass, then those closest to having some."""
    return np.argsort(np.maximum(0.0, 1.0 - honest.gradient) - honest.theta, kind="stable")
