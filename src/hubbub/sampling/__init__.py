"""Where randomness comes from, the exact laws behind real reports, and the draws of simulations."""

from hubbub.sampling.asked_bits_law import AskedBitsLaw
from hubbub.sampling.base import FixedLaw, Law
from hubbub.sampling.bloom_filter_laws import BloomFilters, BloomLaw, NoisyFilterLaw
from hubbub.sampling.frequency_oracle_laws import (
    BitFlipLaw,
    EndResponseLaw,
    FractionResponseLaw,
    ResponseLaw,
    SetResponseLaw,
    SubsetLaw,
)
from hubbub.sampling.geometric_noise import LineNoiseLaw, StaircaseLaw
from hubbub.sampling.lattice_noise import PlanarGeometricLaw, PlanarTableLaw
from hubbub.sampling.numbered_rows import NUMBER_BYTES, row_numbers, with_numbers
from hubbub.sampling.random_source import RandomSource, SystemSource
from hubbub.sampling.simulation_draws import Randomness, SeededSource, choose_rows, source_of, two_sided_geometric
from hubbub.sampling.two_answer_law import FractionFlipLaw, TwoAnswerLaw
from hubbub.sampling.two_stage_laws import TwoStageFlipLaw, TwoStageLaw, TwoStageResponseLaw
from hubbub.sampling.weight_tables import TableLaw

__all__ = [
    "NUMBER_BYTES",
    "AskedBitsLaw",
    "BitFlipLaw",
    "BloomFilters",
    "BloomLaw",
    "EndResponseLaw",
    "FixedLaw",
    "FractionFlipLaw",
    "FractionResponseLaw",
    "Law",
    "LineNoiseLaw",
    "NoisyFilterLaw",
    "PlanarGeometricLaw",
    "PlanarTableLaw",
    "RandomSource",
    "Randomness",
    "ResponseLaw",
    "SeededSource",
    "SetResponseLaw",
    "StaircaseLaw",
    "SubsetLaw",
    "SystemSource",
    "TableLaw",
    "TwoAnswerLaw",
    "TwoStageFlipLaw",
    "TwoStageLaw",
    "TwoStageResponseLaw",
    "choose_rows",
    "row_numbers",
    "source_of",
    "two_sided_geometric",
    "with_numbers",
]
