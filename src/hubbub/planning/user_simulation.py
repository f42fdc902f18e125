"""Studies whose reports cannot be listed: every user is drawn, and sends reports."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import LocalHashing, LongitudinalRappor, Mechanism
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.unary import UnaryEncoding
from hubbub.planning.candidate import Candidate
from hubbub.planning.pattern_simulation import split
from hubbub.reports import Block, Reports, Singles
from hubbub.reports.reports import assemble, in_order
from hubbub.sampling import source_of


def draw_reports(candidate: Candidate, users: int, truth: Floats, rng: np.random.Generator) -> Reports:
    """Return the reports of one study: values drawn from the truth, outputs by the mechanisms' own simulation."""
    counts = split(users, [share for _, share in candidate.parts])
    found: list[Reports] = []
    for (mechanism, _), members in zip(candidate.parts, counts, strict=True):
        if members:
            held = np.repeat(np.arange(truth.size), rng.multinomial(members, truth))
            sent = _outputs(mechanism, held, candidate.reports_per_user, rng)
            found.append(_together(mechanism, sent, members))
    return sum(found[1:], found[0])


def _outputs(mechanism: Mechanism, held: Positions, reports: int, rng: np.random.Generator) -> list[Codes]:
    words = source_of(rng)
    if reports > 1 and isinstance(mechanism, LongitudinalRappor):  # one memory for all reports of a user
        kept = mechanism.draw_permanent(held, words)
        return [mechanism.draw_instantaneous(kept, words) for _ in range(reports)]
    return [mechanism.report(held, words) for _ in range(reports)]


def _together(mechanism: Mechanism, sent: list[Codes], users: int) -> Reports:
    if len(sent) == 1:
        block: Block = Singles.build(mechanism, sent[0], np.ones(users, dtype=np.int64))
        return Reports(mechanism.domain, in_order([block]))
    who = np.tile(np.arange(users), len(sent))
    return assemble(mechanism.domain, {mechanism: np.concatenate(sent)}, {mechanism: who}, users)


def counts_are_independent(mechanism: Mechanism) -> bool:
    """Whether the numbers of reports that point at each value are independent, given the values of the users.

    The bits of unary reports are. So are the answers of a random hash, which sends every other value to the bucket that
    is reported with probability 1/g, whatever it does with the rest.
    """
    return isinstance(mechanism, UnaryEncoding | LocalHashing)


def draw_support(
    mechanism: FrequencyOracle, users: int, truth: Floats, runs: int, rng: np.random.Generator
) -> Positions:
    """Return for so many studies how many reports point at each value, without drawing the reports."""
    true, other = mechanism.support
    held = rng.multinomial(users, truth, size=runs)
    return np.asarray(rng.binomial(held, true) + rng.binomial(users - held, other))
