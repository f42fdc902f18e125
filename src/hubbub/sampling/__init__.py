"""Where randomness comes from, and the few draws that mechanisms are made of."""

from hubbub.sampling.draws import choose_rows, two_sided_geometric
from hubbub.sampling.source import Randomness, Source, source

__all__ = ["Randomness", "Source", "choose_rows", "source", "two_sided_geometric"]
