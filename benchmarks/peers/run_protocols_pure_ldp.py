"""Run pure-LDP's frequency oracles: python run_protocols_pure_ldp.py FOLDER (see protocol_runner.py).

Its values count from 1. A server and its client are made anew for each study, and that is not timed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import xxhash
from protocol_runner import Build, Protocol, Task, main
from pure_ldp import frequency_oracles as fo

FAST_HASHES = 1_000  # of fast local hashing: seeds that users choose from
HASHES, WIDTH = 64, 128  # of sketches
COHORTS, BLOOM_BITS, BLOOM_HASHES = 8, 32, 2


def seed(number: int) -> None:
    """Seed the generators it draws from."""
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002


def oracle(
    client: Any, server: Any, size: int, form: str = "key", told: Callable[[Any], Any] = lambda report: report
) -> Protocol:
    """Return a client and its server as a protocol with unbiased shares, as they are."""

    def shares(reports: list[Any]) -> Any:
        server.aggregate_all(reports)
        return server.estimate_all(range(1, size + 1), suppress_warnings=True) / len(reports)

    return Protocol(lambda value: client.privatise(value + 1), shares, form, told)


def direct(task: Task) -> Protocol:
    """k-ary randomized response."""
    return oracle(fo.DEClient(task.epsilon, task.size), fo.DEServer(task.epsilon, task.size), task.size, "value")


def unary(optimal: bool) -> Build:
    """Unary encoding, symmetric or optimized."""
    return lambda task: oracle(
        fo.UEClient(task.epsilon, task.size, use_oue=optimal),
        fo.UEServer(task.epsilon, task.size, use_oue=optimal),
        task.size,
        "bits",
    )


def hashing(optimal: bool) -> Build:
    """Local hashing with two buckets, or the best number."""
    return lambda task: oracle(
        fo.LHClient(task.epsilon, task.size, use_olh=optimal),
        fo.LHServer(task.epsilon, task.size, use_olh=optimal),
        task.size,
        told=lambda report: hashed(report, round(math.exp(task.epsilon)) + 1 if optimal else 2),
    )


def fast_hashing(task: Task) -> Protocol:
    """Local hashing with few seeds."""
    return oracle(
        fo.FastLHClient(task.epsilon, task.size, FAST_HASHES, use_olh=True),
        fo.FastLHServer(task.epsilon, task.size, FAST_HASHES, use_olh=True),
        task.size,
        told=lambda report: hashed(report, round(math.exp(task.epsilon)) + 1),
    )


def hashed(report: Any, buckets: int) -> int:
    """Return whether a report supports the first value, and whether it supports the second."""
    own = [xxhash.xxh32(str(value), seed=report[1]).intdigest() % buckets for value in (0, 1)]
    return 2 * int(report[0] == own[0]) + int(report[0] == own[1])


def threshold(task: Task) -> Protocol:
    """Histogram encoding with a threshold."""
    return oracle(
        fo.HEClient(task.epsilon, task.size),
        fo.HEServer(task.epsilon, task.size, use_the=True),
        task.size,
        told=lambda report: 2 * int(report[0] > 0.5) + int(report[1] > 0.5),
    )


def hadamard_response(task: Task) -> Protocol:
    """Hadamard response; an output is a number."""
    server = fo.HadamardResponseServer(task.epsilon, task.size)
    client = fo.HadamardResponseClient(task.epsilon, task.size, server.get_hash_funcs())
    return oracle(client, server, task.size, told=int)


def hadamard_mechanism(task: Task) -> Protocol:
    """Hadamard mechanism: some coefficients of a transform, for its server over a power of two."""
    size = 1 << (task.size - 1).bit_length()
    client = fo.HadamardMechClient(task.epsilon, size, 1, use_optimal_t=True)

    def told(report: Any) -> int:
        key = 0
        for row, sign in report:
            for value in (0, 1):
                key = 2 * key + int(sign == (-1) ** bin(row & value).count("1"))
        return key

    protocol = oracle(client, fo.HadamardMechServer(task.epsilon, size, 1, use_optimal_t=True), task.size, told=told)
    # A report may be an iterator, which can be read once.
    return Protocol(lambda value: list(client.privatise(value + 1)), protocol.shares, "key", told)


def sketch(hadamard: bool) -> Build:
    """Count mean sketch, plain or by one bit of a Hadamard transform."""

    def build(task: Task) -> Protocol:
        server = fo.CMSServer(task.epsilon, HASHES, WIDTH, is_hadamard=hadamard)
        client = fo.CMSClient(task.epsilon, server.get_hash_funcs(), WIDTH, is_hadamard=hadamard)

        def told(report: Any) -> int:
            number = report[1]
            own = [server.hash_funcs[number](str(value)) for value in (1, 2)]
            if own[0] == own[1]:
                return 0
            if hadamard:
                return 1 + sum((1 + place) * int(report[0] == server.had[report[2], own[place]]) for place in (0, 1))
            return 1 + sum((1 + place) * int(report[0][own[place]] == 1) for place in (0, 1))

        return oracle(client, server, task.size, told=told)

    return build


def rappor(task: Task) -> Protocol:
    """Bloom filters in cohorts, without the instantaneous response; f is exact, where its own conversion rounds it."""
    flips = 2.0 / (1.0 + math.exp(task.epsilon / (2 * BLOOM_HASHES)))
    server = fo.RAPPORServer(flips, BLOOM_BITS, BLOOM_HASHES, task.size, COHORTS)
    client = fo.RAPPORClient(flips, BLOOM_BITS, server.get_hash_funcs(), COHORTS)

    def told(report: Any) -> int:
        bits, cohort = report
        sets = [{each(str(value)) for each in server.get_hash_funcs()[cohort]} for value in (0, 1)]
        key = 0
        for own, other in (sets, sets[::-1]):
            alone = own - other
            key = 16 * key + 4 * len(alone) + sum(int(bits[place]) for place in alone)
        return key

    return oracle(client, server, task.size, told=told)


PROTOCOLS: dict[str, Build] = {
    "DE": direct,
    "SUE": unary(optimal=False),
    "OUE": unary(optimal=True),
    "BLH": hashing(optimal=False),
    "OLH": hashing(optimal=True),
    "FastLH": fast_hashing,
    "THE": threshold,
    "HR": hadamard_response,
    "HM": hadamard_mechanism,
    "CMS": sketch(hadamard=False),
    "HCMS": sketch(hadamard=True),
    "RAPPOR": rappor,
}


if __name__ == "__main__":
    main(PROTOCOLS, seed)
