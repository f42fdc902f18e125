"""
Intervals of each age, and a band for all of them
=================================================

The dark band holds the true share of each age with 95% confidence, one at a time. The light one holds all of them at
once, and so it is wider. The line is the estimate; it is smoother than the bands because it borrows from neighbouring
ages, and intervals do not (:doc:`/explanation/trust`).
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

noise, people = hb.TruncatedGeometric(hb.Integers(18, 49), 0.7), 18 + np.random.default_rng(1).binomial(31, 0.4, 20_000)
reports = hb.Reports.from_outputs(noise, noise.privatize(people, rng=2))
for simultaneous, name in [(True, "95%, all at once"), (False, "95%, each by itself")]:
    band = hb.band(reports, simultaneous=simultaneous)
    plt.fill_between(range(18, 50), band.low, band.high, step="mid", color="tab:blue", alpha=0.25, label=name)
plt.step(range(18, 50), band.estimate, where="mid", label="estimate")
plt.legend()
