"""Where people are: check-ins, points or counts from a file, or the synthetic city."""

from hubbub.paper.places.check_ins import read_points
from hubbub.paper.places.place import Place, synthetic_place
from hubbub.paper.places.place_counts import read_counts
from hubbub.paper.places.zone import PAPER_USERS, PAPER_ZONE, Zone, parse_zone

__all__ = ["PAPER_USERS", "PAPER_ZONE", "Place", "Zone", "parse_zone", "read_counts", "read_points", "synthetic_place"]
