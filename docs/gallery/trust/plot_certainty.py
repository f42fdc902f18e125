"""
How sure each cell of a map is
==============================

20,000 people on 48 cells, with planar noise of epsilon 2 per km. Yellow cells are known to within a tenth of their share,
dark ones hardly at all: half of the 95% interval is as large as the share itself. The same map without this view shows
the shares (:doc:`/how-to/maps`).
"""

import numpy as np

import hubbub as hb

grid, rng = hb.Grid(8, 6, cell=1.0), np.random.default_rng(1)
columns, rows = (np.clip(rng.normal(middle, 1.5, 20_000), 0, top).astype(int) for middle, top in [(5, 7), (3, 5)])
noise = hb.PlanarGeometric(grid, epsilon=2.0)
reports = hb.Reports.from_outputs(noise, noise.privatize(8 * rows + columns, rng=2))
estimate = hb.estimate(reports)
hb.band(reports, estimate=estimate)
estimate.plot(view="certainty")
