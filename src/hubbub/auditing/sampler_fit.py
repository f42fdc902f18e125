"""Whether draws follow the matrix: a test for sampler faults that cost no privacy but spoil estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.auditing.distinguishing_events import Counts, attribute_entries, sortable_keys, value_text
from hubbub.auditing.empirical_bounds import DrawnOutputs
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.mechanisms import LocalHashing, Mechanism, SampleOne, Split
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.packed_outputs import BitRowOutputs

FIT_LEVEL = 1e-6  # of all tests together
MIN_EXPECTED_DRAWS = 10.0  # of an output; rarer outputs are counted together
MAX_TESTED_BUCKETS = 1_000
UNPACKED_ROWS = 4096  # rows of bits that are unpacked at a time

FitTests = Iterator[tuple[float, str]]  # p-values, and what was tested


@dataclass(frozen=True)
class DrawsFit:
    """The smallest p-value of several tests, times their number, and which test it was."""

    p_value: float
    level: float
    tests: int
    worst: str

    @property
    def rejected(self) -> bool:
        """Whether the sampler does not follow its matrix."""
        return self.p_value < self.level


def compare_with_matrix(mechanism: Mechanism, drawn: DrawnOutputs) -> DrawsFit | None:
    """Compare the draws of each value with its row; None if the probabilities of outputs are not known."""
    outputs_by_value = [np.concatenate(halves) for halves in zip(drawn.choosing, drawn.counting, strict=True)]
    tests = list(_tests(mechanism, drawn.positions, outputs_by_value))
    if not tests:
        return None
    smallest, worst = min(tests)
    return DrawsFit(min(1.0, smallest * len(tests)), FIT_LEVEL, len(tests), worst)


def _tests(mechanism: Mechanism, positions: Positions, outputs_by_value: list[Array]) -> FitTests:
    """Yield the tests for this kind of outputs; none if their probabilities are not known."""
    if mechanism.outputs is not None:
        yield from _listed_output_tests(mechanism, positions, outputs_by_value)
    elif isinstance(mechanism, LocalHashing):
        yield from _hashing_tests(mechanism, positions, outputs_by_value)
    elif isinstance(mechanism, SetValuedOracle) and isinstance(mechanism.output_space, BitRowOutputs):
        yield from _bit_tests(mechanism, positions, outputs_by_value)
    elif isinstance(mechanism, Split | SampleOne):
        yield from _attribute_tests(mechanism, positions, outputs_by_value)


def _attribute_tests(mechanism: Split | SampleOne, positions: Positions, outputs_by_value: list[Array]) -> FitTests:
    """Test each attribute's outputs by themselves, and how often each is reported."""
    present = []
    for place, (name, part) in enumerate(mechanism.parts.items()):
        own = mechanism.domain.coordinates_of(positions)[place]
        entries = [attribute_entries(mechanism, place, outputs) for outputs in outputs_by_value]
        present.append([np.count_nonzero(has) for _, has in entries])
        sent = [(at, output) for at, (output, _) in zip(own, entries, strict=True) if len(output)]
        for p_value, what in _tests(part, np.array([at for at, _ in sent]), [output for _, output in sent]):
            yield p_value, f"{name}: {what}"
    if isinstance(mechanism, SampleOne):
        chances = np.array(list(mechanism.probabilities.values()))
        for counts in np.array(present).T:
            yield chi_square_p_value(counts, chances), "how often each attribute is reported"


def _listed_output_tests(mechanism: Mechanism, positions: Positions, outputs_by_value: list[Array]) -> FitTests:
    """Test by chi-square over all listed outputs, with one more cell for all others."""
    space = mechanism.output_space
    codes: Codes = np.arange(space.size) if space.size is not None else space.encode(mechanism.outputs)
    rows = np.exp(mechanism.log_columns(codes, positions))
    listed = sortable_keys(codes)
    order = np.argsort(listed)
    for position, row, outputs in zip(positions.tolist(), rows, outputs_by_value, strict=True):
        keys = sortable_keys(space.encode(outputs).astype(codes.dtype))
        indices = order[np.minimum(np.searchsorted(listed, keys, sorter=order), order.size - 1)]
        is_listed = listed[indices] == keys
        counts = np.append(np.bincount(indices[is_listed], minlength=order.size), np.count_nonzero(~is_listed))
        expected = np.append(row, max(0.0, 1 - row.sum()))
        yield chi_square_p_value(counts, expected), f"the outputs of {value_text(mechanism.domain.labels[position])}"


def _bit_tests(mechanism: SetValuedOracle, positions: Positions, outputs_by_value: list[Array]) -> FitTests:
    """Test how often each bit is set."""
    true, other = mechanism.support
    labels, size = mechanism.domain.labels, len(mechanism.domain)
    for position, outputs in zip(positions.tolist(), outputs_by_value, strict=True):
        ones = np.zeros(size, dtype=np.int64)
        for start in range(0, len(outputs), UNPACKED_ROWS):
            rows = np.unpackbits(outputs[start : start + UNPACKED_ROWS], axis=1, count=size)
            ones += rows.sum(axis=0, dtype=np.int64)
        probabilities = np.full(size, other)
        probabilities[position] = true
        for bit, p_value in enumerate(binomial_p_values(ones, len(outputs), probabilities).tolist()):
            yield p_value, f"the bit of {value_text(labels[bit])} for the value {value_text(labels[position])}"


def _hashing_tests(mechanism: LocalHashing, positions: Positions, outputs_by_value: list[Array]) -> FitTests:
    """Test how often the bucket is the value's own, and whether other buckets and the bytes of seeds are uniform."""
    buckets = int(mechanism.buckets or 2)
    for position, outputs in zip(positions.tolist(), outputs_by_value, strict=True):
        label = value_text(mechanism.domain.labels[position])
        own_buckets = hash_v1(outputs["seed"], np.array([position]), buckets).astype(np.int64)
        offsets = (outputs["bucket"].astype(np.int64) - own_buckets) % buckets
        own = np.array([np.count_nonzero(offsets == 0)])
        own_p_values = binomial_p_values(own, len(outputs), np.array([mechanism.support.true]))
        yield float(own_p_values[0]), f"the bucket of {label}"
        if 2 < buckets <= MAX_TESTED_BUCKETS:
            counts = np.bincount(offsets[offsets > 0], minlength=buckets)[1:]
            uniform = np.full(buckets - 1, 1 / (buckets - 1))
            yield chi_square_p_value(counts, uniform), f"the buckets other than that of {label}"
        for byte in range(8):
            counts = np.bincount((outputs["seed"] >> np.uint64(8 * byte)).astype(np.uint8), minlength=256)
            yield chi_square_p_value(counts, np.full(256, 1 / 256)), f"the seeds sent for {label}"


def chi_square_p_value(observed: Counts, probabilities: Floats) -> float:
    """Return the p-value of counts; outputs expected less than `MIN_EXPECTED_DRAWS` times are counted together."""
    from scipy.special import chdtrc

    expected = probabilities * observed.sum()
    if (observed[expected == 0] > 0).any():
        return 0.0
    order = np.argsort(expected, kind="stable")
    rare = int(np.searchsorted(expected[order], MIN_EXPECTED_DRAWS))
    while 0 < rare < expected.size and expected[order[:rare]].sum() < MIN_EXPECTED_DRAWS:
        rare += 1
    kept = order[rare:]
    cell_counts = np.append(observed[kept], observed[order[:rare]].sum() if rare else [])
    cell_means = np.append(expected[kept], expected[order[:rare]].sum() if rare else [])
    if cell_counts.size < 2:
        return 1.0
    return float(chdtrc(cell_counts.size - 1, ((cell_counts - cell_means) ** 2 / cell_means).sum()))


def binomial_p_values(happened: Counts, trials: int, probabilities: Floats) -> Floats:
    """Return two-sided p-values of counts: twice the smaller tail."""
    from scipy.stats import binom

    tails = np.minimum(binom.cdf(happened, trials, probabilities), binom.sf(happened - 1, trials, probabilities))
    p_values: Floats = np.minimum(1.0, 2 * np.asarray(tails))
    return p_values
