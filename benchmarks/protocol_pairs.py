"""Which mechanism here is which protocol of another tool, and what it takes here: time, error, proven epsilon."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import hubbub as hb

Floats = NDArray[np.float64]
Build = Callable[[Any, hb.Domain, float, float], hb.Mechanism]  # hubbub, domain, epsilon, epsilon of one report

HASHES, WIDTH = 64, 128  # of sketches, as in peers/run_protocols_pure_ldp.py
COHORTS, BLOOM_BITS, BLOOM_HASHES = 8, 32, 2
CLIPPED, RAW = "inv-n", "inv"  # what the tools do with inverted shares: cut at 0 and normalised; nothing


@dataclass(frozen=True)
class Pair:
    """A protocol of another tool, and what it is here."""

    tool: str
    protocol: str
    needs: str  # the class here
    build: Build
    method: str
    has_memory: bool = False

    @property
    def name(self) -> str:
        """How rows call it."""
        return f"{self.tool} {self.protocol}"


def threshold_bits(module: Any, domain: hb.Domain, epsilon: float, _: float) -> hb.Mechanism:
    """Return the bits that a threshold makes of Laplace noise: the threshold with the least variance."""

    def probabilities(at: float) -> tuple[float, float]:
        return 1 - 0.5 * math.exp(epsilon * (at - 1) / 2), 0.5 * math.exp(-epsilon * at / 2)

    def variance(at: float) -> float:
        own, other = probabilities(at)
        return other * (1 - other) / (own - other) ** 2

    best = minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded").x
    own, other = (Fraction(each).limit_denominator(4096) for each in probabilities(float(best)))
    mechanism: hb.Mechanism = module.Unary(domain, p=own, q=other)
    return mechanism


def _longitudinal(first: str, second: str) -> Build:
    return lambda module, domain, epsilon, once: module.LongitudinalUnary(
        domain, epsilon, once, permanent_bits=first, instantaneous_bits=second
    )


def _plain(name: str, **parameters: Any) -> Build:
    return lambda module, domain, epsilon, _: getattr(module, name)(domain, epsilon=epsilon, **parameters)


def _with_memory(name: str) -> Build:
    return lambda module, domain, epsilon, once: getattr(module, name)(domain, epsilon=epsilon, first=once)


def _bloom(module: Any, domain: hb.Domain, epsilon: float, _: float) -> hb.Mechanism:
    texts = hb.Categories([str(label) for label in domain.labels])
    sizes = {"cohorts": COHORTS, "bits": BLOOM_BITS, "hashes": BLOOM_HASHES}
    mechanism: hb.Mechanism = module.BloomRappor(texts, epsilon=epsilon, **sizes)
    return mechanism


MULTI, PURE = "multi-freq-ldpy", "pure-LDP"
PAIRS = (
    Pair(MULTI, "GRR", "RandomizedResponse", _plain("RandomizedResponse"), CLIPPED),
    Pair(MULTI, "SUE", "Rappor", _plain("Rappor"), CLIPPED),
    Pair(MULTI, "OUE", "OptimizedUnary", _plain("OptimizedUnary"), CLIPPED),
    Pair(MULTI, "SS", "SubsetSelection", _plain("SubsetSelection"), CLIPPED),
    Pair(MULTI, "BLH", "LocalHashing", _plain("LocalHashing", buckets=2), CLIPPED),
    Pair(MULTI, "OLH", "LocalHashing", _plain("LocalHashing"), CLIPPED),
    Pair(MULTI, "THE", "Unary", threshold_bits, CLIPPED),
    Pair(MULTI, "L_GRR", "LongitudinalResponse", _with_memory("LongitudinalResponse"), CLIPPED, True),
    Pair(MULTI, "L_SUE", "LongitudinalRappor", _with_memory("LongitudinalRappor"), CLIPPED, True),
    Pair(MULTI, "L_OSUE", "LongitudinalUnary", _longitudinal("oue", "sue"), CLIPPED, True),
    Pair(MULTI, "L_SOUE", "LongitudinalUnary", _longitudinal("sue", "oue"), CLIPPED, True),
    Pair(MULTI, "L_OUE", "LongitudinalUnary", _longitudinal("oue", "oue"), CLIPPED, True),
    Pair(MULTI, "L_LH", "LongitudinalHashing", _with_memory("LongitudinalHashing"), CLIPPED, True),
    Pair(MULTI, "dBitFlipPM", "DBitFlip", _plain("DBitFlip"), CLIPPED),
    Pair(PURE, "DE", "RandomizedResponse", _plain("RandomizedResponse"), RAW),
    Pair(PURE, "SUE", "Rappor", _plain("Rappor"), RAW),
    Pair(PURE, "OUE", "OptimizedUnary", _plain("OptimizedUnary"), RAW),
    Pair(PURE, "BLH", "LocalHashing", _plain("LocalHashing", buckets=2), RAW),
    Pair(PURE, "OLH", "LocalHashing", _plain("LocalHashing"), RAW),
    Pair(PURE, "FastLH", "LocalHashing", _plain("LocalHashing"), RAW),
    Pair(PURE, "THE", "Unary", threshold_bits, RAW),
    Pair(PURE, "HR", "HadamardResponse", _plain("HadamardResponse"), RAW),
    Pair(PURE, "HM", "HadamardResponse", _plain("HadamardResponse"), RAW),
    Pair(PURE, "CMS", "CountMeanSketch", _plain("CountMeanSketch", hashes=HASHES, width=WIDTH), RAW),
    Pair(PURE, "HCMS", "HadamardCountMeanSketch", _plain("HadamardCountMeanSketch", hashes=HASHES, width=WIDTH), RAW),
    Pair(PURE, "RAPPOR", "BloomRappor", _bloom, "mle"),  # there regression with shares that are not negative
)


def pair_named(name: str) -> Pair:
    """Return the pair of a name."""
    return next(pair for pair in PAIRS if pair.name == name)


def here(name: str, folder: str, size: int, epsilon: float, first: float, runs: int, fewer: int) -> dict[str, Any]:
    """Return seconds for each user, squared errors and total variations of all runs, and what is proven of epsilon.

    Times are of all users: reports drawn with the operating system's randomness by the exact law, read as outputs, and
    estimated by the method that the other tool uses. Errors are of the first `fewer` users, as many as there.
    """
    pair = pair_named(name)
    mechanism = pair.build(hb, hb.Integers(0, size - 1), epsilon, first)
    positions = np.load(Path(folder) / "values.npy")
    values = mechanism.domain.labels[positions]
    _study(mechanism, values[:2_000], pair.method)  # what is compiled is compiled
    timed = [_study(mechanism, values, pair.method) for _ in range(runs)]
    estimates = [_study(mechanism, values[:fewer], pair.method)[2] for _ in range(runs)]
    return {
        "client": float(np.median([each[0] for each in timed])) / len(values),
        "aggregate": float(np.median([each[1] for each in timed])) / len(values),
        **errors(np.array(estimates), positions[:fewer], size),
        "proven": proven(mechanism),
    }


def _study(mechanism: hb.Mechanism, values: Any, method: str) -> tuple[float, float, Floats]:
    start = time.perf_counter()
    outputs = mechanism.privatize(values)
    sent = time.perf_counter()
    shares = hb.estimate(_read(mechanism, outputs), method).probabilities
    return sent - start, time.perf_counter() - sent, shares


def _read(mechanism: hb.Mechanism, outputs: Any) -> hb.Reports:
    """Return reports; of one bit for each value their sums, which is all that aggregators there keep of them, too."""
    if isinstance(mechanism, hb.Rappor | hb.OptimizedUnary | hb.Unary | hb.LongitudinalRappor | hb.LongitudinalUnary):
        return hb.Reports.from_bit_counts(mechanism, mechanism.bit_counts(outputs), len(outputs))
    if isinstance(mechanism, hb.BloomRappor):
        return hb.Reports.from_bit_counts(mechanism, *mechanism.bit_counts(outputs))
    return hb.Reports.from_outputs(mechanism, outputs)


def errors(estimates: Floats, positions: NDArray[np.int64], size: int) -> dict[str, list[float]]:
    """Return the mean squared error and the total variation of each run, to the shares of the people who took part."""
    truth = np.bincount(positions, minlength=size) / positions.size
    apart = estimates - truth
    return {"squares": (apart**2).mean(axis=1).tolist(), "variations": (np.abs(apart).sum(axis=1) / 2).tolist()}


def proven(mechanism: hb.Mechanism) -> float | None:
    """Return the largest epsilon of one report that the audit proves; None where it proves nothing."""
    audit = hb.audit(mechanism)
    exact = audit.one_report or audit.exact
    return None if exact is None or not exact.holds else float(exact.high)
