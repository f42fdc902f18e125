"""
Survey weights mend a lopsided sample
=====================================

One in five of the people who answered is young, against half of the population, and the young say yes more often. Without
weights the share of yes comes out too low; raking to the known margin mends it, at the price of a wider interval.
The dashed line is the truth. :doc:`/how-to/weights` shows how to read weights from files.
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

coin, rng = hb.RandomizedResponse(hb.Categories(["yes", "no"]), p=0.75), np.random.default_rng(1)
young = rng.random(4_000) < 0.2
outputs = coin.privatize(np.where(rng.random(4_000) < np.where(young, 0.6, 0.3), "yes", "no"), rng=rng)
weights = hb.rake(np.ones(4_000), {"young": young}, {"young": {True: 0.5, False: 0.5}})
for name, given in [("as answered", None), ("raked", weights)]:
    share = hb.interval(hb.Reports.from_outputs(coin, outputs, weights=given), "yes")
    plt.plot([share.low, share.estimate, share.high], [name] * 3, "o-", markevery=[1], linewidth=2)
plt.axvline(0.45, color="black", linestyle="--")
