"""Which reports merge to few patterns, and merging them on the cluster.

Outputs from a list, and whole numbers around the values, repeat: a billion of them are a table of counts that fits
everywhere, and nothing of this package is needed to estimate from it. Bits of large domains, and hashes with their
seeds, hardly ever repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb
from typing import TYPE_CHECKING, Any

from hubbub.cluster.cluster_reports import PATIENCE, ClusterReports
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import IntegerOutputs, PairOutputs
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.reports import Reports

if TYPE_CHECKING:
    from distributed import Client, Future

FEW = 1_000_000  # patterns that fit on any machine


def merges(mechanisms: Iterable[Mechanism], outputs_per_user: int = 1) -> bool:
    """Whether reports of these mechanisms merge to few patterns, however many users there are.

    With s outputs that are told apart and up to m of them from each user there are C(s + m, m) - 1 patterns. Whole
    numbers without end merge in practice, since noise makes far ones rare, if a user sends one of them.
    """
    total = 0
    for mechanism in mechanisms:
        space = mechanism.output_space
        if space.size is not None:
            total += space.size
        elif isinstance(space, BitRowOutputs):
            total += 2 ** min(space.length, 64)
        elif not isinstance(space, IntegerOutputs | PairOutputs) or outputs_per_user > 1:
            return False
    return comb(total + outputs_per_user, outputs_per_user) - 1 <= FEW


def merge(client: Client, parts: Iterable[Future[Any]], *, patience: float = PATIENCE) -> Reports:
    """Return the sum of parts that workers hold, merged on the cluster in a tree; only the result travels here."""
    return ClusterReports(client, parts, patience=patience).merged()
