"""
How soon repeated reports give a person away
============================================

What protects one report does not protect a hundred reports of the same value. The lines are upper bounds on how often
the likeliest guess of one person's value, from so many fresh reports, is wrong; epsilon is that of a single report.
:doc:`/explanation/trust` derives the bounds.
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb

counts, answers = np.arange(1, 301), hb.Categories(["yes", "no"])
for epsilon in (0.25, 0.5, 1.0, 2.0):
    coin = hb.RandomizedResponse(answers, epsilon)
    plt.loglog(counts, hb.error_probability(coin, counts), label=f"epsilon {epsilon}")
plt.gca().set(ylim=(0.001, 1.1), xlabel="reports of one person", ylabel="guess is wrong: probability at most")
plt.legend(loc="lower left")
