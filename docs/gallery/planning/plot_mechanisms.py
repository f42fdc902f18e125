"""
Mechanisms compared at equal privacy
====================================

Five frequency oracles for 20 values, with 5,000 users each. Where epsilon is small, randomized response is far behind;
where it is large, RAPPOR is. :doc:`/reference/mechanisms` has their formulas, and :doc:`/how-to/plan` explains the
comparison.
"""

import hubbub as hb

kinds = ["randomized-response", "rappor", "optimized-unary", "local-hashing", "subset-selection"]
values, epsilons = hb.Integers(1, 20), [0.5, 1, 2, 4]
hb.plan(kinds, domain=values, epsilon=epsilons, users=5_000, truth="zipf", method="inv-p", runs=60).plot()
