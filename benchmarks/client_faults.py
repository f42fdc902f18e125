"""Clients that are wrong, as others' have been or as ours could be, and how many outputs it takes to refute them.

Each fault is a function from a mechanism, positions of values and a generator to encoded outputs. Two faults were
published: pure-LDP drew the value's own bit as noise or truth (issue 11 there), and OpenDP left the last bit of a
vector as it was (issue 2707). Clients without a fault are audited as well: they must pass.

Run: python benchmarks/client_faults.py [--runs N] [--correct N]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hubbub as hb
from hubbub.channels.bit_sets import GOLDEN
from hubbub.mechanisms.local_hashing import hash_v1
from measure import row, save

Values = NDArray[np.int64]
Client = Callable[[Any, Values, np.random.Generator], Any]  # a mechanism, values and a generator to encoded outputs

LETTERS = hb.Categories(list("abcdef"))
LINE = hb.Integers(0, 19)
HUNDRED = hb.Integers(0, 99)
MAP = hb.Grid(8, 6, cell=1.0)
PAIR = {
    "age": hb.TruncatedGeometric(hb.Integers(0, 9), 0.5),
    "sex": hb.RandomizedResponse(hb.Categories(["f", "m"]), 1),
}


def honest(mechanism: hb.Mechanism, values: Values, rng: np.random.Generator) -> Any:
    """Draw as the mechanism says."""
    return mechanism.output_space.encode(mechanism.privatize(mechanism.domain.labels[values], rng=rng))


def bits(rows: Any, mechanism: hb.Mechanism) -> NDArray[np.uint8]:
    """Return rows of 0 and 1."""
    return np.unpackbits(rows, axis=1, count=len(mechanism.domain))


# -- published -----------------------------------------------------------------------------------------------


def own_bit_noise_or_truth(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """pure-LDP, issue 11: all bits are noise, and then the value's own is set with probability p."""
    true, other = mechanism.support
    rows = rng.random((values.size, len(mechanism.domain))) < other
    rows[np.arange(values.size), values] |= rng.random(values.size) < true
    return np.packbits(rows, axis=1)


def last_bit_in_clear(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """OpenDP, issue 2707: randomness for one bit less than the vector has, so that the last one is sent as it is."""
    rows = bits(honest(mechanism, values, rng), mechanism)
    rows[:, -1] = values == len(mechanism.domain) - 1
    return np.packbits(rows, axis=1)


# -- randomized response -------------------------------------------------------------------------------------


def other_epsilon(factor: float) -> Client:
    """Return a client that computes with another epsilon."""

    def draw(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
        kind, domain = type(mechanism), mechanism.domain
        return honest(kind(domain, mechanism.epsilon * factor), values, rng)

    return draw


def keeps_more(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Keep the value two percentage points too often."""
    sent = honest(mechanism, values, rng)
    return np.where(rng.random(values.size) < 0.02, values, sent)


def byte_modulo(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw the other values as a byte modulo their number: the first ones are likelier."""
    size, true = len(mechanism.domain), mechanism.support.true
    others = (values + 1 + rng.integers(0, 256, values.size) % (size - 1)) % size
    return np.where(rng.random(values.size) < true, values, others)


def first_value_favoured(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Send the first value where something goes wrong, one time in fifty."""
    return np.where(rng.random(values.size) < 0.02, 0, honest(mechanism, values, rng))


def constant(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:  # noqa: ARG001
    """Send the same output always: perfectly private, and useless."""
    return np.zeros(values.size, dtype=np.int64)


def swapped_labels(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Exchange the first two labels."""
    order = np.arange(len(mechanism.domain))
    order[:2] = 1, 0
    return honest(mechanism, order[values], rng)


def next_value(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Count values from 1."""
    return honest(mechanism, (values + 1) % len(mechanism.domain), rng)


def one_value_in_clear(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Forget the noise for the last value."""
    last = len(mechanism.domain) - 1
    return np.where(values == last, last, honest(mechanism, values, rng))


def restarted_generator(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Start the generator again after every 500 outputs."""
    seed = int(rng.integers(2**62))
    pieces = [values[first : first + 500] for first in range(0, values.size, 500)]
    return np.concatenate([honest(mechanism, piece, np.random.default_rng(seed)) for piece in pieces])


def sends_again(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Answer one call in ten with what was sent last for that value."""
    sent = honest(mechanism, values, rng)
    again = np.flatnonzero(rng.random(values.size) < 0.1)
    last: dict[int, int] = {}
    repeated = set(again.tolist())
    for place, value in enumerate(values.tolist()):
        if place in repeated and value in last:
            sent[place] = sent[last[value]]
        last[value] = place
    return sent


def coin_reused(rows: int) -> Client:
    """Return a client that tosses the coin "say the truth" once for so many rows; which lie it is, is drawn anew."""

    def draw(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
        size, tosses = len(mechanism.domain), -(-values.size // rows)
        truth = np.repeat(rng.random(tosses) < mechanism.support.true, rows)[: values.size]
        others = (values + rng.integers(1, size, values.size)) % size
        return np.where(truth, values, others)

    return draw


# -- noise on lines and maps ---------------------------------------------------------------------------------


def noise(epsilon: float, count: int, rng: np.random.Generator) -> Values:
    """Return two-sided geometric noise."""
    ratio = math.exp(-epsilon)
    return np.asarray(rng.geometric(1 - ratio, count) - rng.geometric(1 - ratio, count))


def truncated_noise(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw noise again that goes further than ten steps: outputs then tell who cannot have sent them."""
    drawn = noise(mechanism.epsilon, values.size, rng)
    while (far := np.abs(drawn) > 10).any():
        drawn[far] = noise(mechanism.epsilon, int(far.sum()), rng)
    return mechanism.domain.labels[values] + drawn


def sign_lost(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Add the size of the noise, never subtract it."""
    return mechanism.domain.labels[values] + np.abs(noise(mechanism.epsilon, values.size, rng))


def zero_twice(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw a size and a sign, so that 0 and -0 are both 0."""
    size = rng.geometric(1 - math.exp(-mechanism.epsilon), values.size) - 1
    return mechanism.domain.labels[values] + size * rng.choice([-1, 1], values.size)


def powers_of_two(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Take powers of 2 for powers of e."""
    return mechanism.domain.labels[values] + noise(mechanism.epsilon * math.log(2), values.size, rng)


def redrawn_inside(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw again what falls outside the domain, instead of clamping it."""
    last = len(mechanism.domain) - 1
    drawn = values + noise(mechanism.epsilon, values.size, rng)
    while (outside := (drawn < 0) | (drawn > last)).any():
        drawn[outside] = values[outside] + noise(mechanism.epsilon, int(outside.sum()), rng)
    return drawn


def clipped_twice(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Clip the noise, and then the output."""
    last = len(mechanism.domain) - 1
    drawn = np.clip(noise(mechanism.epsilon, values.size, rng), -last // 3, last // 3)
    return np.clip(values + drawn, 0, last)


def rounded_down(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Cut the fraction of real noise off, instead of rounding to the nearest value."""
    points = values + rng.laplace(0.0, 1 / mechanism.epsilon, values.size)
    return np.clip(np.trunc(points), 0, len(mechanism.domain) - 1).astype(np.int64)


def half_circle(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw angles up to pi only."""
    radius, angle = rng.gamma(2.0, 1 / mechanism.epsilon, values.size), rng.random(values.size) * math.pi
    return mechanism.domain.steps[values] + np.rint(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1))


def noise_for_each_axis(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw noise for columns and rows separately: its shape is a rhombus, not a circle."""
    drawn = np.stack([noise(mechanism.epsilon, values.size, rng) for _ in range(2)], axis=1)
    return mechanism.domain.steps[values] + drawn


# -- bits, subsets and hashes --------------------------------------------------------------------------------


def shifted_bits(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Take the bit beside the value's own for it."""
    return honest(mechanism, (values + 1) % len(mechanism.domain), rng)


def correlated_bits(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Use each random number for two neighbouring bits."""
    true, other = mechanism.support
    size = len(mechanism.domain)
    uniforms = np.repeat(rng.random((values.size, (size + 1) // 2)), 2, axis=1)[:, :size]
    chances = np.full((values.size, size), other)
    chances[np.arange(values.size), values] = true
    return np.packbits(uniforms < chances, axis=1)


def memory_of_another(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Send two reports of each permanent response, as if they were of two people with that value."""
    kept = mechanism.permanent(mechanism.domain.labels[values], rng=rng)
    order = np.argsort(values, kind="stable")
    second = np.flatnonzero((values[order[1:]] == values[order[:-1]]) & (np.arange(1, values.size) % 2 == 1)) + 1
    kept[order[second]] = kept[order[second - 1]]
    return mechanism.instantaneous(kept, rng=rng)


def value_always_in(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Put the value into the subset one time in twenty, whatever was drawn, for another member."""
    rows = bits(honest(mechanism, values, rng), mechanism)
    missing = np.flatnonzero((rows[np.arange(values.size), values] == 0) & (rng.random(values.size) < 0.05))
    rows[missing, rows[missing].argmax(axis=1)] = 0
    rows[missing, values[missing]] = 1
    return np.packbits(rows, axis=1)


def other_constant(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Hash with another multiplier."""
    seeds = rng.integers(0, 2**64, values.size, dtype=np.uint64)
    own = hash_v1(seeds * np.uint64(GOLDEN), values, mechanism.buckets)
    return _hashed(mechanism, seeds, own, rng)


def few_seeds(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Draw seeds of 16 bits."""
    seeds = rng.integers(0, 2**16, values.size, dtype=np.uint64) * np.uint64(GOLDEN)
    return _hashed(mechanism, seeds, hash_v1(seeds, values, mechanism.buckets), rng)


def _hashed(mechanism: Any, seeds: Any, own: Any, rng: np.random.Generator) -> Any:
    kept = rng.random(seeds.size) < mechanism.support.true
    others = (own + rng.integers(1, mechanism.buckets, seeds.size, dtype=np.uint64)) % np.uint64(mechanism.buckets)
    return np.stack([seeds, np.where(kept, own, others)], axis=1)


# -- several attributes --------------------------------------------------------------------------------------


def same_random_numbers(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Use the same random numbers for both attributes."""
    uniforms = rng.random(values.size)
    columns = [
        np.argmax(np.cumsum(part.matrix(), axis=1)[own] > uniforms[:, None], axis=1)
        for part, own in zip(mechanism.parts.values(), mechanism.domain.coordinates_of(values), strict=True)
    ]
    return np.stack(columns, axis=1)


def prefers_an_attribute(mechanism: Any, values: Values, rng: np.random.Generator) -> Any:
    """Choose one attribute five percentage points too often."""
    wrong = hb.SampleOne(mechanism.domain, probabilities={"age": 0.55, "sex": 0.45}, **mechanism.parts)
    return honest(wrong, values, rng)


@dataclass(frozen=True)
class Fault:
    """A client that is wrong, and a number of outputs that shows it."""

    name: str
    mechanism: hb.Mechanism
    client: Client
    outputs: int


FAULTS = [
    Fault("pure-LDP #11, RAPPOR", hb.Rappor(LINE, 0.5), own_bit_noise_or_truth, 500),
    Fault("pure-LDP #11, OUE", hb.OptimizedUnary(LINE, 0.5), own_bit_noise_or_truth, 500),
    Fault("OpenDP #2707, last bit", hb.Rappor(LINE, 1.0), last_bit_in_clear, 200),
    Fault("k-RR: keeps 2 points more", hb.RandomizedResponse(LETTERS, 1.0), keeps_more, 50_000),
    Fault("k-RR: epsilon 5% more", hb.RandomizedResponse(LETTERS, 1.0), other_epsilon(1.05), 50_000),
    Fault("k-RR: byte modulo 99", hb.RandomizedResponse(HUNDRED, 1.0), byte_modulo, 5_000),
    Fault("k-RR: first value favoured", hb.RandomizedResponse(LETTERS, 1.0), first_value_favoured, 20_000),
    Fault("k-RR: constant", hb.RandomizedResponse(LETTERS, 1.0), constant, 200),
    Fault("k-RR: two labels swapped", hb.RandomizedResponse(LETTERS, 1.0), swapped_labels, 1_000),
    Fault("k-RR: counts from 1", hb.RandomizedResponse(LETTERS, 1.0), next_value, 200),
    Fault("k-RR: one value in clear", hb.RandomizedResponse(LETTERS, 1.0), one_value_in_clear, 500),
    Fault("k-RR: generator restarted", hb.RandomizedResponse(LETTERS, 1.0), restarted_generator, 2_000),
    Fault("k-RR: sends again", hb.RandomizedResponse(LETTERS, 1.0), sends_again, 5_000),
    Fault("k-RR: coin used twice", hb.RandomizedResponse(LETTERS, 1.0), coin_reused(2), 1_000),
    Fault("k-RR: coin used 20 times", hb.RandomizedResponse(LETTERS, 1.0), coin_reused(20), 500),
    Fault("k-RR of 100: coin used twice", hb.RandomizedResponse(HUNDRED, 3.0), coin_reused(2), 2_000),
    Fault("geometric: epsilon 5% more", hb.Geometric(LINE, 0.5), other_epsilon(1.05), 10_000),
    Fault("geometric: epsilon 5% less", hb.Geometric(LINE, 0.5), other_epsilon(0.95), 10_000),
    Fault("geometric: noise truncated", hb.Geometric(LINE, 0.5), truncated_noise, 10_000),
    Fault("geometric: sign lost", hb.Geometric(LINE, 0.5), sign_lost, 200),
    Fault("geometric: zero twice", hb.Geometric(LINE, 0.5), zero_twice, 1_000),
    Fault("geometric: powers of 2", hb.Geometric(LINE, 0.5), powers_of_two, 500),
    Fault("truncated geometric: drawn again", hb.TruncatedGeometric(LINE, 0.3), redrawn_inside, 1_000),
    Fault("truncated geometric: clipped twice", hb.TruncatedGeometric(LINE, 0.3), clipped_twice, 1_000),
    Fault("Laplace: rounded down", hb.Laplace(hb.Bins(list(range(21))), 0.5), rounded_down, 2_000),
    Fault("planar: half a circle", hb.PlanarGeometric(MAP, 1.0, truncated=False), half_circle, 500),
    Fault("planar: each axis by itself", hb.PlanarGeometric(MAP, 1.0, truncated=False), noise_for_each_axis, 500),
    Fault("planar: epsilon 5% more", hb.PlanarGeometric(MAP, 1.0), other_epsilon(1.05), 10_000),
    Fault("RAPPOR: epsilon 5% more", hb.Rappor(LINE, 1.0), other_epsilon(1.05), 20_000),
    Fault("RAPPOR: epsilon for each bit", hb.Rappor(LINE, 1.0), other_epsilon(2.0), 200),
    Fault("RAPPOR: bits shifted by one", hb.Rappor(LINE, 1.0), shifted_bits, 200),
    Fault("RAPPOR: correlated bits", hb.Rappor(LINE, 1.0), correlated_bits, 200),
    Fault("longitudinal: memory used twice", hb.LongitudinalRappor(LINE, 4.0, 1.0), memory_of_another, 5_000),
    Fault("subset: value put in", hb.SubsetSelection(LINE, 1.0), value_always_in, 10_000),
    Fault("hashing: another constant", hb.LocalHashing(LINE, 1.0), other_constant, 200),
    Fault("hashing: few seeds", hb.LocalHashing(LINE, 1.0), few_seeds, 1_000),
    Fault("hashing: epsilon 5% more", hb.LocalHashing(LINE, 1.0), other_epsilon(1.05), 50_000),
    Fault("Split: same random numbers", hb.Split(PAIR), same_random_numbers, 500),
    Fault("SampleOne: prefers an attribute", hb.SampleOne(PAIR), prefers_an_attribute, 5_000),
]

CORRECT: list[hb.Mechanism] = [
    hb.RandomizedResponse(LETTERS, 1.0),
    hb.RandomizedResponse(HUNDRED, 3.0),
    hb.Geometric(LINE, 0.5),
    hb.TruncatedGeometric(LINE, 0.3),
    hb.Laplace(hb.Bins([0.0, 1.0, 3.0, 3.5, 7.0]), 0.6),
    hb.Exponential(MAP, 1.0),
    hb.PlanarGeometric(MAP, 1.0),
    hb.PlanarGeometric(MAP, 1.0, truncated=False),
    hb.PlanarLaplace(MAP, 1.0),
    hb.Rappor(LETTERS, 1.0),
    hb.Rappor(hb.Integers(0, 199), 2.0),
    hb.OptimizedUnary(LINE, 1.0),
    hb.LongitudinalRappor(LINE, 4.0, 1.0),
    hb.SubsetSelection(LINE, 1.0),
    hb.LocalHashing(LINE, 1.0),
    hb.Matrix(LETTERS, ["x", "y", "z"], np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])[[0, 0, 1, 1, 0, 1]]),
    hb.Cloaking(LETTERS, list("xxxyyy")),
    hb.Warner(hb.Categories(["yes", "no"]), 0.7),
    hb.Split(PAIR),
    hb.SampleOne(PAIR),
    hb.SampleOneWithFakes(PAIR),
]


def audited(mechanism: hb.Mechanism, client: Client, outputs: int, seed: int, level: float = 0.99) -> hb.SampleAudit:
    """Return the audit of a client that was asked for the outputs of random values."""
    rng = np.random.default_rng([seed, outputs, 27])
    values = rng.integers(0, len(mechanism.domain), outputs)
    sent = mechanism.output_space.decode(np.asarray(client(mechanism, values, rng)))
    if sent.dtype.kind == "f":
        sent = sent.astype(np.int64)
    return hb.audit_samples(mechanism, mechanism.domain.labels[values], sent, level=level)


def needed(fault: Fault, runs: int) -> int:
    """Return the fewest outputs of 100, 200, 500, 1,000 ... with which nine of ten audits refute the client."""
    outputs, factors = 100, (2, 2.5, 2)
    for step in range(15):
        refuted = sum(audited(fault.mechanism, fault.client, outputs, seed).holds is False for seed in range(runs))
        if refuted >= 0.9 * runs:
            return outputs
        outputs = int(outputs * factors[step % 3])
    return outputs


def main() -> None:
    """Measure, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--correct", type=int, default=400)
    arguments = parser.parse_args()
    rows = []
    for fault in FAULTS:
        outputs = needed(fault, arguments.runs)
        rows.append(
            row(
                fault.name,
                "outputs with which nine of ten audits refute it",
                f"{outputs:,}",
                f"at most {fault.outputs:,}",
                holds=outputs <= fault.outputs,
            )
        )
    alarms, total = 0, 0
    for number in range(arguments.correct):
        mechanism = CORRECT[number % len(CORRECT)]
        outputs = (300, 3_000, 30_000)[number // len(CORRECT) % 3]
        alarms += audited(mechanism, honest, outputs, number, level=0.95).holds is False
        total += 1
    rows.append(
        row(
            f"correct clients of {len(CORRECT)} mechanisms, 300 to 30,000 outputs",
            "refuted at level 0.95",
            f"{alarms} of {total}",
            "at most 5%",
            holds=alarms <= 0.05 * total,
        )
    )
    save("client_faults", rows)


if __name__ == "__main__":
    main()
