"""
The exact maximum of the likelihood is a row of spikes
======================================================

Left is the likeliest distribution of all, with a proof; right is the answer of ``auto``; the black line is the truth.
The maximum explains the noise as well, and so it is far from the truth, although no distribution fits the reports
better. Convergence is not accuracy: :doc:`/explanation/accuracy`.
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

line, people = hb.Integers(0, 99), np.random.default_rng(1).binomial(99, 0.5, 100_000)
noise, truth = hb.TruncatedGeometric(line, epsilon=0.1), np.bincount(people, minlength=100) / 100_000
reports = hb.Reports.from_outputs(noise, noise.privatize(people, rng=2))
for panel, method in zip(plt.subplots(1, 2, figsize=(10, 4), sharey=True)[1], ["mle", "auto"], strict=True):
    estimate = hb.estimate(reports, method)
    error = hb.total_variation(estimate.probabilities, truth)
    estimate.plot(panel, truth=truth).set_title(f"{method}: total variation {error:.2f}")
