"""The other way: choose the division by one half of the users, and bound its parts by the other half.

The halves are independent, so that intervals from the second half hold for parts that the first half suggested:
profile intervals, at a level that makes all of them hold together (Bonferroni over the parts).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.core.arrays import frozen
from hubbub.intervals.interval_endpoints import LikelihoodRegion, profile_endpoints
from hubbub.intervals.linear_statistic import Statistic
from hubbub.likelihood import Likelihood
from hubbub.reports import BitSums, Block, Joint, Reports, Singles
from hubbub.reports.reports import in_order
from hubbub.resolution.pieces import Piece


def split_users(reports: Reports, rng: np.random.Generator) -> tuple[Reports, Reports] | None:
    """Return two halves of the users, drawn at random; None where only sums over users were kept."""
    halves: list[list[Block]] = [[], []]
    for block in reports.blocks:
        if isinstance(block, BitSums):
            return None
        assert isinstance(block, Singles | Joint)  # noqa: S101  # there are three kinds of blocks
        first = rng.binomial(block.counts, 0.5)
        for half, counts in zip(halves, (first, block.counts - first), strict=True):
            sent = counts > 0
            if not sent.any():
                continue
            counted = frozen(counts[sent])
            if isinstance(block, Singles):
                half.append(replace(block, codes=frozen(block.codes[sent]), counts=counted))
            else:
                half.append(replace(block, repeats=block.repeats[np.flatnonzero(sent)], counts=counted))
    if not all(halves):
        return None
    first_half, second_half = (Reports(reports.domain, in_order(half)) for half in halves)
    return first_half, second_half


def profile_pieces(
    reports: Reports, pieces: list[Piece], level: float, rng: np.random.Generator
) -> Generator[Any, None, list[Piece]]:
    """Return the pieces with profile intervals from these reports, which hold together at the level."""
    if len(pieces) == 1:
        return [pieces[0]._replace(low=1.0, high=1.0)]
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    statistics = [Statistic.share_of(reports.domain, piece.positions.tolist()) for piece in pieces]
    own_level = 1.0 - (1.0 - level) / len(pieces)
    intervals = yield from profile_endpoints(region, statistics, own_level, rng=rng)
    return [
        piece._replace(low=max(0.0, around.low), high=min(1.0, around.high))
        for piece, around in zip(pieces, intervals, strict=True)
    ]
