"""Run multi-freq-ldpy's protocols: python run_protocols_multi_freq_ldpy.py FOLDER (see protocol_runner.py)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import xxhash
from multi_freq_ldpy.long_freq_est import L_GRR, L_LH, L_OSUE, L_OUE, L_SOUE, L_SUE, dBitFlipPM
from multi_freq_ldpy.pure_frequency_oracles import GRR, HE, LH, SS, UE
from protocol_runner import Build, Protocol, Task, main


@numba.njit
def seed_compiled(seed: int) -> None:
    """Seed the generator of compiled code, which is not the one of NumPy."""
    np.random.seed(seed)  # noqa: NPY002


def seed(number: int) -> None:
    """Seed both generators: it draws from global ones."""
    np.random.seed(number)  # noqa: NPY002
    seed_compiled(number)


def grr(task: Task) -> Protocol:
    """k-ary randomized response."""
    k, epsilon = task.size, task.epsilon
    return Protocol(
        lambda value: GRR.GRR_Client(value, k, epsilon),
        lambda reports: GRR.GRR_Aggregator_MI(reports, k, epsilon),
        "value",
    )


def unary(optimal: bool) -> Build:
    """Unary encoding, symmetric or optimized."""
    return lambda task: Protocol(
        lambda value: UE.UE_Client(value, task.size, task.epsilon, optimal),
        lambda reports: UE.UE_Aggregator_MI(reports, task.epsilon, optimal),
        "bits",
    )


def subset(task: Task) -> Protocol:
    """Subset selection."""

    def bits(report: Any) -> Any:
        row = np.zeros(task.size, dtype=np.uint8)
        row[np.asarray(report)] = 1
        return row

    return Protocol(
        lambda value: SS.SS_Client(value, task.size, task.epsilon),
        lambda reports: SS.SS_Aggregator_MI(reports, task.size, task.epsilon),
        "bits",
        bits,
    )


def hashing(optimal: bool) -> Build:
    """Local hashing with two buckets, or the best number."""

    def build(task: Task) -> Protocol:
        buckets = round(np.exp(task.epsilon)) + 1 if optimal else 2
        return Protocol(
            lambda value: LH.LH_Client(value, task.size, task.epsilon, optimal),
            lambda reports: LH.LH_Aggregator_MI(reports, task.size, task.epsilon, optimal),
            told=lambda report: hashed(report, buckets),
        )

    return build


def hashed(report: Any, buckets: int) -> int:
    """Return whether a report supports 0, and whether it supports 1."""
    own = [xxhash.xxh32(str(value), seed=report[1]).intdigest() % buckets for value in (0, 1)]
    return 2 * int(report[0] == own[0]) + int(report[0] == own[1])


def threshold(task: Task) -> Protocol:
    """Histogram encoding with a threshold, which is found anew for each estimate; its noisy histograms are reports."""
    return Protocol(
        lambda value: HE.HE_Client(value, task.size, task.epsilon),
        lambda reports: HE.HE_Aggregator_MI(reports, task.size, task.epsilon, True),
        told=lambda report: 2 * int(report[0] > 0.5) + int(report[1] > 0.5),
    )


def longitudinal(module: Any, name: str, form: str) -> Build:
    """One report of a protocol with memory."""
    client, aggregator = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_MI")

    def build(task: Task) -> Protocol:
        sizes = () if form == "bits" else (task.size,)
        return Protocol(
            lambda value: client(value, task.size, task.epsilon, task.first),
            lambda reports: aggregator(reports, *sizes, task.epsilon, task.first),
            form,
        )

    return build


def longitudinal_hashing(task: Task) -> Protocol:
    """LOLOHA with the best number of buckets."""
    k, epsilon, first = task.size, task.epsilon, task.first
    return Protocol(
        lambda value: L_LH.L_LH_Client(value, k, epsilon, first),
        lambda reports: L_LH.L_LH_Aggregator_MI(reports, k, epsilon, first),
        told=lambda report: hashed(report, loloha_buckets(epsilon, first)),
    )


def loloha_buckets(epsilon: float, first: float) -> int:
    """Return the published number of buckets."""
    a, b = np.exp(epsilon), np.exp(first)
    root = np.sqrt(a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1)
    return max(2, 1 + int(np.rint((1 - a**2 + root) / (6 * (a - b)))))


def bit_flip(task: Task) -> Protocol:
    """Noisy answers about all of as many buckets as values."""
    k, epsilon = task.size, task.epsilon
    return Protocol(
        lambda value: dBitFlipPM.dBitFlipPM_Client(value, k, k, k, epsilon),
        lambda reports: dBitFlipPM.dBitFlipPM_Aggregator_MI(reports, k, k, epsilon),
        told=lambda report: 2 * int(report[0] == 1) + int(report[1] == 1),
    )


PROTOCOLS: dict[str, Build] = {
    "GRR": grr,
    "SUE": unary(optimal=False),
    "OUE": unary(optimal=True),
    "SS": subset,
    "BLH": hashing(optimal=False),
    "OLH": hashing(optimal=True),
    "THE": threshold,
    "L_GRR": longitudinal(L_GRR, "L_GRR", "value"),
    "L_SUE": longitudinal(L_SUE, "L_SUE", "bits"),
    "L_OSUE": longitudinal(L_OSUE, "L_OSUE", "bits"),
    "L_SOUE": longitudinal(L_SOUE, "L_SOUE", "bits"),
    "L_OUE": longitudinal(L_OUE, "L_OUE", "bits"),
    "L_LH": longitudinal_hashing,
    "dBitFlipPM": bit_flip,
}


if __name__ == "__main__":
    main(PROTOCOLS, seed)
