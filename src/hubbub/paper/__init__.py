"""The paper's experiments: figures and claims as data, one resumable run, and a gallery of the results."""

from hubbub.paper.api import Reproduction, reproduce
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
]
