"""One person, many reports: how often the likeliest value is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hubbub.auditing import error_probability
from hubbub.core.arrays import Floats
from hubbub.domains import Integers
from hubbub.intake.study_entries import MECHANISMS
from hubbub.mechanisms import Matrix, Mechanism, RandomizedResponse
from hubbub.paper.settings import generator

MAX_TIE_NATS = 1e-9  # nats: likelihoods this close are the same, but for rounding


def simulate_guesses(options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return how often the likeliest value was not the person's own, and the bounds on that, by number of reports."""
    ((kind, epsilon),) = options["mechanisms"]
    mechanism = _mechanism(kind, float(epsilon), int(options["values"]))
    reports = [int(count) for count in options["reports"]]
    wrong = [_share_wrong(mechanism, int(options["people"]), count, seed, f"{kind} {epsilon}") for count in reports]
    bounds = {
        bound: np.asarray(error_probability(mechanism, reports, bound=bound)).tolist() for bound in ("union", "types")
    }
    return {
        "name": kind,
        "epsilon": float(epsilon),
        "people": options["people"],
        "reports": reports,
        "wrong": wrong,
        **bounds,
    }


def _mechanism(kind: str, epsilon: float, values: int) -> Mechanism:
    domain = Integers(0, values - 1)
    if kind != "twins":
        return MECHANISMS[kind](domain, epsilon)  # type: ignore[call-arg]
    # Randomized response on the halved value: values 0 and 1, 2 and 3, ... have equal rows, and cannot be told apart.
    halves = RandomizedResponse(Integers(0, (values + 1) // 2 - 1), epsilon)
    return Matrix(domain, halves.domain.labels, halves.matrix()[np.arange(values) // 2])


def _share_wrong(mechanism: Mechanism, people: int, count: int, seed: int, purpose: str) -> float:
    """Return the share of people whose likeliest value is not their own, for the value where that is most frequent."""
    rng = generator(seed, f"guesses, {purpose}", count)
    values = np.arange(people) % len(mechanism.domain)
    matrix = mechanism.matrix()
    sent = rng.multinomial(count, matrix[values])  # how often each output: their order says nothing
    chances: Floats = sent.astype(np.float64) @ np.log(matrix).T
    likeliest = chances >= chances.max(axis=1, keepdims=True) - MAX_TIE_NATS
    guessed = np.where(likeliest, rng.random(likeliest.shape), -1.0).argmax(axis=1)  # among equals, at random
    missed = np.bincount(values, weights=guessed != values) / np.bincount(values)
    return float(missed.max())
