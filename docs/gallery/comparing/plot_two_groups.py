"""
Where two groups differ on a line
=================================

Hours of commuting per week, two years apart, each from 20,000 people's noisy reports. The line is the difference of the
estimates and the band holds the true difference of each value; the title says what is certain.
:doc:`/how-to/compare-groups` has the test behind it.
"""

import numpy as np

import hubbub as hb

hours, rng = hb.Integers(0, 20), np.random.default_rng(1)
noise = hb.TruncatedGeometric(hours, epsilon=1.0)
people = [rng.binomial(20, share, 20_000) for share in (0.3, 0.4)]
before, after = (hb.Reports.from_outputs(noise, noise.privatize(values, rng=rng)) for values in people)
hb.compare(before, after, names=("2024", "2026")).plot()
