"""Where randomness comes from, the exact laws behind real reports, and the draws of simulations."""

from hubbub.sampling.integer_noise import OnLine
from hubbub.sampling.integer_tables import TableRows
from hubbub.sampling.lattice_noise import Clipped, Rejected
from hubbub.sampling.law import Fixed, Law
from hubbub.sampling.oracle_laws import Flips, Remembered, Response, Subsets
from hubbub.sampling.random_source import RandomSource, SystemSource
from hubbub.sampling.seeded_draws import choose_rows, two_sided_geometric
from hubbub.sampling.seeded_source import Randomness, SeededSource, source

__all__ = [
    "Clipped",
    "Fixed",
    "Flips",
    "Law",
    "OnLine",
    "RandomSource",
    "Randomness",
    "Rejected",
    "Remembered",
    "Response",
    "SeededSource",
    "Subsets",
    "SystemSource",
    "TableRows",
    "choose_rows",
    "source",
    "two_sided_geometric",
]
