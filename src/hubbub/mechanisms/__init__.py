"""Known conditional distributions P(output | value), one file for each family."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.bloom_rappor import BloomRappor
from hubbub.mechanisms.d_bit_flip import DBitFlip
from hubbub.mechanisms.duchi import Duchi
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.geometric import Geometric, TruncatedGeometric
from hubbub.mechanisms.hadamard_response import HadamardResponse
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.local_hashing import LocalHashing
from hubbub.mechanisms.longitudinal_response import LongitudinalHashing, LongitudinalResponse
from hubbub.mechanisms.longitudinal_unary import LongitudinalRappor, LongitudinalUnary
from hubbub.mechanisms.matrix import Cloaking, Matrix
from hubbub.mechanisms.one_among_fakes import SampleOneWithFakes
from hubbub.mechanisms.one_at_random import SampleOne
from hubbub.mechanisms.planar import PlanarGeometric, PlanarLaplace
from hubbub.mechanisms.projective_response import ProjectiveResponse
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.mechanisms.sketches import CountMeanSketch, HadamardCountMeanSketch
from hubbub.mechanisms.split_attributes import Split
from hubbub.mechanisms.square_wave import Piecewise, SquareWave
from hubbub.mechanisms.staircase import Staircase
from hubbub.mechanisms.subset_selection import SubsetSelection
from hubbub.mechanisms.survey_designs import CrosswiseModel, ForcedResponse, UnrelatedQuestion, Warner
from hubbub.mechanisms.unary_encoding import OptimizedUnary, Rappor, Unary

__all__ = [
    "BloomRappor",
    "Cloaking",
    "CountMeanSketch",
    "CrosswiseModel",
    "DBitFlip",
    "Duchi",
    "Exponential",
    "ForcedResponse",
    "Geometric",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "Laplace",
    "LocalHashing",
    "LongitudinalHashing",
    "LongitudinalRappor",
    "LongitudinalResponse",
    "LongitudinalUnary",
    "Matrix",
    "Mechanism",
    "OptimizedUnary",
    "Piecewise",
    "PlanarGeometric",
    "PlanarLaplace",
    "ProjectiveResponse",
    "RandomizedResponse",
    "Rappor",
    "SampleOne",
    "SampleOneWithFakes",
    "Split",
    "SquareWave",
    "Staircase",
    "SubsetSelection",
    "TruncatedGeometric",
    "Unary",
    "UnrelatedQuestion",
    "Warner",
]
