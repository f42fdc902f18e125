"""
How sure each cell of a map is
==============================

200,000 people on 48 cells, with planar noise of epsilon 2 per km. Yellow cells are known to within a tenth of their
share; of dark ones the reports tell little, because half of the 95% interval is larger than the share itself. Without
``view=`` the same call draws the shares (:doc:`/how-to/maps`).
"""

import numpy as np

import hubbub as hb

grid, rng = hb.Grid(8, 6, cell=1.0), np.random.default_rng(1)
columns, rows = (np.clip(rng.normal(middle, 1.3, 200_000), 0, top).astype(int) for middle, top in [(5, 7), (3, 5)])
noise = hb.PlanarGeometric(grid, epsilon=2.0)
reports = hb.Reports.from_outputs(noise, noise.privatize(8 * rows + columns, rng=2))
estimate = hb.estimate(reports)
hb.band(reports, estimate=estimate)
estimate.plot(view="certainty")
