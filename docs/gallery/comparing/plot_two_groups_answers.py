"""
Which answers differ between two groups
=======================================

Men and women answered a question with three answers by randomized response. Dots are the differences in percentage
points, lines their 95% intervals; red ones are changes that hold for all answers together
(:doc:`/how-to/compare-groups`).
"""

import hubbub as hb

coin = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), p=0.75)
men = hb.Reports.from_counts(coin, {"yes": 520, "no": 700, "unsure": 280})
women = hb.Reports.from_counts(coin, {"yes": 830, "no": 690, "unsure": 280})
hb.compare(men, women, names=("men", "women")).plot()
