"""
Two attributes together
=======================

2,000 people report their age group and what they drink, each with noise of its own. The table shows the estimated
share of each combination, the bars show each attribute by itself: tea comes with age
(:doc:`/how-to/joint-distribution`).
"""

import hubbub as hb

ages, drinks = hb.Bins([18, 30, 50, 90]), hb.Categories(["tea", "coffee", "water"])
both = hb.Split(age=hb.RandomizedResponse(ages, epsilon=3.0), drink=hb.RandomizedResponse(drinks, epsilon=3.0))
people = [(0, "coffee")] * 500 + [(1, "coffee")] * 400 + [(1, "tea")] * 300 + [(2, "tea")] * 700 + [(2, "water")] * 100
reports = hb.Reports.from_outputs(both, both.privatize(people, rng=1))
hb.estimate(reports).plot()
