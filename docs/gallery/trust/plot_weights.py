"""
Survey weights mend a lopsided sample
=====================================

Of 4,000 people who answered one in five is young, against half of the population, and the young say yes more often.
As answered, the share of yes comes out too low; raking to the known margin mends it, at the price of a wider
interval. The dashed line is the truth. :doc:`/how-to/weights` shows how to read weights from files.
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

coin, young = hb.RandomizedResponse(hb.Categories(["yes", "no"]), p=0.75), np.arange(4_000) < 800
outputs = coin.privatize(["yes"] * 480 + ["no"] * 320 + ["yes"] * 960 + ["no"] * 2_240, rng=1)
weights = hb.rake(np.ones(4_000), {"young": young}, {"young": {True: 0.5, False: 0.5}})
plt.subplots(layout="constrained")[1].axvline(0.45, color="black", linestyle="--")
for name, given in [("yes, as answered", None), ("yes, raked", weights)]:
    share = hb.interval(hb.Reports.from_outputs(coin, outputs, weights=given), "yes")
    plt.plot([share.low, share.estimate, share.high], [name] * 3, "o-", markevery=[1])
