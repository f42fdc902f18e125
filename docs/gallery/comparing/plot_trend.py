"""
A trend with two changes
========================

A thousand people answer each month. Dots are the months' own estimates, and the bands hold for all months at once. The
dashed lines are where something changed for certain; between them nothing did that these reports could show, so the
smoothed lines are level (:doc:`/how-to/compare-periods`).
"""

import hubbub as hb

coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
yes = [480, 465, 471, 560, 552, 566, 548, 561, 540, 625, 630, 640]  # of 1,000 users each
reports = [hb.Reports.from_counts(coin, [count, 1_000 - count]) for count in yes]
hb.trend({f"2026-{month:02}": own for month, own in enumerate(reports, start=1)}).plot()
