"""
The areas that reports on a map tell apart
==========================================

Single cells are often hopeless where larger areas are not. These are the finest areas whose shares the reports of
120,000 people determine to within half, each in the colour of its density; all of their intervals hold together
(:doc:`/explanation/trust`).
"""

import hubbub as hb
from hubbub.demo import load_city

city = load_city()
noise = hb.PlanarGeometric(city.grid, epsilon=2.0)
reports = hb.Reports.from_outputs(noise, noise.privatize(city.values, rng=1))
hb.resolve(reports).plot()
