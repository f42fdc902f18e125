"""
Shares of districts, with intervals
===================================

People ask for districts, not for cells. Districts are polygons, from a GeoJSON file or made here; each has its share of the
people and the interval of that share. Cells that a border cuts count for the part that lies inside (:doc:`/how-to/maps`).
"""

import shapely

import hubbub as hb
from hubbub.demo import load_city

city, names = load_city(), ["Harbour", "Hill", "Mill", "Old Town", "Park", "Station"]
noise = hb.PlanarGeometric(city.grid, epsilon=1.0)
reports = hb.Reports.from_outputs(noise, noise.privatize(city.values, rng=1))
middles = shapely.MultiPoint([(2.0, 6.0), (2.5, 1.5), (6.0, 3.0), (8.5, 6.0), (6.0, 7.0), (10.0, 2.0)])
polygons = shapely.voronoi_polygons(middles, extend_to=shapely.box(0, 0, 12, 8), ordered=True).geoms
districts = {"type": "FeatureCollection", "features": []}
for name, each in zip(names, polygons, strict=True):
    districts["features"].append({"type": "Feature", "properties": {"name": name}, "geometry": shapely.geometry.mapping(each)})
hb.regions(city.grid, districts).shares(reports).plot()
