"""
Shares of districts, with intervals
===================================

People ask for districts, not for cells. Districts are polygons, from a GeoJSON file or made up as here; each has its
share of the people and the interval of that share. A cell that a border cuts counts for the part that lies inside
(:doc:`/how-to/maps`).
"""

from shapely import MultiPoint, voronoi_polygons

import hubbub as hb
from hubbub.demo import load_city

city = load_city()
noise = hb.PlanarGeometric(city.grid, epsilon=1.0)
reports = hb.Reports.from_outputs(noise, noise.privatize(city.values, rng=1))
middles = {"Harbour": (2, 6), "Hill": (2.5, 1.5), "Mill": (6, 3), "Old Town": (8.5, 6), "Park": (6, 7), "Port": (10, 2)}
shapes = zip(middles, voronoi_polygons(MultiPoint([*middles.values()]), ordered=True).geoms, strict=True)
features = [{"type": "Feature", "id": name, "geometry": shape.__geo_interface__} for name, shape in shapes]
hb.regions(city.grid, {"type": "FeatureCollection", "features": features}).shares(reports).plot()
