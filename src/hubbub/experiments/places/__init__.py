"""Where people are: check-ins, points or counts from a file, or the synthetic city."""

from hubbub.experiments.places.counts import read_counts
from hubbub.experiments.places.place import Place
from hubbub.experiments.places.points import read_points
from hubbub.experiments.places.synthetic import synthetic_place
from hubbub.experiments.places.zone import PAPER_ZONE, Zone, parse_zone

__all__ = ["PAPER_ZONE", "Place", "Zone", "parse_zone", "read_counts", "read_points", "synthetic_place"]
