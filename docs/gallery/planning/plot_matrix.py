"""
A mechanism is a matrix
=======================

Each row is a true value, each column an output, and colour is the probability. Randomized response treats all other
values alike; geometric noise prefers near ones, and piles up at both ends; the exponential mechanism spreads wider at
the same epsilon. :doc:`/reference/mechanisms` has the formulas.
"""

import matplotlib.pyplot as plt

import hubbub as hb

line = hb.Integers(0, 29)
mechanisms = [hb.RandomizedResponse(line, 3.0), hb.TruncatedGeometric(line, 0.3), hb.Exponential(line, 0.3)]
figure, panels = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained")
for panel, mechanism in zip(panels, mechanisms, strict=True):
    image = panel.imshow(mechanism.matrix(), cmap="cividis", norm="log", vmin=1e-4, vmax=1)
    panel.set(title=type(mechanism).__name__, xlabel="output", ylabel="value")
figure.colorbar(image, ax=panels, label="probability", shrink=0.8)
