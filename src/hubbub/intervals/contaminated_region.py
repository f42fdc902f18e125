"""Distributions of honest users that stay likely if a share of all users may have sent anything.

Outputs follow f = (1 - s) theta G + s r with r any distribution over the outputs (`channels.contaminated`): one more
row for each output. The extremes of a statistic over all likely (theta, r) are those of a convex problem
(`solvers.profile_extremes`). With several mechanisms a fake chooses which one to claim: up to s n of the n_m users of
each mechanism may be fake, a share of s n / n_m; a mechanism most of whose users may be fakes is left out. How often
reports of `Split` lack attributes is no part of the mechanism: those with each set of attributes are like those of a
mechanism of its own. Of users who sent several outputs one is drawn, as tuples of outputs are too many to list.

**The cutoff.** What fakes send has as many unknowns as there are outputs. The maximum therefore explains part of the
noise by fakes, and the deviance exceeds that of honest users alone: with chi-square's 3.84, intervals of the busiest
cell of a map held the truth in none of 20 attacked studies. With l(t, r) the largest log-likelihood if the statistic is
t and fakes send r, l(r) the largest for any t, and l the largest of all, the true t and r have

    deviance = 2 (l - max over r' of l(t, r'))  <=  2 (l - l(r))  +  2 (l(r) - l(t, r)).

The second term is the deviance of a study without fakes, whose law is known (`deviance_cutoff`). The first, what fakes
explain of the noise, is the same for all statistics. Its mean and variance are simulated: reports are drawn with the
fakes on one output, drawn as honest users' outputs are, and both maxima are found. The cutoff is the quantile of a
gamma distribution with the mean and variance of the sum of both terms, which are nearly independent: one is about noise
that no theta explains, the other about noise along one direction of theta.

**Small cells.** Outputs that hardly anybody sent would each be explained by a fake of its own. Neighbouring outputs are
pooled until five users are expected in each pool; a mechanism whose outputs stand for sets, with no neighbours, is left
out (alone, it has `robust_scores`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.channels import Channel, ConcatenatedChannel, DenseChannel
from hubbub.channels.contaminated import ContaminatedChannel
from hubbub.core.arrays import Codes, Floats, Positions, frozen
from hubbub.core.errors import EstimateError
from hubbub.core.text import plural
from hubbub.core.validation import DEFAULT_SEED
from hubbub.goodness_of_fit.count_tables import MIN_CELL_USERS, pools, sum_by_position
from hubbub.likelihood import Likelihood, Point
from hubbub.mechanisms import Mechanism, Split
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.output_spaces import unique_codes
from hubbub.outputs.output_enumeration import OutputEnumeration, enumerate_outputs
from hubbub.outputs.sent_outputs import AttributeSets, enumerate_sent
from hubbub.reports import BitSums, Joint, Reports, Singles
from hubbub.solvers import likeliest_point
from hubbub.solvers.contaminated_system import ContaminatedSystem
from hubbub.solvers.grouped_maximum import grouped_maximum
from hubbub.solvers.groups import Groups
from hubbub.solvers.profile_extremes import Extreme, Region

MAX_FAKES_OF_MECHANISM = 0.5  # of its users: beyond, it says more about fakes than about anybody else
MAX_ENTRIES = 10_000_000  # of the channel
MAX_GAP_OF_SLACK = 1e-3  # of what a cutoff of 1 allows: the gap widens the region
MAX_GAP_SIMULATED = 1e-2  # the same, where only the mean and variance of deviances are wanted
MIN_DRAWS, MAX_DRAWS = 19, 99  # of reports, for the mean and variance of what fakes explain
SIMULATION_WORK = 2e9  # values squared times outputs, for all draws


class _Sent(NamedTuple):
    """One output of each user of a mechanism, or of those who sent the same attributes; cells may be pooled outputs."""

    mechanism: Mechanism
    channel: Channel
    counts: Floats


class Explained(NamedTuple):
    """What fakes explain of the noise, in units of the deviance."""

    mean: float
    variance: float


@dataclass(frozen=True)
class ContaminatedRegion:
    """The region of likely (theta, r) around their maximum, and what fakes explain of the noise."""

    top: Point
    groups: Groups
    explained: Explained
    note: str
    region: Region = field(compare=False)

    @classmethod
    def of(cls, reports: Reports, plain: Point, share: float, explained: Explained | None = None) -> ContaminatedRegion:
        """Find the maximum with fakes; `plain` is that without. What fakes explain is simulated if not given."""
        sent, note = _listed(reports, plain.theta, share)
        users = float(sum(part.counts.sum() for part in sent))
        shares = [share * reports.users / float(part.counts.sum()) for part in sent]
        channels = [part.channel for part in sent]
        honest = channels[0] if len(channels) == 1 else ConcatenatedChannel(channels)
        sizes = [part.counts.size for part in sent]
        groups = Groups((0, *(honest.values + np.cumsum([0, *sizes[:-1]])).tolist()))
        channel = ContaminatedChannel(honest, np.repeat(shares, sizes))
        likelihood = Likelihood(channel, np.concatenate([part.counts for part in sent]), round(users))
        system = ContaminatedSystem(channel)
        top = grouped_maximum(likelihood, system, groups, MAX_GAP_OF_SLACK / (2.0 * users))
        explained = explained or _Simulation(top, groups, np.array(sizes)).explained()
        return cls(top, groups, explained, note, Region(top, system, groups))

    def cutoff(self, plain: float, level: float, degrees: int = 1) -> float:
        """Return the cutoff where that of a study without fakes is `plain`: of chi-square's shape, scaled."""
        from scipy.special import chdtri, gammaincinv

        scale = plain / float(chdtri(degrees, 1.0 - level))
        mean, variance = self.explained.mean + scale * degrees, self.explained.variance + 2.0 * scale**2 * degrees
        return max(plain, float(gammaincinv(mean**2 / variance, level)) * variance / mean)

    def least(self, weights: Floats, cutoff: float) -> Extreme:
        """Return the least `weights` @ theta among distributions whose deviance is at most `cutoff`."""
        likelihood = self.top.likelihood
        padded = np.concatenate([weights, np.zeros(likelihood.channel.values - weights.size)])
        return self.region.least(padded, cutoff / (2.0 * likelihood.total))


class _Simulation:
    """How much of the noise fakes explain: the deviance of the true r, among all r."""

    def __init__(self, top: Point, groups: Groups, sizes: Floats) -> None:
        likelihood = top.likelihood
        channel = likelihood.channel
        assert isinstance(channel, ContaminatedChannel)  # noqa: S101  # as made above
        self._channel, self._groups, self._users = channel, groups, likelihood.users
        self._parts = np.split(np.arange(channel.patterns), np.cumsum(sizes)[:-1])
        honest = channel.honest.forward(top.theta[: channel.honest.values]) * np.exp(channel.log_scale)
        self._honest = np.asarray(honest)
        self._matrix = channel.honest.dense() * channel.honest_shares
        self._totals = [float(likelihood.weights[part].sum()) for part in self._parts]

    def explained(self) -> Explained:
        """Return the mean and variance over some draws, the same for the same reports."""
        rng = np.random.default_rng(DEFAULT_SEED)
        work = float(self._channel.honest.values) ** 2 * self._channel.patterns
        draws = int(np.clip(SIMULATION_WORK / work, MIN_DRAWS, MAX_DRAWS))
        deviances = np.array([self._deviance(rng) for _ in range(draws)])
        return Explained(float(deviances.mean()), float(deviances.var(ddof=1)))

    def _deviance(self, rng: np.random.Generator) -> float:
        channel = self._channel
        sent, counts = np.zeros(channel.patterns), np.zeros(channel.patterns)
        shares = 1.0 - channel.honest_shares
        for part, users in zip(self._parts, self._totals, strict=True):
            honest = self._honest[part] / self._honest[part].sum()
            sent[rng.choice(part, p=honest)] = 1.0
            law = (1.0 - shares[part]) * honest + shares[part] * sent[part]
            counts[part] = rng.multinomial(round(users), law)
        tol = MAX_GAP_SIMULATED / (2.0 * self._users)
        known = DenseChannel(self._matrix + channel.fake_entries * sent, channel.log_scale)
        without = likeliest_point(Likelihood(known, counts, self._users), tol)
        likelihood = Likelihood(channel, counts, self._users)
        most = grouped_maximum(likelihood, ContaminatedSystem(channel), self._groups, tol)
        return max(0.0, 2.0 * (most.log_likelihood - without.log_likelihood))


def _listed(reports: Reports, theta: Floats, share: float) -> tuple[list[_Sent], str]:
    """Return what users sent, by what fakes may claim, and a note on what was left out."""
    sent, left_out, drawn = list[_Sent](), 0, 0
    for mechanism, codes, counts in _claims(reports):
        users = float(counts.sum())
        part = None
        if share * reports.users < MAX_FAKES_OF_MECHANISM * users:
            part = _cells(mechanism, codes, counts, theta, reports)
        if part is None:
            left_out += round(users)
        else:
            sent.append(part)
    left_out += sum(block.users for block in reports.blocks if isinstance(block, BitSums))
    drawn = sum(block.users for block in reports.blocks if isinstance(block, Joint))
    if not sent or sum(part.channel.entries for part in sent) > MAX_ENTRIES:
        kinds = " and ".join(dict.fromkeys(type(one).__name__ for one in reports.mechanisms))
        raise EstimateError(
            "no interval holds against fakes for these reports",
            where="interval(fakes=)",
            got=f"{plural(reports.users, 'user')} of {kinds} over {len(reports.domain):,} values",
            expected="outputs that can be listed, several users for each, and a channel of at most "
            f"{MAX_ENTRIES:,} entries",
            remedy="use a coarser domain, or leave fakes out",
        )
    notes = []
    if drawn:
        notes.append(f"One output of each of {plural(drawn, 'user')} who sent several was used.")
    if left_out:
        notes.append(f"{plural(left_out, 'user')} were left out: fakes could drown reports like theirs.")
    return sent, " ".join(notes)


def _claims(reports: Reports) -> Iterator[tuple[Mechanism, Codes, Floats]]:
    """Yield one output of each user, by what fakes may claim: a mechanism, and attributes where these are left open."""
    for mechanism, (codes, counts) in _one_output_each(reports).items():
        if not isinstance(mechanism, Split):
            yield mechanism, codes, counts
            continue
        sets = AttributeSets.of(mechanism, codes)
        for number in range(len(sets.distinct)):
            yield mechanism, codes[sets.which == number], counts[sets.which == number]


def _enumerated(mechanism: Mechanism, codes: Codes, users: float, among: Positions | None) -> OutputEnumeration | None:
    """Return all outputs that could be sent in the place of some; None where these stand for sets, or are too many."""
    if isinstance(mechanism, SetValuedOracle):
        return None
    if not isinstance(mechanism, Split):
        return enumerate_outputs(mechanism, users, among)
    sent = enumerate_sent(mechanism, codes, users, among)
    return None if sent is None else sent[0].outputs  # all have the same attributes


def _cells(mechanism: Mechanism, codes: Codes, counts: Floats, theta: Floats, reports: Reports) -> _Sent | None:
    """Return the outputs, pooled where few users are expected; None where they stand for sets and are too rare."""
    among, users = reports.domain.among, float(counts.sum())
    channel = mechanism.encoded_channel(codes, among)
    expected = users * channel.forward(theta) * np.exp(channel.log_scale)
    if expected.min() >= MIN_CELL_USERS:
        return _Sent(mechanism, channel, counts)
    outputs = _enumerated(mechanism, codes, users, among)
    if outputs is None:
        return None
    pool = pools(users * (theta @ outputs.probabilities))
    size = int(pool.max()) + 1
    pooled = sum_by_position(pool[outputs.position_of(codes)], counts, size)
    gather = sparse.csr_array((np.ones(pool.size), (np.arange(pool.size), pool)), shape=(pool.size, size))
    used = pooled > 0
    matrix = np.asarray(outputs.probabilities @ gather)[:, used]
    return _Sent(mechanism, DenseChannel(matrix, np.zeros(matrix.shape[1])), frozen(pooled[used]))


def _one_output_each(reports: Reports) -> dict[Mechanism, tuple[Codes, Floats]]:
    """Return one output of each user by mechanism, drawn at random for those who sent several."""
    rng = np.random.default_rng(DEFAULT_SEED)
    lists: dict[Mechanism, list[tuple[Codes, Floats]]] = {}
    for block in reports.blocks:
        if isinstance(block, Singles):
            lists.setdefault(block.mechanism, []).append((block.codes, block.weights))
        elif isinstance(block, Joint):
            rows = block.repeats
            items = np.repeat(rows.indices, rows.data)
            lengths = np.asarray(rows.sum(axis=1)).ravel()
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            user = np.repeat(np.arange(block.counts.size), block.counts)
            chosen = items[starts[user] + np.floor(rng.random(user.size) * lengths[user]).astype(np.int64)]
            counts = np.bincount(chosen, minlength=rows.shape[1]).astype(np.float64)
            ends = np.cumsum([len(codes) for _, codes in block.sources])
            for (mechanism, codes), own in zip(block.sources, np.split(counts, ends[:-1]), strict=True):
                if own.any():
                    lists.setdefault(mechanism, []).append((codes[own > 0], own[own > 0]))
    merged: dict[Mechanism, tuple[Codes, Floats]] = {}
    for mechanism, pieces in lists.items():
        codes = np.concatenate([piece[0] for piece in pieces])
        counts = np.concatenate([piece[1] for piece in pieces])
        distinct, totals = unique_codes(codes, counts.astype(np.int64), mechanism.output_space.size)
        merged[mechanism] = distinct, totals.astype(np.float64)
    return merged
