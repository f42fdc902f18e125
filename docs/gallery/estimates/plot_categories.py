"""
Eight answers, each with its interval
=====================================

3,000 people send a RAPPOR report, which is a row of random bits. Bars are the estimated shares, red lines their 95%
intervals, and black marks the true shares, which a collector would not know. How to collect such reports is in
:doc:`/how-to/privatize`, and what the intervals promise in :doc:`/explanation/trust`.
"""

import numpy as np

import hubbub as hb

answers = hb.Categories(["Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Oak", "Pine"])
people = np.repeat(answers.labels, [1_200, 660, 450, 300, 180, 120, 60, 30])
mechanism = hb.Rappor(answers, epsilon=2.0)
reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(people, rng=1))
estimate = hb.estimate(reports)
hb.band(reports, estimate=estimate)  # from now on the estimate knows its intervals
estimate.plot(truth=[0.40, 0.22, 0.15, 0.10, 0.06, 0.04, 0.02, 0.01])
