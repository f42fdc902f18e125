"""How much more likely an output is for a true value than for a fake one: what reports among fakes give away."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, SetValuedOracle
from hubbub.mechanisms.geometric import Geometric
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.mechanisms.sketches import HadamardCountMeanSketch
from hubbub.mechanisms.staircase import Staircase
from hubbub.mechanisms.subset_selection import SubsetSelection

BLOCK_ENTRIES = 1 << 22  # of a likelihood that are held at a time


class FakeValueOdds(NamedTuple):
    """P(z | x) / Q(z) of outputs z: the largest and the least over the values x, where Q is that of fake values.

    `unfaked` is the largest ratio of two P(z | x) over the outputs that no fake value gives; 1 where there are none.
    """

    largest: Floats
    least: Floats
    unfaked: float


def fake_value_odds(mechanism: Mechanism, fakes: Floats) -> FakeValueOdds | None:
    """Return the odds of a mechanism's outputs, or of those among them that can be extreme.

    `fakes` is the distribution of fake values. None where the outputs are neither sets of values nor listed.
    """
    if isinstance(mechanism, FrequencyOracle) and not isinstance(mechanism, ListedSets | HadamardCountMeanSketch):
        return _set_odds(mechanism, fakes)
    codes = _distinct_outputs(mechanism)
    return None if codes is None else _listed_odds(mechanism, fakes, codes)


def _set_odds(oracle: FrequencyOracle, fakes: Floats) -> FakeValueOdds:
    """Return the odds where an output is R times as likely for the values in its set as for the others.

    With a share w of fakes in the set, they are R / (w R + 1 - w) and 1 / (w R + 1 - w): extreme where w is. Empty and
    full sets say nothing.
    """
    if isinstance(oracle, RandomizedResponse | SubsetSelection):
        size = (oracle.size or 1) if isinstance(oracle, SubsetSelection) else 1
        inside = np.sort(fakes)
        shares = np.array([inside[:size].sum(), inside[-size:].sum()])
    else:
        shares = np.array([fakes.min(), 1.0 - fakes.min()])
    ratio = (
        math.exp(oracle.log_ratio)
        if isinstance(oracle, SetValuedOracle)
        else oracle.support.true / oracle.support.other
    )
    mean = shares * ratio + (1.0 - shares)
    return FakeValueOdds(np.append(ratio / mean, 1.0), np.append(1.0 / mean, 1.0), 1.0)


def _distinct_outputs(mechanism: Mechanism) -> Codes | None:
    """Return codes of outputs that stand for all others, too; None where there are none."""
    if isinstance(mechanism, Geometric):  # beyond the last value, all outputs have the odds of that value
        return mechanism.domain.labels
    if isinstance(mechanism, Staircase):
        return mechanism.folded_outputs()[0]
    size = mechanism.output_space.size
    return None if size is None else np.arange(size)


def _listed_odds(mechanism: Mechanism, fakes: Floats, codes: Codes) -> FakeValueOdds:
    step = max(1, BLOCK_ENTRIES // len(mechanism.domain))
    largest, least, unfaked = [], [], 1.0
    for first in range(0, len(codes), step):
        logs = mechanism.log_columns(codes[first : first + step])
        logs = logs[:, np.isfinite(logs).any(axis=0)]  # no value gives the others
        scaled = np.exp(logs - logs.max(axis=0))
        among, low = fakes @ scaled, scaled.min(axis=0)
        faked = among > 0.0
        largest.append(1.0 / among[faked])
        least.append(low[faked] / among[faked])
        with np.errstate(divide="ignore"):
            unfaked = max(unfaked, float((1.0 / low[~faked]).max(initial=1.0)))
    return FakeValueOdds(np.concatenate(largest), np.concatenate(least), unfaked)
