"""
A yes or no
===========
"""

import hubbub as hb

mechanism = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
reports = hb.Reports.from_counts(mechanism, [430, 570])
hb.estimate(reports).plot()
