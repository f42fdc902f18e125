"""Simulate studies user by user, where patterns are too many to enumerate."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.planning.candidates import Candidate
from hubbub.planning.pattern_simulation import split_users
from hubbub.reports import Block, Reports, Singles
from hubbub.reports.reports import assemble, in_order
from hubbub.sampling import source_of


def draw_reports(candidate: Candidate, users: int, truth: Floats, rng: np.random.Generator) -> Reports:
    """Return the reports of one study: values drawn from the truth, outputs by the mechanisms themselves."""
    counts = split_users(users, [share for _, share in candidate.parts])
    groups: list[Reports] = []
    for (mechanism, _), members in zip(candidate.parts, counts, strict=True):
        if members:
            held = np.repeat(np.arange(truth.size), rng.multinomial(members, truth))
            sent = _outputs(mechanism, held, candidate.reports_per_user, rng)
            groups.append(_as_reports(mechanism, sent, members))
    return sum(groups[1:], groups[0])


def reports_of(mechanism: Mechanism, held: Positions, rng: np.random.Generator) -> Reports:
    """Return one report of each user, given the positions of their values."""
    return _as_reports(mechanism, _outputs(mechanism, held, 1, rng), held.size)


def _outputs(mechanism: Mechanism, held: Positions, reports: int, rng: np.random.Generator) -> list[Codes]:
    words = source_of(rng)
    if reports > 1 and isinstance(mechanism, Longitudinal):  # all reports of a user share one memory
        kept = mechanism.draw_permanent(held, words)
        return [mechanism.draw_instantaneous(kept, words) for _ in range(reports)]
    return [mechanism.report(held, words) for _ in range(reports)]


def _as_reports(mechanism: Mechanism, sent: list[Codes], users: int) -> Reports:
    if len(sent) == 1:
        block: Block = Singles.build(mechanism, sent[0], np.ones(users, dtype=np.int64))
        return Reports(mechanism.domain, in_order([block]))
    who = np.tile(np.arange(users), len(sent))
    return assemble(mechanism.domain, {mechanism: np.concatenate(sent)}, {mechanism: who}, users)
