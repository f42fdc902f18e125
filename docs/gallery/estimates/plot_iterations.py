"""
More iterations: likelier, then farther from the truth
======================================================

EM, the iterative Bayesian update, raises the likelihood with every iteration: the blue line, how far it is below its
maximum, only falls. The distance to the truth falls as well, and then rises again. Nobody can read off the
likelihood where to stop (:doc:`/explanation/accuracy`).
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

people, steps = np.random.default_rng(1).binomial(99, 0.5, 100_000), 2 ** np.arange(13)
noise, truth = hb.TruncatedGeometric(hb.Integers(0, 99), 0.1), np.bincount(people, minlength=100) / 100_000
reports = hb.Reports.from_outputs(noise, noise.privatize(people, rng=2))
path, best = [hb.estimate(reports, "ibu", delta=1e-12, max_iter=most) for most in steps], hb.estimate(reports, "mle")
plt.loglog(steps, [best.log_likelihood - each.log_likelihood for each in path], label="nats below the maximum")
plt.loglog(steps, [hb.total_variation(each.probabilities, truth) for each in path], label="distance to the truth")
plt.legend(title="against iterations of EM")
