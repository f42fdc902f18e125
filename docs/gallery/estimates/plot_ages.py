"""
Ages through noise: counted, inverted, recovered
================================================

50,000 people send their age with geometric noise; the orange line is the truth. Counting what they sent gives a curve that
is too wide, and inverting the mechanism's matrix (``inv-p``) amplifies the noise. The iterative Bayesian update
(``ibu``) comes close, and ``auto``, the default, comes closer (:doc:`/explanation/accuracy`).
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

ages, people = hb.Integers(0, 99), np.random.default_rng(1).binomial(99, 0.4, 50_000)
noise, truth = hb.TruncatedGeometric(ages, epsilon=0.2), np.bincount(people, minlength=100) / 50_000
outputs = noise.privatize(people, rng=2)
shown = {"counted": np.bincount(outputs, minlength=100) / 50_000}
for method in ("inv-p", "ibu", "auto"):
    shown[method] = hb.estimate(hb.Reports.from_outputs(noise, outputs), method).probabilities
for place, (name, shares) in enumerate(shown.items(), start=1):
    plt.subplot(2, 2, place, title=name).bar(ages.labels, shares, width=1.0)
    plt.plot(ages.labels, truth, color="tab:orange")
plt.tight_layout()
