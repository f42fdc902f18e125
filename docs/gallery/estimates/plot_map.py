"""
A city before and after
=======================

120,000 people in an invented city report their cell with planar noise of epsilon 1 per km. Counting the reports blurs
the map; ``auto`` recovers the centre and the quarters around it from the blur alone, though not single cells.
:doc:`/how-to/maps` goes on to districts and map files.
"""

import matplotlib.pyplot as plt

import hubbub as hb
from hubbub.demo import load_city

city, panels = load_city(), plt.subplots(1, 3, figsize=(15, 3.6), layout="constrained")[1]
noise, no_noise = hb.PlanarGeometric(city.grid, epsilon=1.0), hb.Cloaking(city.grid, city.grid.labels)
outputs = noise.privatize(city.values, rng=1)
hb.estimate(hb.Reports.from_outputs(no_noise, city.values)).plot(panels[0]).set_title("where people are")
hb.estimate(hb.Reports.from_outputs(no_noise, outputs)).plot(panels[1]).set_title("what they sent, counted")
hb.estimate(hb.Reports.from_outputs(noise, outputs)).plot(panels[2]).set_title("what auto recovers")
