"""
More iterations: likelier, then farther from the truth
======================================================

EM, the iterative Bayesian update, raises the likelihood with every iteration: the certified gap to the maximum falls.
The distance to the truth falls as well, and then rises again. Where to stop is the question, and nobody can read
the answer off the likelihood (:doc:`/explanation/accuracy`).
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

line, people = hb.Integers(0, 99), np.random.default_rng(1).binomial(99, 0.5, 100_000)
noise, truth = hb.TruncatedGeometric(line, epsilon=0.1), np.bincount(people, minlength=100) / 100_000
reports, steps = hb.Reports.from_outputs(noise, noise.privatize(people, rng=2)), np.geomspace(1, 5_000, 20).astype(int)
path = [hb.estimate(reports, "ibu", delta=1e-12, max_iter=int(most)) for most in steps]
plt.loglog(steps, [each.gap for each in path], label="gap to the maximum, nats per user")
plt.loglog(steps, [hb.total_variation(each.probabilities, truth) for each in path], label="total variation to the truth")
plt.xlabel("iterations of EM")
plt.legend()
