"""What the reports look like to someone who takes them at their word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats
from hubbub.domains import Domain
from hubbub.mechanisms import Geometric, Mechanism, PlanarGeometric
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

OUTPUTS = "how often each value was sent"
CLAMPED = "how often each value was sent, outputs beyond the domain counted at its nearest value"
ONES = "how often each value was among the ones or in the set that a report names, in shares of all of these"


class Noisy(NamedTuple):
    """Shares over the domain, or None, and what they are or why there are none."""

    shares: Floats | None
    note: str


def noisy_shares(reports: Reports) -> Noisy:
    """Return the shares of what was sent, over the values; all outputs of a user count."""
    shares, notes = np.zeros(len(reports.domain)), dict[str, None]()
    for block in reports.blocks:
        for mechanism, codes, counts in _outputs(block):
            found = _at_their_word(mechanism, codes, counts)
            if found is None:
                kind = type(mechanism).__name__
                return Noisy(None, f"The outputs of {kind} are no values: there is nothing to compare with.")
            held, note = found
            shares += held[reports.domain.positions]
            notes[note] = None
    total = float(shares.sum())
    if total == 0.0:
        return Noisy(None, "No output names a value that is estimated here: there is nothing to compare with.")
    return Noisy(shares / total, "The noisy reports as they came: " + "; ".join(notes) + ".")


def _outputs(block: Block) -> list[tuple[Mechanism, Codes | None, Floats]]:
    """Return each mechanism's outputs and how often each was sent; for sums of bits, the sums."""
    if isinstance(block, BitSums):
        return [(block.mechanism, None, block.ones.astype(np.float64))]
    if isinstance(block, Singles):
        return [(block.mechanism, block.codes, block.weights)]
    assert isinstance(block, Joint)  # noqa: S101  # there are three kinds of blocks
    sent = np.asarray(block.weights @ block.repeats)
    found: list[tuple[Mechanism, Codes | None, Floats]] = []
    first = 0
    for mechanism, codes in block.sources:
        found.append((mechanism, codes, sent[first : first + len(codes)]))
        first += len(codes)
    return found


def _at_their_word(mechanism: Mechanism, codes: Codes | None, counts: Floats) -> tuple[Floats, str] | None:
    """Return how often each value of the mechanism's domain was sent, and what that is; None: these are no values."""
    domain: Domain = mechanism.domain
    if codes is None:
        return counts, ONES
    if isinstance(mechanism, SetValuedOracle):
        return mechanism.support_counts(codes, counts), ONES
    if isinstance(mechanism, Geometric):
        low, high = mechanism.domain.low, mechanism.domain.high
        return _counted(np.clip(codes, low, high) - low, counts, domain), CLAMPED
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        grid = mechanism.domain
        steps = np.clip(codes, 0, [grid.columns - 1, grid.rows - 1])
        places = grid.find(steps[:, 1] * grid.columns + steps[:, 0])
        # Cells that are not kept answer nothing: the nearest kept one is what a truncated mechanism would send.
        if (places < 0).any():
            places = grid.nearest(steps[:, 0], steps[:, 1])
        return _counted(places, counts, domain), CLAMPED
    if mechanism.answers_in_domain:
        places = domain.find(mechanism.output_space.decode(codes))
        return _counted(places[places >= 0], counts[places >= 0], domain), OUTPUTS
    return None


def _counted(places: Codes, counts: Floats, domain: Domain) -> Floats:
    found: Floats = np.zeros(len(domain))
    np.add.at(found, places, counts)
    return found
