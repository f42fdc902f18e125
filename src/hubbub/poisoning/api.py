"""`worst_case_shift`: how far a few fake users could move the estimate that is shown.

A fake user runs no mechanism and may send any output. Of n users let a share s be fake, all of them sending the same
report z; the honest ones send what was collected. The estimate is made again from the reports with these fakes, by the
same method, and the shift of a value is how far its share has moved. The worst case is over all values and all reports
z. One estimate gives the shifts of all values under one z, and z may be one of very many (`fake_reports`): only the
most promising are tried. They are chosen by how far the maximum of the likelihood would move (`shift_prediction`), or,
where the estimate averages candidates, also by how far the same average would (`reestimated_ranking`).

The shift returned is that of a full estimate: fakes can reach it, and the worst case is at least as large.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import frozen, largest_first, plain
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import threads_for
from hubbub.estimators import Estimate
from hubbub.estimators.reestimation import rerun
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_reports
from hubbub.likelihood import Likelihood
from hubbub.poisoning.fake_reports import FakeReport, fake_reports
from hubbub.poisoning.reestimated_ranking import worth_trying
from hubbub.poisoning.result import Shift
from hubbub.poisoning.shift_prediction import MAX_TRIALS, most_promising
from hubbub.reports import Reports, SurveyWeights
from hubbub.solvers import likeliest_point

# Entries of the channel beyond which a maximum takes minutes: reports are then predicted to move the estimate from
# where it is, not from the maximum.
MAX_SEARCHED_ENTRIES = 2e9
MAX_GAP = 1e-10  # nats per user: if outputs are noisy, 1e-7 leaves tenths of a probability open
EXPECTED_SHARE = "a share of fake users between 0 and 1, such as 0.01"


@stepwise
def worst_case_shift(
    reports: Reports, share: float, *, estimate: Estimate | None = None
) -> Generator[Progress, None, Shift]:
    """Return how far fake users could move the estimated share of a value, at least.

    The fake users are among the users of the reports: as many honest ones are left out, evenly over all patterns. All
    fakes send the same report, with as many outputs as honest users send. The shift was reached by a full estimate, so
    the worst case is no smaller; the reports tried are chosen by a prediction, so it may be larger.

    Parameters
    ----------
    reports : Reports
        What was collected.
    share : float
        The share of fake users: 0.01 is 1%. They are a whole number of users, at least one.
    estimate : Estimate, optional
        The estimate whose shift is asked for; that of ``hubbub.estimate(reports)`` by default. With the fakes it is
        made again by the same method and settings.

    Returns
    -------
    Shift
        A number, the largest shift found, with `value`, `title`, `output`, `before`, `after` and `explain()`.

    Raises
    ------
    SettingError
        If `share` is not between 0 and 1, or the estimate is over another domain.
    EstimateError
        If `reports` are not reports in this process.

    Examples
    --------
    >>> import hubbub as hb
    >>> answer = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), epsilon=1.0)
    >>> reports = hb.Reports.from_counts(answer, {"yes": 500, "no": 300, "unsure": 200})
    >>> shift = hb.worst_case_shift(reports, share=0.01)
    >>> round(shift, 3), shift.value, shift.output
    (0.017, 'no', 'output no')
    """
    check_reports(reports, "worst_case_shift")
    share = validation.share(share, "share", "worst_case_shift", expected=EXPECTED_SHARE)
    entries = reports.weights.size * len(reports.domain)
    yield Progress(0, MAX_TRIALS + 2, "estimating without fakes")
    shown = yield from shown_estimate(reports, estimate, "worst_case_shift")
    with threads_for(entries):
        likelihood = Likelihood.of(reports)
        is_large = likelihood.channel.entries > MAX_SEARCHED_ENTRIES
        honest = likelihood.at(shown.probabilities) if is_large else likeliest_point(likelihood, MAX_GAP)
    yield Progress(1, MAX_TRIALS + 2, "choosing what fakes might send")
    with threads_for(entries):
        families = fake_reports(reports, honest, share)
        fakes = most_promising(families, honest, reports, share)
        if "selection" in shown.settings and reports.survey is None:
            fakes = worth_trying(families, fakes, reports, shown, share)
    shifts: list[Shift] = []
    for done, fake in enumerate(fakes, start=2):
        yield Progress(done, len(fakes) + 2, "estimating with fakes")
        moved = rerun(reports_with_fakes(reports, fake, share), shown).probabilities
        change = moved - shown.probabilities
        rising = np.argsort(change <= 0.0, kind="stable")  # first: of two equal shifts, the one that fakes gain is told
        value = int(rising[largest_first(np.abs(change[rising]))[0]])
        shifts.append(
            Shift(
                share=share,
                value=(label := plain(reports.domain.labels[value])),
                title=repr(label) if isinstance(label, str) else reports.domain.title(value),
                output=fake.text,
                before=float(shown.probabilities[value]),
                after=float(moved[value]),
                method=shown.method,
            )
        )
    return max(shifts)  # the first of the largest; there is one: whatever was sent once can be sent by fakes


def reports_with_fakes(reports: Reports, fake: FakeReport, share: float) -> Reports:
    """Return the reports with a share of the users replaced by fakes who all send one report.

    With survey weights it is a share of the total weight: fakes of average weight join, and all others count less.
    """
    if reports.survey is not None:
        return _with_weighted_fakes(reports, reports.survey, fake, share)
    fakes = max(1, round(share * reports.users))
    kept = (reports.users - fakes) / reports.users
    honest = [block.thinned(kept) for block in reports.blocks]
    missing = reports.users - fakes - sum(block.users for block in honest)  # by rounding, one for each block at most
    sent = fake.sent_by(fakes + missing)
    return Reports(reports.domain, tuple(block for block in honest if block.users)) + Reports(reports.domain, (sent,))


def _with_weighted_fakes(reports: Reports, survey: SurveyWeights, fake: FakeReport, share: float) -> Reports:
    fakes = max(1, round(share * reports.users))
    total = float(survey.users @ survey.weights)
    honest = Reports(reports.domain, reports.blocks, replace(survey, weights=frozen((1.0 - share) * survey.weights)))
    joined = Reports(reports.domain, (fake.sent_by(fakes),))
    labels = [np.unique(names) for names in (survey.strata, survey.clusters)]  # the first of them, whichever it is
    sampled = SurveyWeights(
        np.zeros(1, dtype=np.int64), np.array([share * total / fakes]), labels[0][:1], labels[1][:1], np.array([fakes])
    )
    return honest + Reports(joined.domain, joined.blocks, sampled)
