"""
Intervals that hold against fake users
======================================

The more fakes an interval must withstand, whatever they send, the wider it is. The line is the estimate from 10,000
people with randomized response, and the interval at 0 is the plain one. The share of fakes is an assumption, which no
report can prove (:doc:`/explanation/trust`).
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

coin = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), epsilon=1.0)
reports = hb.Reports.from_counts(coin, {"yes": 4_400, "no": 3_200, "unsure": 2_400})
fakes = np.linspace(0.0, 0.05, 11)
intervals = [hb.interval(reports, "yes", fakes=share) for share in fakes]
plt.fill_between(100 * fakes, [each.low for each in intervals], [each.high for each in intervals], alpha=0.3)
plt.plot(100 * fakes, [each.estimate for each in intervals])
plt.gca().set(xlabel="fake users, %", ylabel="share of yes: estimate and 95% interval")
