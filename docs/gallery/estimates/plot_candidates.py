"""
What auto chooses from
======================

Each dot is a candidate of ``auto``: how well it predicts held-out reports (high is good) against how far chance moves
it (left is good). The answer is their average, and larger dots weigh more. Here the truth is a block from 20 to 39,
and flat pieces with jumps win. :doc:`/explanation/accuracy` describes the candidates.
"""

import numpy as np

import hubbub as hb

line, people = hb.Integers(0, 99), np.random.default_rng(1).integers(20, 40, 100_000)
noise = hb.TruncatedGeometric(line, epsilon=0.5)
reports = hb.Reports.from_outputs(noise, noise.privatize(people, rng=2))
hb.estimate(reports).settings["selection"].plot()
