"""`worst_case_shift`: how far a few fake users could move the estimate.

A fake user runs no mechanism and may send any output. Of n users let a share s be fake, all of them sending the same
report z; the honest ones send what was collected. The estimate is then the maximum of

    (1 - s) sum_i w_i log f_i  +  s n log f_z,

and the shift of a value is how far its probability has moved from the estimate without fakes. The worst case is over
all values and all reports z. One maximisation gives the shifts of all values under one z, and z may be one of very
many (`fake_reports`): only the most promising are tried (`shift_prediction`).

The shift returned is that of a full maximisation: fakes can reach it, and the worst case is at least as large.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from hubbub.channels import Channel, ConcatenatedChannel, DenseChannel
from hubbub.core import validation
from hubbub.core.arrays import Floats, plain
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import threads_for
from hubbub.estimators.validation import check_reports
from hubbub.likelihood import Likelihood
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.poisoning.fake_reports import FakeReport, fake_reports
from hubbub.poisoning.result import Shift
from hubbub.poisoning.shift_prediction import MAX_TRIALS, most_promising
from hubbub.reports import Reports
from hubbub.reports.blocks import BitSums, Singles
from hubbub.solvers import likeliest_point

MAX_GAP = 1e-10  # nats per user: if outputs are noisy, 1e-7 leaves tenths of a probability open
EXPECTED_SHARE = "a share of fake users between 0 and 1, such as 0.01"


@stepwise
def worst_case_shift(reports: Reports, share: float) -> Generator[Progress, None, Shift]:
    """Return how far a share of fake users could move the estimated probability of a value, at least.

    The fake users are among the users of the reports, so the honest ones count 1 - share each. All fakes send the same
    report, with as many outputs as honest users send. The estimate is the maximum of the likelihood (the solver's, if
    it is not the only one). The shift was reached by a full estimate, so the worst case is no smaller; the reports
    tried are chosen by a prediction (``hubbub.poisoning.shift_prediction``), so it may be larger.

    Parameters
    ----------
    reports : Reports
        What was collected.
    share : float
        The share of fake users: 0.01 is 1%.

    Returns
    -------
    Shift
        A number, the largest shift found, with `value`, `output`, `before`, `after` and `explain()`.

    Examples
    --------
    >>> import hubbub as hb
    >>> answer = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), epsilon=1.0)
    >>> shift = worst_case_shift(hb.Reports.from_counts(answer, {"yes": 500, "no": 300, "unsure": 200}), share=0.01)
    >>> round(shift, 3), shift.value, shift.output
    (0.017, 'no', 'output no')
    """
    check_reports(reports, "worst_case_shift")
    share = validation.share(share, "share", "worst_case_shift", expected=EXPECTED_SHARE)
    entries = reports.weights.size * len(reports.domain)
    yield Progress(0, MAX_TRIALS + 2, "estimating without fakes")
    with threads_for(entries):
        honest = likeliest_point(Likelihood.of(reports), MAX_GAP)
    yield Progress(1, MAX_TRIALS + 2, "choosing what fakes might send")
    with threads_for(entries):
        fakes = most_promising(fake_reports(reports, honest, share), honest, reports, share)
    shifts: list[Shift] = []
    for done, fake in enumerate(fakes, start=2):
        yield Progress(done, len(fakes) + 2, "estimating with fakes")
        with threads_for(entries):
            theta = likeliest_point(_likelihood_with_fakes(reports, fake, share), MAX_GAP).theta
        value = int(np.abs(theta - honest.theta).argmax())
        shifts.append(
            Shift(
                share=share,
                value=plain(reports.domain.labels[value]),
                output=fake.text,
                before=float(honest.theta[value]),
                after=float(theta[value]),
            )
        )
    return max(shifts)  # the first of the largest; there is one: whatever was sent once can be sent by fakes


def _likelihood_with_fakes(reports: Reports, fake: FakeReport, share: float) -> Likelihood:
    """Return the likelihood with a share of fakes who all send this report."""
    whole, number = reports.channel, fake.family.block
    parts = list(whole.parts) if len(reports.blocks) > 1 and isinstance(whole, ConcatenatedChannel) else [whole]
    weights = [(1.0 - share) * block.weights for block in reports.blocks]
    parts[number], weights[number] = _add_fakes(reports, fake, parts[number], weights[number], share * reports.users)
    channel = parts[0] if len(parts) == 1 else ConcatenatedChannel(parts)
    return Likelihood(channel, np.concatenate(weights), reports.users)


def _add_fakes(
    reports: Reports, fake: FakeReport, channel: Channel, honest: Floats, fakes: float
) -> tuple[Channel, Floats]:
    """Return the channel and the weights of a block after `fakes` fake users joined it."""
    block, codes, logs = reports.blocks[fake.family.block], fake.family.codes, fake.family.logs
    if isinstance(block, BitSums) and codes is not None:
        sent = np.arange(block.ones.size) == codes[fake.column]
        return channel, honest + fakes * np.concatenate([sent, ~sent])
    if isinstance(block, Singles) and not isinstance(block.mechanism, SetValuedOracle) and codes is not None:
        # The channel is built anew, so that closed forms, lines and grids keep their structure; it costs little.
        distinct, back = index_codes(np.concatenate([block.codes, codes[fake.column : fake.column + 1]]))
        weights = np.zeros(len(distinct))
        np.add.at(weights, back, np.append(honest, fakes))
        return block.mechanism.encoded_channel(distinct, reports.domain.among), weights
    if logs is None:
        raise AssertionError("only sums of bits have no likelihoods")
    column = logs[:, [fake.column]]
    return ConcatenatedChannel(
        [channel, DenseChannel.from_logs(channel.values, 1, lambda part: column[:, part])]
    ), np.append(honest, fakes)
