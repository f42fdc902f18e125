"""Whether outputs follow a mechanism's law: the tests for its kind of outputs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple
from zlib import crc32

import numpy as np

from hubbub.auditing.asked_bit_tests import answer_scores, asked_bit_tests
from hubbub.auditing.bit_row_tests import bit_row_tests, ones_scores
from hubbub.auditing.count_tests import LawTest, Sensitivity, binomial_test, chi_square, several_tests
from hubbub.auditing.filter_tests import filter_scores, filter_tests
from hubbub.auditing.hashed_output_tests import bucket_scores, hashed_output_tests
from hubbub.auditing.listed_output_tests import likelihood_scores, listed_output_tests, uniform_scores
from hubbub.auditing.output_cells import output_cells
from hubbub.auditing.serial_tests import correlation_test, serial_tests
from hubbub.auditing.sketch_tests import sketch_tests, wrong_scores
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import (
    BloomRappor,
    CountMeanSketch,
    DBitFlip,
    HadamardCountMeanSketch,
    LocalHashing,
    Matrix,
    Mechanism,
    RandomizedResponse,
    SampleOne,
    SampleOneWithFakes,
)
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.mechanisms.several_attributes import SeveralAttributes

MAX_LISTED_ROWS = 256  # of bits, up to which whole rows are tested, too
MAX_LISTED_COMBINATIONS = 4_096  # of several attributes
TIE_SEED = 27  # of the numbers that break ties, besides the outputs


class Scores(NamedTuple):
    """Numbers that are uniform and independent if outputs follow the law, and the values of these outputs.

    `likelihoods` are such numbers by how likely an output is for its value; None where `numbers` are by that already.
    """

    numbers: Floats
    values: Positions
    likelihoods: Floats | None = None

    def serial_tests(self) -> list[LawTest]:
        """Return the tests of the order in which outputs were drawn."""
        tests = serial_tests(self.numbers, self.values)
        if self.likelihoods is not None:
            tests += serial_tests(self.likelihoods, self.values, "how likely outputs are: ")
        return tests


def law_tests(mechanism: Mechanism, positions: Positions, codes: Codes) -> list[LawTest]:
    """Return the tests of encoded outputs, given the values; none where the probabilities of outputs are not known.

    Outputs are in the order in which they were drawn.
    """
    rng = _tie_breaker(positions, codes)
    if isinstance(mechanism, SeveralAttributes):
        return _attribute_tests(mechanism, positions, codes, rng)
    if not len(codes):
        return []
    tests, scores = _single_tests(mechanism, positions, codes, rng)
    return tests if scores is None else tests + scores.serial_tests()


def _tie_breaker(positions: Positions, codes: Codes) -> np.random.Generator:
    """Return a generator of numbers that break ties: the same for the same outputs, and other ones for others.

    If all audits had the same, a correlation that these happen to have would be found in every client whose outputs
    tie a lot, such as cloaking's.
    """
    return np.random.default_rng([TIE_SEED, crc32(positions.tobytes()), crc32(codes.tobytes())])


def _single_tests(
    mechanism: Mechanism, positions: Positions, codes: Codes, rng: np.random.Generator
) -> tuple[list[LawTest], Scores | None]:
    """Return the tests of outputs one by one, and scores that are uniform if these follow the law, if there are any."""
    if isinstance(mechanism, DBitFlip):
        tests = asked_bit_tests(mechanism, positions, codes)
        return tests, Scores(answer_scores(mechanism, positions, codes, rng), positions)
    if isinstance(mechanism, BloomRappor):
        tests = filter_tests(mechanism, positions, codes)
        listed = positions != mechanism.rest_position
        return tests, Scores(filter_scores(mechanism, positions, codes, rng), positions[listed])
    if isinstance(mechanism, CountMeanSketch | HadamardCountMeanSketch):
        tests = sketch_tests(mechanism, positions, codes)
        return tests, Scores(wrong_scores(mechanism, positions, codes, rng), positions)
    if isinstance(mechanism, LocalHashing):
        tests = hashed_output_tests(mechanism, positions, codes)
        return tests, Scores(bucket_scores(mechanism, positions, codes, rng), positions)
    if isinstance(mechanism, SetValuedOracle) and isinstance(mechanism.output_space, BitRowOutputs):
        tests = bit_row_tests(mechanism, positions, codes)
        outputs = mechanism.outputs
        if outputs is not None and len(outputs) <= MAX_LISTED_ROWS:
            cells = output_cells(mechanism, positions, codes)
            tests += [] if cells is None else listed_output_tests(mechanism, cells)
        return tests, Scores(ones_scores(mechanism, positions, codes, rng), positions)
    cells = output_cells(mechanism, positions, codes)
    if cells is None:
        return [], None
    tests = listed_output_tests(mechanism, cells)
    if isinstance(mechanism, RandomizedResponse):
        kept = int(np.count_nonzero(codes == positions))
        tests.append(binomial_test("how often the value itself is sent", kept, len(codes), mechanism.support.true))
    if isinstance(mechanism, ListedSets):
        kept = int(np.count_nonzero(mechanism.holds(codes, positions)))
        tests.append(binomial_test("how often the value's set is hit", kept, len(codes), mechanism.member_chance))
    return tests, Scores(uniform_scores(cells, rng), positions[cells.kept], likelihood_scores(cells, rng))


def _attribute_tests(
    mechanism: SeveralAttributes, positions: Positions, codes: Codes, rng: np.random.Generator
) -> list[LawTest]:
    """Test each attribute's outputs by themselves, whether two have to do with each other, and which are sent."""
    space, coordinates = mechanism.output_space, mechanism.domain.coordinates_of(positions)
    tests: list[LawTest] = []
    scored: dict[str, tuple[Floats, Positions]] = {}
    for place, (name, part) in enumerate(mechanism.parts.items()):
        law = part if not isinstance(mechanism, SampleOneWithFakes) else _with_fakes(mechanism, name, part)
        own, has = space.entries(codes, place)
        if law is None or not has.any():
            continue
        own_tests, scores = _single_tests(law, coordinates[place][has], own, rng)  # ties of each are broken anew
        if scores is not None:
            own_tests += scores.serial_tests()
            if scores.numbers.size == len(own):
                scored[name] = scores.numbers, np.flatnonzero(has)
        tests += [_of_attribute(test, name) for test in own_tests]
    if isinstance(mechanism, SampleOne):
        tests += _choice_tests(mechanism, positions, codes)
    elif isinstance(mechanism, SampleOneWithFakes):
        tests += _combination_tests(mechanism, positions, codes)
    else:
        for first, second in combinations(scored, 2):
            (one, rows), (other, other_rows) = scored[first], scored[second]
            both, places, other_places = np.intersect1d(rows, other_rows, return_indices=True)
            if both.size:
                about = f"independence of {first} and {second}"
                tests += correlation_test(one[places], other[other_places], about)
    return tests


def _of_attribute(test: LawTest, name: str) -> LawTest:
    fault = test.fault and f"{name}: {test.fault}"
    return replace(test, about=f"{name}: {test.about}", worst=f"{name}: {test.worst}", fault=fault)


def _with_fakes(mechanism: SampleOneWithFakes, name: str, part: Mechanism) -> Mechanism | None:
    """Return the distribution of one attribute's outputs, true or fake, as a matrix; None where it is too large."""
    outputs = part.outputs
    if outputs is None or part.output_space.size is None or len(outputs) > MAX_LISTED_COMBINATIONS:
        return None
    matrix, chance = part.matrix(), mechanism.probabilities[name]
    mixed = chance * matrix + (1 - chance) * (mechanism.fakes[name] @ matrix)
    return Matrix(part.domain, [str(place) for place in range(len(outputs))], mixed)


def _combination_tests(mechanism: SampleOneWithFakes, positions: Positions, codes: Codes) -> list[LawTest]:
    """Test combinations of outputs, where these are few."""
    outputs = mechanism.outputs
    if outputs is None or len(outputs) > MAX_LISTED_COMBINATIONS:
        return []
    cells = output_cells(mechanism, positions, codes)
    return [] if cells is None else listed_output_tests(mechanism, cells)


def _choice_tests(mechanism: SampleOne, positions: Positions, codes: Codes) -> list[LawTest]:
    """Test how often each attribute is sent: of all values, and of each."""
    space, chances = mechanism.output_space, np.array(list(mechanism.probabilities.values()))
    sent = np.stack([space.entries(codes, place)[1] for place in range(chances.size)], axis=1)
    values, value_of = np.unique(positions, return_inverse=True)
    counts = np.stack([np.bincount(value_of.ravel(), weights=own, minlength=values.size) for own in sent.T], axis=1)
    groups = np.vstack([counts.sum(axis=0), counts]).astype(np.int64)
    answers = [(chi_square(own, chances), int(own.sum())) for own in groups]
    tested = [place for place, (answer, _) in enumerate(answers) if answer.freedom]

    def text(place: int) -> str:
        which = tested[place]
        return "how often each attribute is sent" + (
            f" for {mechanism.domain.title(int(values[which - 1]))}" if which else ""
        )

    return several_tests(
        "how often each attribute is sent",
        np.array([answers[place][0].p_value for place in tested]),
        [Sensitivity(answers[place][1], answers[place][0].freedom, 0.25) for place in tested],
        text,
    )
