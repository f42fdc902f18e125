"""
Stronger privacy, wider intervals
=================================

The same 2,000 people answer one yes-or-no question at four levels of privacy. Dots are estimated shares of yes, lines
are 95% intervals, and the dashed line is the truth. The intervals include the noise of the mechanism
(:doc:`/explanation/trust`); a plan says beforehand how wide they will be (:doc:`/how-to/plan`).
"""

import matplotlib.pyplot as plt

import hubbub as hb

plt.subplots(layout="constrained")[1].axvline(0.3, color="black", linestyle="--")
for epsilon in (4, 2, 1, 0.5):
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon)
    outputs = coin.privatize(["yes"] * 600 + ["no"] * 1_400, rng=1)
    share = hb.interval(hb.Reports.from_outputs(coin, outputs), "yes")
    plt.plot([share.low, share.estimate, share.high], [f"epsilon {epsilon}"] * 3, "o-", markevery=[1])
plt.xlabel("share of yes")
