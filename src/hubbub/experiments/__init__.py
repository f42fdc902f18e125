"""The paper's experiments: its figures and claims as data, one resumable run, and a gallery."""

from hubbub.experiments.places import PAPER_ZONE, Place, Zone, parse_zone
from hubbub.experiments.reproduction import Reproduction, reproduce, reproducing
from hubbub.experiments.spec import figure_names

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
