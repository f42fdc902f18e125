"""The likelihood of observed patterns as linear operators over the domain."""

from hubbub.channels.asked_bits import AskedBitsChannel
from hubbub.channels.base import Channel, check_entries, prefers_matrix, structured_only
from hubbub.channels.bit_sets import BitSetChannel, HashedSetChannel
from hubbub.channels.bloom_bits import BloomChannel
from hubbub.channels.composite import (
    ConcatenatedChannel,
    ProductChannel,
    ReindexedChannel,
    RestrictedChannel,
    product_channel,
    reindexed,
)
from hubbub.channels.convolution import ConvolutionChannel
from hubbub.channels.dense import DenseChannel
from hubbub.channels.diagonal_plus_constant import DiagonalPlusConstantChannel
from hubbub.channels.exponential_decay import DecayChannel, DecayLine
from hubbub.channels.hadamard_sums import HadamardBlocksChannel
from hubbub.channels.lattice_window import LatticeWindow
from hubbub.channels.projective_sums import HyperplaneChannel
from hubbub.channels.sketch_sums import BitSketchChannel, SignSketchChannel
from hubbub.channels.sliding_window import WindowChannel
from hubbub.channels.sparse import SparseChannel
from hubbub.channels.stacked import StackedChannel
from hubbub.channels.stair_windows import StairChannel

__all__ = [
    "AskedBitsChannel",
    "BitSetChannel",
    "BitSketchChannel",
    "BloomChannel",
    "Channel",
    "ConcatenatedChannel",
    "ConvolutionChannel",
    "DecayChannel",
    "DecayLine",
    "DenseChannel",
    "DiagonalPlusConstantChannel",
    "HadamardBlocksChannel",
    "HashedSetChannel",
    "HyperplaneChannel",
    "LatticeWindow",
    "ProductChannel",
    "ReindexedChannel",
    "RestrictedChannel",
    "SignSketchChannel",
    "SparseChannel",
    "StackedChannel",
    "StairChannel",
    "WindowChannel",
    "check_entries",
    "prefers_matrix",
    "product_channel",
    "reindexed",
    "structured_only",
]
