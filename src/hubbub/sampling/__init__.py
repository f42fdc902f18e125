"""Where randomness comes from, the exact laws behind real reports, and the draws of simulations."""

from hubbub.sampling.cells import TableRows
from hubbub.sampling.draws import choose_rows, two_sided_geometric
from hubbub.sampling.lattice import Clipped, Rejected
from hubbub.sampling.law import Fixed, Law
from hubbub.sampling.line import OnLine
from hubbub.sampling.pointing import Flips, Remembered, Response, Subsets
from hubbub.sampling.random_source import RandomSource, SystemSource
from hubbub.sampling.seeded import Randomness, SeededSource, source

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
