"""Audits of reports about several attributes: exact ratios against whole matrices, and samplers with planted faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.auditing import possible_pairs
from hubbub.auditing.exact_epsilon import prove_attribute_epsilons, prove_epsilon
from hubbub.core.arrays import Codes, Positions
from hubbub.sampling import RandomSource
from hubbub.sampling.fraction_table import FractionTable

Mask = NDArray[np.bool_]
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
WAYS: list[hb.Split | hb.SampleOne | hb.SampleOneWithFakes] = [
    hb.Split(PARTS),
    hb.SampleOne(PARTS, probabilities={"age": 0.5, "sex": 0.2, "town": 0.3}),
    hb.SampleOneWithFakes(PARTS),
    hb.SampleOneWithFakes(OTHERS, fakes={"town": [0.2, 0.3, 0.5]}, probabilities={"age": 0.25, "town": 0.75}),
    hb.Split(OTHERS),
]


def dense(mechanism: Any) -> NDArray[np.float64]:
    """Return the probabilities of all outputs for the possible combinations, from the parts' own matrices."""
    tables = [part.matrix() for part in mechanism.parts.values()]
    joint = mechanism.joint_probabilities
    if isinstance(mechanism, hb.SampleOne):
        chances = enumerate(mechanism.probabilities.values())
        each = [[own if at == place else None for at, own in enumerate(tables)] for place in range(len(tables))]
        whole = np.hstack([chance * joint(each[place]) for place, chance in chances])
    else:
        whole = joint(tables)
    cells = mechanism.domain.cells
    return np.asarray(whole if cells is None else whole[cells])


def largest_logs(mechanism: hb.Mechanism) -> tuple[float, list[float]]:
    """Return the largest log-ratio over all pairs, and over those that differ in one attribute, for each of them."""
    product, probabilities = mechanism.domain.product, dense(mechanism)
    assert product is not None
    logs = np.log(probabilities[:, probabilities.any(axis=0)])
    apart = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    places = np.stack(product.coordinates_of(np.arange(len(product))), axis=1)
    differ = places[:, None, :] != places[None, :, :]
    alone = [differ[..., own] & (differ.sum(axis=2) == 1) for own in range(places.shape[1])]
    return float(apart.max()), [float(apart[own].max(initial=0.0)) for own in alone]


def check_exact_epsilons(mechanism: hb.Mechanism) -> None:
    """Compare audited epsilons, and the pair that is named, with the matrix of the possible combinations."""
    exact, attributes = prove_epsilon(mechanism), prove_attribute_epsilons(mechanism)
    assert attributes is not None
    largest, alone = largest_logs(mechanism)
    assert float(exact.low) == pytest.approx(largest, rel=1e-12, abs=1e-13)
    assert float(exact.high) == pytest.approx(largest, rel=1e-12, abs=1e-13)
    assert [float(low) for low, _ in attributes.bounds.values()] == pytest.approx(alone, rel=1e-12, abs=1e-13)
    assert [float(high) for _, high in attributes.bounds.values()] == pytest.approx(alone, rel=1e-12, abs=1e-13)
    assert exact.holds
    row = mechanism.domain.index(exact.value), mechanism.domain.index(exact.other)
    probabilities = dense(mechanism)
    possible = probabilities[row[0]] > 0
    ratios = probabilities[row[0], possible] / probabilities[row[1], possible]
    assert math.log(ratios.max()) == pytest.approx(largest, rel=1e-12)  # the pair that is named has it


@pytest.mark.parametrize("mechanism", WAYS, ids=lambda mechanism: type(mechanism).__name__)
def test_exact_epsilons_are_those_of_the_matrix(mechanism: hb.Mechanism) -> None:
    check_exact_epsilons(mechanism)


def test_outputs_without_a_list_are_proven_by_their_attributes() -> None:
    bits = hb.Split(age=hb.Rappor(AGE, epsilon=0.4), town=hb.LocalHashing(TOWN, epsilon=0.5))
    assert float(prove_epsilon(bits).high) == pytest.approx(0.9, rel=1e-9)
    line = hb.Split(age=hb.Geometric(AGE, epsilon=0.3), sex=PARTS["sex"])
    assert float(prove_epsilon(line).high) == pytest.approx(0.9 + 1.0, rel=1e-9)
    grid = hb.Grid(3, 2)
    place = prove_epsilon(hb.Split(place=hb.PlanarGeometric(grid, epsilon=0.5), sex=PARTS["sex"]))
    assert place.holds
    assert float(place.low) < float(place.high) == pytest.approx(0.5 * grid.diameter + 1.0, rel=1e-9)


# -- impossible combinations -----------------------------------------------------------------------------


def masked(way: hb.SampleOneWithFakes | hb.SampleOne | hb.Split, impossible: Mask) -> hb.Mechanism:
    """Return the same way to report where some combinations are impossible."""
    product = hb.Product(dict(way.domain.attributes), impossible=impossible)
    if isinstance(way, hb.Split):
        return hb.Split(product, **way.parts)
    chances: dict[str, str] = {name: str(own) for name, own in zip(way.parts, way.probabilities_, strict=True)}
    if isinstance(way, hb.SampleOne):
        return hb.SampleOne(product, probabilities=chances, **way.parts)
    fakes = {name: own.tolist() for name, own in way.fakes.items()}
    return hb.SampleOneWithFakes(product, probabilities=chances, fakes=fakes, **way.parts)


MORE_WAYS: list[Any] = [
    *WAYS,
    hb.Split(age=hb.Rappor(AGE, epsilon=0.5), town=hb.SubsetSelection(TOWN, epsilon=0.5), sex=PARTS["sex"]),
    hb.SampleOne(age=hb.OptimizedUnary(AGE, epsilon=2.0), town=hb.Exponential(TOWN, epsilon=1.5)),
    hb.Split(answer=hb.Warner(hb.Categories(["yes", "no"]), 0.8), town=PARTS["town"]),
    hb.SampleOneWithFakes(age=hb.Rappor(AGE, epsilon=1.0), town=OTHERS["town"]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", MORE_WAYS, ids=lambda way: type(way).__name__)
def test_only_possible_pairs_count(way: Any) -> None:
    rng = np.random.default_rng(MORE_WAYS.index(way))
    size = math.prod(way.domain.sides)
    for possible in [*rng.integers(2, size, 12).tolist(), 2, 2, 3]:
        impossible = np.ones(size, dtype=bool)
        impossible[rng.permutation(size)[:possible]] = False
        check_exact_epsilons(masked(way, impossible.reshape(way.domain.sides)))


def one_age_left(way: Any) -> hb.Mechanism:
    """Return a way to report age and sex where all people have the same age."""
    age, sex = hb.Integers(1, 3), SEX
    product = hb.Product(age=age, sex=sex, impossible=[{"age": [2, 3]}])
    mechanism: hb.Mechanism = way(product, age=hb.TruncatedGeometric(age, 1.0), sex=hb.RandomizedResponse(sex, 1.0))
    return mechanism


@pytest.mark.parametrize("way", [hb.Split, hb.SampleOne])
def test_values_that_nobody_has_are_in_the_claim_alone(way: Any) -> None:
    mechanism = one_age_left(way)
    result = hb.audit(mechanism, draws=500)
    assert mechanism.epsilon == result.claim == (3.0 if way is hb.Split else 2.0)
    assert result.exact is not None
    assert float(result.exact.high) == pytest.approx(1.0)
    assert {result.exact.value, result.exact.other} == {(1, "f"), (1, "m")}
    assert result.loose
    assert "The claim would also hold for combinations that the domain calls impossible." in result.explain()
    assert result.attributes is not None
    assert [float(high) for _, high in result.attributes.bounds.values()] == pytest.approx([0.0, 1.0])


def test_pairs_that_are_too_many_leave_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then what was found is no more than a lower bound, and that over all combinations is the upper one."""
    monkeypatch.setattr(possible_pairs, "MAX_PAIR_SCORES", 5)
    impossible = np.random.default_rng(7).random((4, 2, 3)) < 0.6
    for way in WAYS[:3]:
        mechanism = masked(way, impossible)
        exact, largest = prove_epsilon(mechanism), largest_logs(mechanism)[0]
        assert exact.holds
        assert float(exact.low) <= largest * (1 + 1e-12)
        assert float(exact.high) >= largest * (1 - 1e-12)
        assert float(exact.high) <= mechanism.epsilon


def test_outputs_that_rule_values_out_do_so_among_possible_pairs_alone() -> None:
    """A town is told without noise: infinite, unless all possible combinations have the same."""
    parts: dict[str, hb.Mechanism] = {"sex": PARTS["sex"], "town": hb.Cloaking(TOWN, ["x", "x", "y"])}
    for towns, infinite in ((["c"], False), (["a"], True)):
        product = hb.Product(sex=SEX, town=TOWN, impossible=[{"town": towns}])
        for way in (hb.Split, hb.SampleOne):
            exact = prove_epsilon(cast("Any", way)(product, **parts))
            assert exact.holds
            assert exact.high.is_infinite() is infinite
            assert infinite or float(exact.low) == pytest.approx(1.0)


def test_noise_without_ends_is_bounded_by_possible_pairs() -> None:
    grid = hb.Grid(3, 2)
    people = hb.Product(age=AGE, place=grid, impossible=[{"age": [2, 3]}, {"age": 1, "place": [1, 2, 3, 4, 5]}])
    parts = {"age": hb.Geometric(AGE, epsilon=0.3), "place": hb.PlanarGeometric(grid, epsilon=0.5, truncated=False)}
    exact = prove_epsilon(hb.Split(people, **parts))
    assert exact.holds
    assert float(exact.low) == pytest.approx(0.9 + 0.5 * grid.diameter, rel=1e-9)
    apart = hb.Product(age=AGE, place=grid, impossible=[{"age": [1, 3]}, {"age": 4, "place": [1, 2, 3, 4, 5]}])
    assert float(prove_epsilon(cast("Any", hb.SampleOne)(apart, **parts)).high) == pytest.approx(2 * 0.3, rel=1e-9)


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


@pytest.mark.parametrize("kind", [hb.Rappor, hb.OptimizedUnary])
def test_rows_of_bits_among_fakes_are_proven(kind: Any) -> None:
    """The rows that can be extreme are few: against all of them, with and without impossible combinations."""
    rng = np.random.default_rng(3)
    fakes, chances = {"town": [0.2, 0.5, 0.3]}, {"age": 0.3, "town": 0.7}
    parts = {"age": kind(AGE, epsilon=2.0), "town": kind(TOWN, epsilon=1.0)}
    way = hb.SampleOneWithFakes(parts, fakes=fakes, probabilities=chances)
    for mask in (np.zeros((4, 3), dtype=bool), *(rng.random((5, 4, 3)) < 0.6)):
        mechanism: Any = masked(way, mask)
        check_exact_epsilons(mechanism)
        assert "bit" in prove_epsilon(mechanism).output
    assert hb.audit(way, draws=500).verdict == "proven"


def test_attributes_that_are_left_out_are_fake() -> None:
    """Where some reports are fake throughout, they hide the others."""
    about = hb.SampleOneWithFakes(PARTS).about(hb.Product(age=AGE, sex=SEX))
    check_exact_epsilons(about)


def test_fakes_need_outputs_that_can_be_listed() -> None:
    parts = {"age": hb.LocalHashing(AGE, epsilon=1.0), "sex": PARTS["sex"]}
    with pytest.raises(hb.MechanismError, match="cannot be proven"):
        prove_epsilon(hb.SampleOneWithFakes(parts))


def test_chances_are_exact() -> None:
    one = hb.SampleOne(PARTS, probabilities={"age": 0.1, "sex": 0.2, "town": 0.7})
    assert one.probabilities_ == (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10))


@pytest.mark.parametrize(
    "parts",
    [
        {"sex": hb.Warner(SEX, 0.7), "town": hb.RandomizedResponse(TOWN, 1.5)},
        {"age": hb.RandomizedResponse(AGE, 0.4), "sex": hb.RandomizedResponse(SEX, 0.5), "town": PARTS["town"]},
        {name: hb.RandomizedResponse(SEX, p=0.6) for name in "abcdef"},
    ],
    ids=["two", "three", "six"],
)
def test_the_claim_of_a_sum_is_not_rounded_below_it(parts: dict[str, hb.Mechanism]) -> None:
    split = hb.Split(parts)
    assert Fraction(split.epsilon) >= sum(Fraction(part.epsilon) for part in parts.values())
    exact = prove_epsilon(split)
    assert exact is not None
    assert exact.holds


def test_an_event_shows_outputs_as_files_hold_them() -> None:
    parts = {"town": hb.OptimizedUnary(TOWN, 1.0), "sex": PARTS["sex"]}
    assert 'the output is {"town": ' in str(hb.audit(hb.Split(parts), draws=2_000))
