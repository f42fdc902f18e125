"""The paper's experiments: its figures and claims as data, one resumable run, and a gallery."""

from hubbub.paper.api import Reproduction, reproduce, reproducing
from hubbub.paper.figure_specs import figure_names
from hubbub.paper.places import PAPER_ZONE, Place, Zone, parse_zone

__all__ = [
    "PAPER_ZONE",
    "Place",
    "Reproduction",
    "Zone",
    "figure_names",
    "parse_zone",
    "reproduce",
    "reproducing",
]
