"""
The age ranges that reports tell apart
======================================

Ages are reported with noise that reaches over several years. The steps are the finest ranges whose shares can be told,
with bands that hold together; where people are few, ranges are long. :doc:`/explanation/trust` says how they are found.
"""

import numpy as np

import hubbub as hb

ages, people = hb.Integers(0, 99), np.random.default_rng(1).triangular(0, 30, 100, 100_000)
noise = hb.TruncatedGeometric(ages, epsilon=0.5)
reports = hb.Reports.from_outputs(noise, noise.privatize(people.astype(int), rng=2))
hb.resolve(reports).plot()
