"""Ones of the bits of noisy Bloom filters, cohort by cohort: their means and covariances follow from theta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.goodness_of_fit.count_tables import BitMoments, CountTable
from hubbub.mechanisms import BloomRappor


@dataclass(frozen=True, eq=False)
class FilterMoments(BitMoments):
    """Ones of each bit over the users of a cohort.

    Given the value, bits are independent; of the rest, for which filters are random, two bits have a covariance, which
    is the same for any two.
    """

    shared: Floats | None = None  # of each value: the covariance of two bits

    def _covariance(self, theta: Floats) -> Floats:
        mean = theta @ self.probabilities
        both = (self.probabilities * theta[:, None]).T @ self.probabilities
        both += 0.0 if self.shared is None else float(theta @ self.shared)
        np.fill_diagonal(both, mean)
        return np.asarray(both - mean[:, None] * mean[None, :])


def filter_tables(
    mechanism: BloomRappor, ones: Floats, senders: Sequence[int] | Floats | Positions, among: Positions | None
) -> list[CountTable]:
    """Return a table for each cohort that anybody is in."""
    zero, one = (float(chance) for chance in mechanism.chances)
    kept = np.arange(len(mechanism.domain)) if among is None else among
    means, bits, hashes = mechanism.mean_filters(among), mechanism.bits, mechanism.hashes
    any_bit, either = (1.0 - (1.0 - bit / bits) ** hashes for bit in (1, 2))
    shared = np.where(kept == mechanism.rest_position, (one - zero) ** 2 * (2 * any_bit - either - any_bit**2), 0.0)
    tables: list[CountTable] = []
    for cohort in np.flatnonzero(np.asarray(senders)).tolist():

        def text(bit: int, cohort: int = cohort) -> str:
            return f"ones in bit {bit} of cohort {cohort}"

        probabilities = zero + (one - zero) * means[cohort]
        tables.append(FilterMoments(int(senders[cohort]), ones[cohort], probabilities, text, shared=shared))
    return tables
