"""
The error to expect of so many users
====================================

Simulated studies with five answers: the more users and the larger epsilon, the smaller the error. At equal epsilon
randomized response is ahead of RAPPOR here, because the answers are few. Ask for your own case with ``hb.plan`` or
``hubbub plan`` (:doc:`/how-to/plan`).
"""

import hubbub as hb

fruit = hb.Categories(["apple", "banana", "cherry", "date", "elderberry"])
kinds, users = ["randomized-response", "rappor"], [1_000, 10_000, 100_000]
hb.plan(kinds, domain=fruit, epsilon=[0.5, 1, 2], users=users, truth="zipf", method="inv-p").plot()
