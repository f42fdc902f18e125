"""Fake users: how far a few of them could move the estimate.

A fake user runs no mechanism and may send whatever its outputs can be. Of n users let a share s be fake, all of them
sending the same report z; the honest ones send what was collected. The estimate is then the maximum of

    (1 - s) sum_i w_i log f_i  +  s n log f_z,

and the shift of a value is how far its probability has moved from the estimate without fakes. The worst case is over
all values and all reports z. One maximisation gives the shifts of all values under one z, and z may be one of very
many (`fakes`): only the most promising are tried (`predict`).

The shift returned is that of a full maximisation: fakes can reach it, and the worst case is at least as large.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from hubbub.channels import Channel, ConcatenatedChannel, DenseChannel
from hubbub.core import validation
from hubbub.core.arrays import Floats, plain
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import threads_for
from hubbub.estimators.validation import check_reports
from hubbub.likelihood import Likelihood, Point
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.poisoning.fake_reports import Fake, fake_reports
from hubbub.poisoning.shift_prediction import MOST_TRIED, most_promising
from hubbub.rendering import Fact, facts_html
from hubbub.reports import Reports
from hubbub.reports.blocks import BitSums, Singles
from hubbub.solvers import maximise

TOL = 1e-10  # nats per user: where outputs are noisy, 1e-7 leaves tenths of a probability open


class Shift(float):
    """The largest shift that was found, in probability, and how it comes about.

    The number itself is how far the estimate of `value` moves, from `before` to `after`, if a `share` of the users is
    fake and all of them send `output`.
    """

    share: float
    value: object
    output: str
    before: float
    after: float

    def __new__(cls, *, share: float, value: object, output: str, before: float, after: float) -> Shift:
        """Take the distance between `before` and `after` as the number."""
        shift = super().__new__(cls, abs(after - before))
        vars(shift).update(share=share, value=value, output=output, before=before, after=after)
        return shift

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a shift cannot be changed: {name}")

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Shift], tuple[dict[str, Any]]]:
        return _rebuilt, (dict(vars(self)),)

    def explain(self) -> str:
        """Say in words what was found, and what it does not say."""
        return (
            f"If {100 * self.share:.3g}% of the users were fake and all sent {self.output}, the likeliest share of "
            f"{self.value!r} would move from {self.before:.1%} to {self.after:.1%}: by {100 * float(self):.1f} points. "
            "This is the largest shift that a search found; other fake reports may move it further. "
            "No test can rule out fakes who send what honest users with that value would send."
        )

    def _repr_html_(self) -> str:
        return facts_html([Fact("fake users?", self.explain())])

    def __repr__(self) -> str:
        return f"Shift({float(self):.4g}: {self.value!r} from {self.before:.4g} to {self.after:.4g})"


def _rebuilt(parts: dict[str, Any]) -> Shift:
    return Shift(**parts)


def worst_case_shift(reports: Reports, share: float) -> Shift:
    """Return how far a share of fake users could move the estimated probability of a value, at least.

    The share of fakes (0.01 is 1%) is part of the users, so that the others count 1 - share each. All fakes send the
    same report, with as many outputs as honest users send. The estimate is the maximum of the likelihood (where it is
    not the only one, the solver's). The result is a number, the largest shift found, with `value`, `output`, `before`,
    `after` and `explain()`. It was reached by a full estimate, so that the worst case is no smaller; reports tried are
    chosen by a prediction (``hubbub.poisoning.shift_prediction`` says how), so that it may be larger.

    >>> import hubbub as hb
    >>> answer = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), epsilon=1.0)
    >>> shift = worst_case_shift(hb.Reports.from_counts(answer, {"yes": 500, "no": 300, "unsure": 200}), share=0.01)
    >>> round(shift, 3), shift.value, shift.output
    (0.017, 'no', 'output no')
    """
    return finish(shifting(reports, share))


def shifting(reports: Reports, share: float) -> Generator[Progress, None, Shift]:
    """Do what `worst_case_shift` does, yielding progress on the way."""
    check_reports(reports, "worst_case_shift")
    fake = validation.share(share, "share", "worst_case_shift")
    entries = reports.weights.size * len(reports.domain)
    yield Progress(0, MOST_TRIED + 2, "estimating without fakes")
    with threads_for(entries):
        honest = _maximum(Likelihood.of(reports))
    yield Progress(1, MOST_TRIED + 2, "choosing what fakes might send")
    with threads_for(entries):
        found = fake_reports(reports, honest, fake)
        tried = most_promising(found, honest, reports, fake)
    best: tuple[float, int, Fake, Floats] | None = None
    for done, one in enumerate(tried):
        yield Progress(done + 2, len(tried) + 2, "estimating with fakes")
        with threads_for(entries):
            theta = _maximum(_with_fakes(reports, one, fake)).theta
        moved = np.abs(theta - honest.theta)
        value = int(moved.argmax())
        if best is None or moved[value] > best[0]:
            best = float(moved[value]), value, one, theta
    if best is None:
        raise AssertionError("whatever was sent once can be sent by fakes")
    _, value, one, theta = best
    return Shift(
        share=fake,
        value=plain(reports.domain.labels[value]),
        output=one.fakes.words(one.column),
        before=float(honest.theta[value]),
        after=float(theta[value]),
    )


def _maximum(likelihood: Likelihood) -> Point:
    uniform = np.full(likelihood.channel.values, 1.0 / likelihood.channel.values)
    return finish(maximise(likelihood, uniform, TOL, solver=None, max_iter=None)).outcome.point


def _with_fakes(reports: Reports, one: Fake, share: float) -> Likelihood:
    """Return the likelihood with a share of fakes who all send this report."""
    whole, place = reports.channel, one.fakes.block
    parts = list(whole.parts) if len(reports.blocks) > 1 and isinstance(whole, ConcatenatedChannel) else [whole]
    honest = [(1.0 - share) * block.weights for block in reports.blocks]
    parts[place], honest[place] = _joined(reports, one, parts[place], honest[place], share * reports.users)
    channel = parts[0] if len(parts) == 1 else ConcatenatedChannel(parts)
    return Likelihood(channel, np.concatenate(honest), reports.users)


def _joined(reports: Reports, one: Fake, channel: Channel, honest: Floats, fakes: float) -> tuple[Channel, Floats]:
    """Return the channel and the weights of a block that so many fakes have joined."""
    block, codes, logs = reports.blocks[one.fakes.block], one.fakes.codes, one.fakes.logs
    if isinstance(block, BitSums) and codes is not None:
        sent = np.arange(block.ones.size) == codes[one.column]
        return channel, honest + fakes * np.concatenate([sent, ~sent])
    if isinstance(block, Singles) and not isinstance(block.mechanism, SetValuedOracle) and codes is not None:
        # Built anew, so that closed forms, lines and grids keep their structure; it costs little.
        distinct, back = index_codes(np.concatenate([block.codes, codes[one.column : one.column + 1]]))
        weights = np.zeros(len(distinct))
        np.add.at(weights, back, np.append(honest, fakes))
        return block.mechanism.encoded_channel(distinct, reports.domain.among), weights
    if logs is None:
        raise AssertionError("what is not a sum of bits has likelihoods")
    column = logs[:, [one.column]]
    return ConcatenatedChannel(
        [channel, DenseChannel.from_logs(channel.values, 1, lambda part: column[:, part])]
    ), np.append(honest, fakes)
