"""The likelihood of observed patterns as linear operators over the domain."""

from hubbub.channels.base import SMALL, Channel, check_entries
from hubbub.channels.bit_sets import Bits, Hashed
from hubbub.channels.composite import Joined, Picked, Product, picked, product
from hubbub.channels.convolution import Convolution
from hubbub.channels.dense import Chosen, Dense, Stored
from hubbub.channels.exponential_decay import Decay, Line
from hubbub.channels.sparse import Sparse
from hubbub.channels.spike import Spike
from hubbub.channels.window import Lattice

__all__ = [
    "SMALL",
    "Bits",
    "Channel",
    "Chosen",
    "Convolution",
    "Decay",
    "Dense",
    "Hashed",
    "Joined",
    "Lattice",
    "Line",
    "Picked",
    "Product",
    "Sparse",
    "Spike",
    "Stored",
    "check_entries",
    "picked",
    "product",
]
