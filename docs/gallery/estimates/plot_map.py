"""
A city before and after
=======================

120,000 people in an invented city report their cell with planar noise of epsilon 1 per km. From left to right: where
they are, what they sent, and what ``auto`` recovers from that alone. :doc:`/how-to/maps` goes on to districts and map files.
"""

import matplotlib.pyplot as plt
import numpy as np

import hubbub as hb
from hubbub.demo import load_city

city = load_city()
noise = hb.PlanarGeometric(city.grid, epsilon=1.0)
outputs = noise.privatize(city.values, rng=1)
sent = np.bincount(outputs, minlength=len(city.grid)) / outputs.size
recovered = hb.estimate(hb.Reports.from_outputs(noise, outputs)).probabilities
figure, panels = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for panel, name, shares in zip(panels, ["truth", "sent", "recovered"], [city.shares, sent, recovered], strict=True):
    panel.imshow(np.sqrt(shares).reshape(16, 24), origin="lower", cmap="cividis")
    panel.set(title=f"{name}: total variation {hb.total_variation(shares, city.shares):.2f}", xticks=[], yticks=[])
