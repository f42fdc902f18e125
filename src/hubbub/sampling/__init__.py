"""Where randomness comes from, the exact laws behind real reports, and the draws of simulations."""

from hubbub.sampling.base import FixedLaw, Law
from hubbub.sampling.frequency_oracle_laws import BitFlipLaw, ResponseLaw, SubsetLaw, TwoStageFlipLaw
from hubbub.sampling.integer_noise import LineNoiseLaw
from hubbub.sampling.integer_tables import TableLaw
from hubbub.sampling.lattice_noise import PlanarGeometricLaw, PlanarTableLaw
from hubbub.sampling.random_source import RandomSource, SystemSource
from hubbub.sampling.seeded import Randomness, SeededSource, choose_rows, source_of, two_sided_geometric

__all__ = [
    "BitFlipLaw",
    "FixedLaw",
    "Law",
    "LineNoiseLaw",
    "PlanarGeometricLaw",
    "PlanarTableLaw",
    "RandomSource",
    "Randomness",
    "ResponseLaw",
    "SeededSource",
    "SubsetLaw",
    "SystemSource",
    "TableLaw",
    "TwoStageFlipLaw",
    "choose_rows",
    "source_of",
    "two_sided_geometric",
]
