"""Which fake reports are tried against an estimate that averages candidates.

Fakes move such an estimate in two ways. They may tip the choice between smooth and spiky candidates: that is where the
maximum of the likelihood moves most (`shift_prediction`). Or they drag the average along: then averaging the same
candidates with the same weights again, which is quick for all reports at once (`estimators.reestimation`), tells which
report does most. Neither order finds the worst report alone: on four small studies the first reached a fifth to a half
of the worst shift, on four of five others the second missed it. So reports are taken from both orders in turn.
"""

from __future__ import annotations

from itertools import chain, zip_longest

import numpy as np

from hubbub.estimators import Estimate, reestimate
from hubbub.poisoning.fake_reports import FakeFamily, FakeReport
from hubbub.poisoning.shift_prediction import MAX_TRIALS, MIN_TRIALS
from hubbub.reports import Reports

MAX_RANKED = 64  # reports, evenly spaced over those that fakes might send
MIN_RANKED = 8  # fewer would not be worth it...
MAX_RANKED_ENTRIES = 200_000  # ...and of more entries of all channels together, ranking takes longer than trying
MAX_TRIED_ENTRIES = 40_000  # of the channels of all full estimates, if more than the fewest are made


def worth_trying(
    families: list[FakeFamily], promising: list[FakeReport], reports: Reports, estimate: Estimate, share: float
) -> list[FakeReport]:
    """Return the fake reports to try: promising ones, and those that drag the average along, in turn."""
    entries = reports.channel.entries
    ranked = min(MAX_RANKED, MAX_RANKED_ENTRIES // entries)
    dragging = _dragging(families, reports, estimate, share, ranked) if ranked >= MIN_RANKED else []
    limit = int(np.clip(MAX_TRIED_ENTRIES // entries, MIN_TRIALS, MAX_TRIALS))
    chosen: list[FakeReport] = []
    for fake in chain.from_iterable(zip_longest(promising, dragging)):
        if fake is not None and len(chosen) < limit and not any(fake.is_like(other) for other in chosen):
            chosen.append(fake)
    return chosen


def _dragging(
    families: list[FakeFamily], reports: Reports, estimate: Estimate, share: float, ranked: int
) -> list[FakeReport]:
    """Return some of the reports that fakes might send, those first that move the same average most."""
    possible = [
        FakeReport(family, int(column))
        for family in families
        for column in np.flatnonzero(family.likelihood_ratios.max(axis=0) > 0.0)
    ]
    places = np.unique(np.linspace(0, len(possible) - 1, ranked).astype(np.int64))
    candidates = [possible[place] for place in places.tolist()]
    single = [Reports(reports.domain, (fake.sent_by(1),)) for fake in candidates]
    marked = sum(single, start=reports)  # with a pattern for each candidate
    patterns = np.stack([(marked + one).weights - marked.weights for one in single])
    honest = marked.weights - patterns.sum(axis=0)
    thetas = reestimate(marked, (1.0 - share) * honest + share * reports.users * patterns, estimate)
    shifts = np.abs(thetas - estimate.probabilities).max(axis=1)
    return [candidates[place] for place in np.argsort(-shifts, kind="stable").tolist()]
