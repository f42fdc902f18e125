"""Empirical Bayes: the shares of all values come from one distribution, which the reports themselves reveal.

Each value tells something about its own share (`share_evidence`); all together they tell how shares are distributed:
that most are 0, that all are equal, that few are large. That distribution is the prior. It is a mixture of atoms, found
by maximum likelihood with the solver that finds everything else here (Kiefer and Wolfowitz 1956), and the
estimate is the posterior mean of each share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.core.arrays import Floats
from hubbub.estimators.auto.share_evidence import ShareEvidence
from hubbub.likelihood import Likelihood
from hubbub.solvers import likeliest_point

ATOM_SPACING = 0.4  # standard errors between the atoms of the prior
PRIOR_TOL, MIN_PRIOR_TOL = 1e-3, 1e-8  # nats of the likelihood of the prior: in all, and for each value at least


@dataclass(frozen=True)
class PosteriorMeans:
    """Posterior means of the shares, under the prior that the reports reveal."""

    probabilities: Floats
    gain: float  # twice the nats by which the prior explains the reports better than equal shares
    parameters: float  # how many free parameters it would take to move as much with the reports


def posterior_means(evidence: ShareEvidence) -> PosteriorMeans:
    """Find the prior and return the posterior means, scaled to sum 1."""
    even = 1.0 / evidence.values
    atoms = _atoms(evidence)
    logs = evidence.log_likelihood(atoms)
    top = logs.max(axis=1, keepdims=True)
    likelihoods = np.exp(logs - top)
    pairs = _pairs(atoms, even)
    problem = Likelihood(DenseChannel(pairs @ likelihoods.T, top[:, 0]), evidence.sizes, evidence.values)
    tol = max(PRIOR_TOL / evidence.values, MIN_PRIOR_TOL)
    prior = likeliest_point(problem, tol).theta @ pairs
    joint = likelihoods * prior
    posterior = joint / joint.sum(axis=1, keepdims=True)
    means = posterior @ atoms
    variances = np.maximum(posterior @ atoms**2 - means**2, 0.0)
    gains = np.log(joint.sum(axis=1)) + top[:, 0] - logs[:, np.searchsorted(atoms, even)]
    held = float(evidence.sizes @ np.minimum(variances * evidence.information(means), 1.0))
    in_use = float(np.minimum(prior * evidence.values, 1.0).sum())
    shares = means[evidence.group]
    return PosteriorMeans(shares / shares.sum(), 2.0 * float(evidence.sizes @ gains), held + in_use - 1.0)


def _pairs(atoms: Floats, mean: float) -> Floats:
    """Return the simplest priors with this mean, one in each row: the mean itself, and one atom on each side of it.

    Shares add up to 1, so that their mean is known; every prior with that mean is a mixture of these.
    """
    below, above = np.flatnonzero(atoms < mean), np.flatnonzero(atoms > mean)
    first, second = (ends.ravel() for ends in np.meshgrid(below, above, indexing="ij"))
    rows = np.arange(first.size)
    pairs = np.zeros((first.size + 1, atoms.size))
    pairs[rows, first] = (atoms[second] - mean) / (atoms[second] - atoms[first])
    pairs[rows, second] = 1.0 - pairs[rows, first]
    pairs[-1, np.searchsorted(atoms, mean)] = 1.0
    return pairs


def _atoms(evidence: ShareEvidence) -> Floats:
    """Return where the prior may put mass: at 0, at equal shares, and at likeliest shares that are clearly apart."""
    order = np.argsort(evidence.likeliest, kind="stable")
    shares = evidence.likeliest[order]
    errors = 1.0 / np.sqrt(np.maximum(evidence.information(evidence.likeliest)[order], 1e-300))
    kept = [0.0]
    for share, error in zip(shares.tolist(), errors.tolist(), strict=True):
        if share - kept[-1] > ATOM_SPACING * error:
            kept.append(share)
    return np.unique([*kept, 1.0 / evidence.values])
