"""Reports in parts, each made from its number alone: in any process, on any machine, again and again the same."""

from __future__ import annotations

import numpy as np

import hubbub as hb

VALUES = hb.Integers(0, 39)
OUTCOMES = 3

RAPPOR = hb.Rappor(VALUES, 1.0)
HASHING = hb.LocalHashing(VALUES, 1.5)
UNARY = hb.OptimizedUnary(VALUES, 1.0)
KINDS = ("rappor", "hashing", "unary", "matrix", "several", "mixed", "sums")


def crooked() -> hb.Matrix:
    """A channel that nobody would take for symmetric, with zeros, and fewer outputs than values."""
    rng = np.random.default_rng(7)
    table = rng.random((len(VALUES), OUTCOMES)) ** 3
    table[::5, 0] = 0.0
    return hb.Matrix(VALUES, ["x", "y", "z"], table / table.sum(axis=1, keepdims=True))


def part(kind: str, number: int, users: int = 150) -> hb.Reports:
    """Return one part's reports: `number` says which users, and shifts where most of them are."""
    rng = np.random.default_rng([number, KINDS.index(kind)])
    truth = np.clip(rng.normal(12 + 3 * number, 5, users).round().astype(int), 0, len(VALUES) - 1)
    singles: dict[str, hb.Mechanism] = {"rappor": RAPPOR, "hashing": HASHING, "unary": UNARY, "matrix": crooked()}
    if kind in singles:
        return hb.Reports.from_outputs(singles[kind], singles[kind].privatize(truth, rng=rng))
    if kind == "sums":  # only the sums of bits: the weights are not the users
        bits = np.unpackbits(RAPPOR.privatize(truth, rng=rng), axis=1, count=len(VALUES))
        return hb.Reports.from_bit_counts(RAPPOR, bits.sum(axis=0, dtype=np.int64), users)
    mechanisms = [RAPPOR, hb.TruncatedGeometric(VALUES, 0.2), HASHING, crooked()]
    outputs = [mechanism.privatize(truth, rng=rng) for mechanism in mechanisms]
    if kind == "mixed":  # each part has mechanisms of its own, and some users who sent one output
        mechanisms, outputs = mechanisms[number % 3 :], outputs[number % 3 :]
    sent = []
    for user in range(users):
        own = [(mechanism, output[user]) for mechanism, output in zip(mechanisms, outputs, strict=True)]
        sent.append(own[: 1 + user % len(own)] if kind == "mixed" else own)
    return hb.Reports.from_users(sent)
