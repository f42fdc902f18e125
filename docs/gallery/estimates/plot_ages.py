"""
Ages through noise: counted, inverted, recovered
================================================

50,000 people send their age with geometric noise; the black line is the truth. Counting what they sent gives a curve
that is too wide, and inverting the mechanism's matrix (``inv-p``) amplifies the noise. The iterative Bayesian update
(``ibu``) comes close, and ``auto``, the default, comes closer (:doc:`/explanation/accuracy`).
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

ages, people = hb.Integers(0, 99), np.random.default_rng(1).binomial(99, 0.4, 50_000)
noise, no_noise = hb.TruncatedGeometric(ages, epsilon=0.2), hb.Cloaking(ages, ages.labels)
outputs, truth = noise.privatize(people, rng=2), np.bincount(people, minlength=100) / 50_000
panels = plt.subplots(2, 2, figsize=(10, 6), layout="constrained")[1].flat
hb.estimate(hb.Reports.from_outputs(no_noise, outputs)).plot(panels[0], truth=truth).set_title("noisy ages, counted")
for panel, method in zip(panels[1:], ["inv-p", "ibu", "auto"], strict=True):
    hb.estimate(hb.Reports.from_outputs(noise, outputs), method).plot(panel, truth=truth)
