"""Empirical Bayes: the shares of all values come from one distribution, which the reports themselves reveal.

Each value tells something about its own share (`share_evidence`); all together they tell how shares are distributed:
that most are 0, that all are equal, that few are large. That distribution is the prior. It is a mixture of atoms, found
by maximum likelihood with the solver that finds everything else here (Kiefer and Wolfowitz 1956), and the estimate is
the posterior mean of each share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.core.arrays import Floats
from hubbub.estimators.auto.share_evidence import ShareEvidence
from hubbub.likelihood import MIN_PLAIN_PROBABILITY, Likelihood
from hubbub.solvers import likeliest_point

ATOM_SPACING = 0.4  # standard errors between the atoms of the prior
MAX_ATOMS_LOSS = 6.0  # nats by which simpler priors may explain the reports worse
MAX_LEFT_OUT_ATOMS = 25  # from which it takes long to leave out each in turn
MIN_HELD = 1e-3  # values that an atom stands for at least
SMOOTH_UPDATES, SMOOTH_PARAMETERS = (5, 10, 30), 1.0  # of EM for a smooth prior; parameters that it is counted for
ABSENT_AT_START = 0.7  # values that nobody holds, in the flat prior with an atom at 0
SPACED_ATOMS, MARGIN = 40, 1.05  # of smooth priors; the largest of them over the largest likeliest share
MIN_VALUES_OF_SMOOTH = 16  # fewer do not show a smooth prior
PRIOR_TOL, MIN_PRIOR_TOL = 1e-3, 1e-8  # nats of the likelihood of the prior: in all, and for each value at least


@dataclass(frozen=True)
class PosteriorMeans:
    """Posterior means of the shares, under the prior that the reports reveal."""

    probabilities: Floats
    likelihood_ratio: float  # twice the nats by which the prior explains the reports better than equal shares
    parameters: float  # how many free parameters it would take to move as much with the reports


def posterior_means(evidence: ShareEvidence) -> list[PosteriorMeans]:
    """Return the posterior means, with a sum of 1: under the likeliest prior, simpler ones, and smooth ones."""
    atoms = _atoms(evidence)
    logs = evidence.log_likelihood(atoms)
    top = logs.max(axis=1, keepdims=True)
    likelihoods = np.exp(logs - top)
    even = evidence.sizes @ (evidence.log_likelihood(np.array([1.0 / evidence.values])) - top)[:, 0]
    found = []
    for prior, log_likelihood in _simpler_priors(likelihoods, evidence.sizes):
        in_use = float(np.minimum(prior * evidence.values, 1.0).sum())
        likelihood_ratio = 2.0 * float(log_likelihood - even)
        found.append(_under(evidence, atoms, likelihoods, prior, likelihood_ratio, in_use - 1.0))
    if evidence.values < MIN_VALUES_OF_SMOOTH:
        return found
    atoms = np.union1d(atoms, _spaced_atoms(evidence))
    logs = evidence.log_likelihood(atoms)
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    for prior in _smooth_priors(likelihoods, evidence.sizes):
        found.append(_under(evidence, atoms, likelihoods, prior, found[0].likelihood_ratio, SMOOTH_PARAMETERS))
    return found


def _under(
    evidence: ShareEvidence,
    atoms: Floats,
    likelihoods: Floats,
    prior: Floats,
    likelihood_ratio: float,
    parameters: float,
) -> PosteriorMeans:
    """Return the posterior means under a prior with so many parameters of its own."""
    joint = likelihoods * prior
    posterior = joint / joint.sum(axis=1, keepdims=True)
    means = posterior @ atoms
    variances = np.maximum(posterior @ atoms**2 - means**2, 0.0)
    held = float(evidence.sizes @ np.minimum(variances * evidence.information(means), 1.0))
    present = 1.0 - posterior[:, 0]  # the first atom is 0
    room = variances + present / evidence.information(means)
    shares, room = means[evidence.group], room[evidence.group]
    if evidence.alike is None:
        shares = _with_sum_1(shares, room)
    else:  # the reports tell the totals of groups better than the sums of their posterior means
        for number, total in enumerate(evidence.alike.totals.tolist()):
            own = evidence.alike.group == number
            shares[own] = total * _with_sum_1(shares[own] / max(total, MIN_PLAIN_PROBABILITY), room[own])
    return PosteriorMeans(shares, likelihood_ratio, held + parameters)


def _with_sum_1(shares: Floats, variances: Floats) -> Floats:
    """Move each share in proportion to its variance, as if the errors were normal, until the sum is 1."""
    while (missing := 1.0 - float(shares.sum())) != 0.0:
        movable = variances * (shares > 0.0) if missing < 0.0 else variances
        if not movable.any():
            break
        shares = shares + missing * movable / movable.sum()
        if shares.min() >= 0.0:
            break
        shares = np.maximum(shares, 0.0)
    return shares / shares.sum() if shares.any() else np.full(shares.size, 1.0 / shares.size)


def _smooth_priors(likelihoods: Floats, sizes: Floats) -> Iterator[Floats]:
    """Yield priors after a few updates of EM: they have no atoms yet that shares are drawn to, except perhaps at 0."""
    atoms = likelihoods.shape[1]
    for absent in (1.0 / atoms, ABSENT_AT_START):
        prior = np.full(atoms, (1.0 - absent) / (atoms - 1))
        prior[0] = absent
        for update in range(1, SMOOTH_UPDATES[-1] + 1):
            prior = prior * (likelihoods.T @ (sizes / (likelihoods @ prior))) / sizes.sum()
            if update in SMOOTH_UPDATES:
                yield prior


def _spaced_atoms(evidence: ShareEvidence) -> Floats:
    """Return shares from a part of the smallest error to the largest, a constant factor apart."""
    top = min(1.0, max(MARGIN * float(evidence.likeliest.max()), 1.5 / evidence.values))
    error = 1.0 / np.sqrt(float(evidence.information(evidence.likeliest).max()))
    return np.geomspace(max(min(error / 4.0, top / 200.0), 1e-4 * top), top, SPACED_ATOMS)


def _simpler_priors(likelihoods: Floats, sizes: Floats) -> Iterator[tuple[Floats, float]]:
    """Yield the likeliest prior and its log-likelihood; then, while it costs little, without the least useful atom.

    Among many values that nobody holds, a few look as if somebody did: the likeliest prior has an atom for them.
    """
    prior, best = _likeliest_prior(likelihoods, sizes)
    yield prior, best
    kept = np.flatnonzero(prior * sizes.sum() > MIN_HELD)
    while 1 < kept.size <= MAX_LEFT_OUT_ATOMS:
        fits = [_likeliest_prior(likelihoods[:, np.delete(kept, place)], sizes) for place in range(kept.size)]
        place = max(range(kept.size), key=lambda place: fits[place][1])
        if fits[place][1] < best - MAX_ATOMS_LOSS:
            return
        kept = np.delete(kept, place)
        prior = np.zeros(prior.size)
        prior[kept] = fits[place][0]
        yield prior, fits[place][1]


def _likeliest_prior(likelihoods: Floats, sizes: Floats) -> tuple[Floats, float]:
    """Return the weights of the atoms that make the evidence likeliest, and its log-likelihood."""
    values = sizes.sum()
    top = likelihoods.max(axis=1)
    scaled = np.where(top[:, None] > 0.0, likelihoods / np.maximum(top, MIN_PLAIN_PROBABILITY)[:, None], 1.0)
    problem = Likelihood(
        DenseChannel(scaled.T.copy(), np.log(np.maximum(top, MIN_PLAIN_PROBABILITY))), sizes, int(values)
    )
    point = likeliest_point(problem, max(PRIOR_TOL / values, MIN_PRIOR_TOL))
    return point.theta, point.log_likelihood


def _atoms(evidence: ShareEvidence) -> Floats:
    """Return where the prior may put mass: at 0, and at likeliest and equal shares that are clearly apart from it."""
    shares = evidence.likeliest
    errors = 1.0 / np.sqrt(np.maximum(evidence.information(shares), MIN_PLAIN_PROBABILITY))
    kept, even = [0.0], 1.0 / evidence.values
    for share, error in sorted(zip(shares.tolist(), errors.tolist(), strict=True)):
        if share - kept[-1] > ATOM_SPACING * error:
            kept.append(share)
    return np.unique([*kept, even] if even > ATOM_SPACING * float(errors.min()) else kept)
