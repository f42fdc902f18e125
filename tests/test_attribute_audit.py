"""Audits of reports about several attributes: exact ratios against whole matrices, and samplers with planted faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import hubbub as hb
from hubbub.auditing.exact_epsilon import prove_attribute_epsilons, prove_epsilon
from hubbub.core.arrays import Codes, Positions
from hubbub.sampling import RandomSource
from hubbub.sampling.fraction_table import FractionTable

AGE, SEX, TOWN = hb.Integers(1, 4), hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
PARTS: dict[str, hb.Mechanism] = {
    "age": hb.TruncatedGeometric(AGE, epsilon=0.3),
    "sex": hb.RandomizedResponse(SEX, epsilon=1.0),
    "town": hb.RandomizedResponse(TOWN, epsilon=1.5),
}
OTHERS: dict[str, hb.Mechanism] = {
    "age": hb.Exponential(AGE, epsilon=0.7),
    "town": hb.Matrix(TOWN, ["a", "b", "c"], [[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]]),
}
WAYS = [
    hb.Split(PARTS),
    hb.SampleOne(PARTS, probabilities={"age": 0.5, "sex": 0.2, "town": 0.3}),
    hb.SampleOneWithFakes(PARTS),
    hb.SampleOneWithFakes(OTHERS, fakes={"town": [0.2, 0.3, 0.5]}, probabilities={"age": 0.25, "town": 0.75}),
    hb.Split(OTHERS),
]


def largest_logs(mechanism: hb.Mechanism) -> tuple[float, list[float]]:
    """Return the largest log-ratio over all pairs, and over those that differ in one attribute, for each of them."""
    product, logs = mechanism.domain.product, np.log(mechanism.matrix())
    assert product is not None
    apart = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    places = np.stack(product.coordinates_of(np.arange(len(product))), axis=1)
    differ = places[:, None, :] != places[None, :, :]
    alone = [differ[..., own] & (differ.sum(axis=2) == 1) for own in range(places.shape[1])]
    return float(apart.max()), [float(apart[own].max()) for own in alone]


@pytest.mark.parametrize("mechanism", WAYS, ids=lambda mechanism: type(mechanism).__name__)
def test_exact_epsilons_are_those_of_the_matrix(mechanism: hb.Mechanism) -> None:
    exact, attributes = prove_epsilon(mechanism), prove_attribute_epsilons(mechanism)
    assert attributes is not None
    largest, alone = largest_logs(mechanism)
    assert float(exact.low) == pytest.approx(largest, rel=1e-12)
    assert float(exact.high) == pytest.approx(largest, rel=1e-12)
    assert [float(high) for _, high in attributes.bounds.values()] == pytest.approx(alone, rel=1e-12)
    assert exact.holds
    row = mechanism.domain.index(exact.value), mechanism.domain.index(exact.other)
    ratios = mechanism.matrix()[row[0]] / mechanism.matrix()[row[1]]
    assert math.log(ratios.max()) == pytest.approx(largest, rel=1e-12)  # the pair that is named has it


def test_outputs_without_a_list_are_proven_by_their_attributes() -> None:
    bits = hb.Split(age=hb.Rappor(AGE, epsilon=0.4), town=hb.LocalHashing(TOWN, epsilon=0.5))
    assert float(prove_epsilon(bits).high) == pytest.approx(0.9, rel=1e-9)
    line = hb.Split(age=hb.Geometric(AGE, epsilon=0.3), sex=PARTS["sex"])
    assert float(prove_epsilon(line).high) == pytest.approx(0.9 + 1.0, rel=1e-9)
    grid = hb.Grid(3, 2)
    place = prove_epsilon(hb.Split(place=hb.PlanarGeometric(grid, epsilon=0.5), sex=PARTS["sex"]))
    assert place.holds
    assert float(place.low) < float(place.high) == pytest.approx(0.5 * grid.diameter + 1.0, rel=1e-9)


def test_impossible_combinations_leave_a_bound() -> None:
    product = hb.Product(age=AGE, sex=SEX, impossible=[{"age": 1, "sex": "f"}])
    both = hb.Split(product, age=PARTS["age"], sex=PARTS["sex"])
    exact = prove_epsilon(both)
    assert exact.holds
    assert float(exact.low) <= largest_logs(both)[0] <= float(exact.high) + 1e-12


class WrongChoice(hb.SampleOne):
    """A planted fault: the first attribute is reported more often than is told."""

    @property
    def _choice(self) -> FractionTable:
        first, *others = self.probabilities_
        return FractionTable([first + others[0] / 2, others[0] / 2, *others[1:]])


class WrongFakes(hb.SampleOneWithFakes):
    """A planted fault: fakes repeat the value."""

    def draw_rows(self, places: Sequence[Positions], source: RandomSource) -> Codes:
        drawn = [part.report(own, source) for (_, part), own in zip(self.parts_, places, strict=True)]
        return self.output_space.joined(drawn, np.ones((places[0].size, len(places)), dtype=bool))


@pytest.mark.parametrize("kind", [WrongChoice, pytest.param(WrongFakes, marks=pytest.mark.slow)])
def test_faulty_samplers_are_refuted(kind: type[hb.SampleOne]) -> None:
    result = hb.audit(kind(age=PARTS["age"], sex=PARTS["sex"]), draws=20_000)
    assert result.verdict == "refuted"
    assert result.fit is not None
    assert result.fit.rejected


@pytest.mark.slow  # draws many reports
def test_attributes_without_a_list_of_outputs_are_tested_one_by_one() -> None:
    parts = {"age": hb.Rappor(AGE, epsilon=1.0), "town": hb.LocalHashing(TOWN, epsilon=1.0)}
    fair = hb.audit(hb.SampleOne(parts), draws=3_000)
    assert fair.verdict == "proven"
    assert fair.fit is not None
    assert fair.fit.tests > 20
    assert hb.audit(WrongChoice(parts), draws=5_000).verdict == "refuted"


def test_the_audit_tells_what_single_attributes_give_away() -> None:
    four = hb.Categories(list("abcd"))
    fakes = hb.SampleOneWithFakes({name: hb.RandomizedResponse(four, epsilon=2.0) for name in ("x", "y", "z")})
    result = hb.audit(fakes, draws=500)
    assert result.claim == 2.0
    assert result.attributes is not None
    stated = math.log1p(math.expm1(2.0) / 3.0)  # what the literature states for all combinations
    for low, high in result.attributes.bounds.values():
        assert float(low) == pytest.approx(stated, rel=1e-9)
        assert float(high) == pytest.approx(stated, rel=1e-9)
    assert "differ in one attribute alone, epsilon is at most 1.141 (x), 1.141 (y) and 1.141 (z)" in result.explain()
    assert set(result.document()["attributes"]) == {"x", "y", "z"}


def test_fakes_need_outputs_that_can_be_listed() -> None:
    parts = {"age": hb.Rappor(AGE, epsilon=1.0), "sex": PARTS["sex"]}
    with pytest.raises(hb.MechanismError, match="cannot be proven"):
        prove_epsilon(hb.SampleOneWithFakes(parts))


def test_chances_are_exact() -> None:
    one = hb.SampleOne(PARTS, probabilities={"age": 0.1, "sex": 0.2, "town": 0.7})
    assert one.probabilities_ == (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10))
