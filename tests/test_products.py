"""Several attributes: combinations as a domain, likelihoods by their axes, and three ways to report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import hubbub as hb
from hubbub.channels import Channel, DenseChannel, DiagonalPlusConstantChannel
from hubbub.channels.base import structured_only
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.channels.mixture import MixtureChannel

Floats = NDArray[np.float64]
AGE, SEX, TOWN = hb.Integers(1, 5), hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
PEOPLE = hb.Product(age=AGE, sex=SEX)
PARTS = {
    "age": hb.TruncatedGeometric(AGE, epsilon=0.8),
    "sex": hb.RandomizedResponse(SEX, epsilon=1.0),
    "town": hb.RandomizedResponse(TOWN, epsilon=1.5),
}
PARTS_OF_PEOPLE = {name: PARTS[name] for name in PEOPLE.attributes}
KINDS = (hb.Split, hb.SampleOne, hb.SampleOneWithFakes)


# -- the domain --------------------------------------------------------------------------------------------------------


def test_values_are_combinations_in_order() -> None:
    assert [tuple(label) for label in PEOPLE.labels.tolist()] == list(itertools.product(range(1, 6), ["f", "m"]))
    assert PEOPLE.index([(1, "m"), (5, "f")]).tolist() == [1, 8]
    assert PEOPLE.index((5, "m")) == 9
    assert PEOPLE.title(3) == "age 2, sex m"
    assert PEOPLE.distances_between(np.array([0]), np.array([0, 1, 3])).tolist() == [[0.0, 1.0, 2.0]]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"sex": ["m", "f"], "age": [1, 5]}),
        {"age": [1, 5], "sex": ["m", "f"]},
        np.array([(1, "m"), (5, "f")], dtype=[("age", int), ("sex", object)]),
        [[1, "m"], [5, "f"]],
    ],
)
def test_values_come_in_any_form(table: object) -> None:
    assert PEOPLE.index(table).tolist() == [1, 8]


def test_impossible_combinations_are_no_values() -> None:
    rules = hb.Product(age=AGE, sex=SEX, impossible=[{"age": [1, 2], "sex": "m"}])
    mask = np.zeros((5, 2), dtype=bool)
    mask[:2, 1] = True
    masked = hb.Product(age=AGE, sex=SEX, impossible=mask)
    for product in (rules, masked):
        assert len(product) == 8
        assert (1, "m") not in product.labels.tolist()
        assert product.find([(1, "m"), (3, "m")]).tolist() == [-1, 3]
        with pytest.raises(hb.DomainError, match="impossible"):
            product.index([(2, "m")])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: hb.Product(age=AGE), "at least two attributes"),
        (lambda: hb.Product(age=AGE, sex=["f", "m"]), "sex is not a domain"),  # type: ignore[arg-type]
        (lambda: hb.Product({"age": AGE, "a b": SEX}), "not allowed"),
        (lambda: hb.Product({"age": AGE, "both": PEOPLE}), "a product itself"),
        (lambda: hb.Product([AGE, SEX]), "attributes must have names"),  # type: ignore[arg-type]
        (lambda: hb.Product(age=AGE, sex=SEX, impossible={"age": 1}), "must be a list"),
        (lambda: hb.Product(age=AGE, sex=SEX, impossible=[{"ages": 1}]), "no such attribute"),
        (lambda: hb.Product(age=AGE, sex=SEX, impossible=[{"age": 7}]), "not in the domain"),
        (lambda: hb.Product(age=AGE, sex=SEX, impossible=np.zeros((2, 5), dtype=bool)), "does not fit"),
        (lambda: PEOPLE.index([(1, "m", 2)]), "one entry for each attribute"),
        (lambda: PEOPLE.index([(1, "x")]), "not in the domain"),
        (lambda: PEOPLE.index({"age": [1]}), "no column sex"),
        (lambda: PEOPLE.index({"age": [1], "sex": ["f"], "id": [7]}), "id is no attribute"),
        (lambda: PEOPLE.index("f"), "one entry for each attribute"),
        (lambda: PEOPLE.index({"age": [1, 2], "sex": ["f"]}), "one value in each row"),
        (lambda: PEOPLE.find({"age": [1, 2], "sex": "f"}), "one value in each row"),
        (lambda: PEOPLE.label_array({"age": [[1, 2]], "sex": [["f", "m"]]}), "one value in each row"),
        (lambda: hb.Split(PARTS_OF_PEOPLE).privatize({"age": [1, 2], "sex": ["f"]}), "one value in each row"),
        (lambda: hb.Product({"age": AGE, "sex": AGE}, sex=SEX), "sex is there twice"),
        (lambda: PEOPLE.margin([["age", "sex"]]), "no such attribute"),  # type: ignore[list-item]
    ],
)
def test_mistakes_are_told(build: object, message: str) -> None:
    with pytest.raises(hb.DomainError, match=message) as caught:
        build()  # type: ignore[operator]
    assert all([caught.value.where, caught.value.got, caught.value.expected, caught.value.remedy])


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_has_one_mechanism(kind: Any) -> None:
    """Of two that were passed, the second one was taken without a word."""
    with pytest.raises(hb.MechanismError, match="sex is there twice") as caught:
        kind(PARTS_OF_PEOPLE, sex=hb.RandomizedResponse(SEX, epsilon=5.0))
    assert caught.value.remedy == "leave one of the two out"


def test_statements_about_attributes_name_the_estimate_they_come_from() -> None:
    """Shares of one attribute may be determined where those of combinations are not."""
    reports = hb.Reports.from_outputs(hb.SampleOne(PARTS_OF_PEOPLE), [(1, None), (None, "m"), (2, None), (None, "f")])
    joint = hb.estimate(reports, "mle")
    assert joint.status.endswith("; not the only maximum")
    assert joint.marginal("sex").status == f"marginal of sex; the joint estimate: {joint.status}"


def test_values_that_cannot_meet_are_not_called_rare() -> None:
    people = hb.Product(age=AGE, sex=SEX, town=TOWN, impossible=[{"age": [1, 2], "sex": "m"}])
    joint = hb.estimate(hb.Reports.from_outputs(hb.Split(people, **PARTS), [(1, "f", "a"), (4, "m", "b")]), "mle")
    with pytest.raises(hb.EstimateError, match="no combination has these values") as caught:
        joint.conditional("town", given={"age": 1, "sex": "m"})
    assert "impossible" in caught.value.remedy


@pytest.mark.sampled(4)
@pytest.mark.parametrize("of", ["age", ["age"], ("age", "sex"), {"sex"}])
def test_values_are_compared_and_not_attributes(of: Any) -> None:
    reports = hb.Reports.from_outputs(hb.Split(PARTS_OF_PEOPLE), [(1, "f"), (2, "m")])
    with pytest.raises(hb.SettingError, match="none of its values") as caught:
        hb.compare(reports, reports, of=of)
    assert "{'age': [value, ...]}" in caught.value.expected
    assert hb.compare(reports, reports, of={"age": [1, 2]}).labels.tolist() == ["age 1 or 2"]


def test_names_of_attributes_are_not_lists() -> None:
    reports = hb.Reports.from_outputs(hb.Split(PARTS_OF_PEOPLE), [(1, "f"), (2, "m")])
    joint = hb.estimate(reports, "mle")
    for ask in (
        lambda: joint.marginal(["age", "sex"]),  # type: ignore[arg-type]
        lambda: joint.conditional(["age"], given={"sex": "f"}),  # type: ignore[arg-type]
        lambda: joint.crosstab(["age"], "sex"),  # type: ignore[arg-type]
        lambda: hb.independence(reports, ["age"], "sex"),  # type: ignore[arg-type]
        lambda: hb.independence(reports, np.array(["age", "sex"]), "sex"),  # type: ignore[arg-type]
    ):
        with pytest.raises(hb.DomainError, match="no such attribute") as caught:
            ask()
        assert "not in a list" in caught.value.remedy


# -- channels ----------------------------------------------------------------------------------------------------------


def factors(rng: np.random.Generator, sides: Sequence[int]) -> list[Channel]:
    found: list[Channel] = []
    for side in sides:
        outputs = int(rng.integers(1, 8))
        if rng.random() < 0.3:
            peaks = rng.integers(0, side, outputs)
            found.append(DiagonalPlusConstantChannel(side, peaks, log_at=-0.5, log_elsewhere=-2.0))
        else:
            found.append(DenseChannel(rng.random((side, outputs)), rng.normal(size=outputs)))
    return found


def written_out(parts: Sequence[Channel], picks: NDArray[np.int64]) -> Floats:
    """Return the likelihoods, cell by cell."""
    cells = list(itertools.product(*(range(part.values) for part in parts)))
    tables = [np.exp(part.log_dense()) for part in parts]
    matrix = np.ones((len(cells), len(picks)))
    for row, cell in enumerate(cells):
        for column, pick in enumerate(picks):
            for table, value, output in zip(tables, cell, pick, strict=True):
                if output != MISSING:
                    matrix[row, column] *= table[value, output]
    return matrix


@pytest.mark.parametrize("seed", range(25))
def test_a_kronecker_channel_is_its_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = factors(rng, rng.integers(2, 5, size=rng.integers(1, 5)).tolist())
    count = int(rng.integers(1, 40))
    picks = np.stack([rng.integers(MISSING * (rng.random() < 0.5), part.patterns, count) for part in parts], axis=1)
    channel, matrix = KroneckerChannel(parts, picks), written_out(parts, picks)
    scale = np.exp(channel.log_scale)
    theta, ratio = rng.random((3, channel.values)), rng.random((2, channel.patterns))
    np.testing.assert_allclose(channel.forward(theta) * scale, theta @ matrix, rtol=1e-12)
    np.testing.assert_allclose(channel.forward(theta[0]) * scale, theta[0] @ matrix, rtol=1e-12)
    np.testing.assert_allclose(channel.backward(ratio / scale), (ratio / scale**2) @ matrix.T, rtol=1e-12)
    np.testing.assert_allclose(channel.squares(ratio[0]), (matrix / scale) ** 2 @ ratio[0], rtol=1e-12)
    np.testing.assert_allclose(channel.rows(np.arange(channel.values)) * scale, matrix, rtol=1e-12)
    np.testing.assert_allclose(np.exp(channel.log_dense()), matrix, rtol=1e-12)
    mixed = MixtureChannel([channel, KroneckerChannel(parts, picks, np.full(count, -1.0))])
    scale = np.exp(mixed.log_scale)
    np.testing.assert_allclose(mixed.forward(theta) * scale, theta @ matrix * (1.0 + math.exp(-1.0)), rtol=1e-12)
    np.testing.assert_allclose(mixed.squares(ratio[0]), mixed.dense() ** 2 @ ratio[0], rtol=1e-12)


# -- mechanisms --------------------------------------------------------------------------------------------------------


def by_definition(mechanism: hb.Mechanism, kind: type) -> Floats:
    """Return P(output | value) from the matrices of the attributes, written out."""
    parts = [PARTS[name].matrix() for name in mechanism.domain.attributes]  # type: ignore[attr-defined]
    product: Floats = parts[0]
    for part in parts[1:]:
        product = np.asarray(np.kron(product, part))
    if kind is hb.Split:
        return product
    count, sides = len(parts), [len(part) for part in parts]
    cells = list(itertools.product(*map(range, sides)))
    if kind is hb.SampleOne:
        rows = [np.concatenate([part[at] for part, at in zip(parts, cell, strict=True)]) for cell in cells]
        return np.array(rows) / count
    fakes = [part.mean(axis=0) for part in parts]
    rows = []
    for cell in cells:
        ways = []
        for true in range(count):
            row = np.ones(1)
            for place, (part, at) in enumerate(zip(parts, cell, strict=True)):
                row = np.kron(row, part[at] if place == true else fakes[place])
            ways.append(row)
        rows.append(np.mean(ways, axis=0))
    return np.array(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_and_epsilons_are_those_of_the_definition(kind: type) -> None:
    mechanism = kind(**PARTS)
    matrix = mechanism.matrix()
    np.testing.assert_allclose(matrix, by_definition(mechanism, kind), rtol=1e-12)
    realised = float(np.log((matrix.max(axis=0) / matrix.min(axis=0)).max()))
    assert mechanism.epsilon == pytest.approx(realised, rel=1e-12)
    with structured_only():
        channel = mechanism.channel(mechanism.outputs)
    assert not isinstance(channel, DenseChannel)
    np.testing.assert_allclose(np.exp(channel.log_dense()), matrix, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("part", "count"),
    [(hb.OptimizedUnary(TOWN, 1.0), 8), (hb.Rappor(TOWN, 2.0), 8), (hb.SubsetSelection(TOWN, 1.0, size=2), 3)],
    ids=lambda own: type(own).__name__,
)
def test_outputs_that_are_rows_of_bits_are_listed_where_they_are_few(
    kind: type, part: hb.Mechanism, count: int
) -> None:
    parts = {"town": part, "sex": PARTS["sex"]}
    mechanism = kind(**parts)
    matrix = mechanism.matrix()
    assert matrix.shape == (6, count + 2 if kind is hb.SampleOne else 2 * count)
    given = [own.matrix() for own in parts.values()]
    if kind is hb.Split:
        np.testing.assert_allclose(matrix, np.kron(*given), rtol=1e-12)
    if kind is hb.SampleOne:
        each = [np.kron(given[0], np.ones((2, 1))), np.kron(np.ones((3, 1)), given[1])]
        np.testing.assert_allclose(matrix, np.concatenate(each, axis=1) / 2, rtol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
    codes = mechanism.output_space.encode(mechanism.outputs)
    np.testing.assert_allclose(np.exp(mechanism.log_columns(codes)), matrix, rtol=1e-12)
    counts = 20 * np.arange(1, len(codes) + 1)
    reports = hb.Reports.from_counts(mechanism, counts)
    assert reports.users == counts.sum()
    fit = hb.fit_test(reports)
    assert any(own.name == "shares of outputs" for own in fit.parts)


@pytest.mark.parametrize(
    ("parts", "got"),
    [
        ({"a": hb.OptimizedUnary(hb.Integers(0, 19), 1.0), "b": PARTS["sex"]}, "OptimizedUnary for a, with too many"),
        ({"a": PARTS["sex"], "b": hb.Geometric(AGE, 1.0)}, "Geometric for b, with too many"),
        ({"a": hb.LocalHashing(TOWN, 1.0), "b": PARTS["sex"]}, "LocalHashing for a, with too many"),
        ({name: hb.OptimizedUnary(hb.Integers(0, 6), 1.0) for name in "abc"}, "2,097,152"),
    ],
)
def test_a_matrix_that_is_too_wide_says_by_what(parts: dict[str, hb.Mechanism], got: str) -> None:
    mechanism = hb.Split(parts)
    assert mechanism.outputs is None
    with pytest.raises(hb.MechanismError) as caught:
        mechanism.matrix()
    assert caught.value.got == f"{got} outputs"


def test_fakes_protect_one_attribute_better_than_all() -> None:
    """Arcolezi and others (2021) state log(1 + (e^epsilon - 1) / d): that holds where one attribute differs."""
    four = hb.Categories(list("abcd"))
    mechanism = hb.SampleOneWithFakes({name: hb.RandomizedResponse(four, epsilon=2.0) for name in ("x", "y", "z")})
    assert mechanism.epsilon_of_one == pytest.approx(math.log(1.0 + math.expm1(2.0) / 3.0))
    assert mechanism.epsilon == pytest.approx(2.0)
    matrix, cells = mechanism.matrix(), list(itertools.product(range(4), repeat=3))
    ratios = matrix[:, None, :] / matrix[None, :, :]
    apart = np.array([[sum(a != b for a, b in zip(one, other, strict=True)) for other in cells] for one in cells])
    assert math.log(ratios[apart == 1].max()) == pytest.approx(mechanism.epsilon_of_one)
    assert math.log(ratios.max()) == pytest.approx(mechanism.epsilon)


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_matrix(kind: type, secure: bool) -> None:
    """By chi-square at 1e-6 for each value; a planted fault is rejected."""
    mechanism, count = kind(age=PARTS["age"], sex=PARTS["sex"]), 4_000
    matrix = mechanism.matrix()
    codes = mechanism.output_space.encode(mechanism.outputs)
    keys = {tuple(code): place for place, code in enumerate(codes.tolist())}
    rng = None if secure else 7
    for value in (0, 7):
        drawn = mechanism.privatize([tuple(PEOPLE.labels[value])] * count, rng=rng)
        seen = np.bincount(
            [keys[tuple(code)] for code in mechanism.output_space.encode(drawn).tolist()], minlength=len(keys)
        )
        for row, same in ((matrix[value], True), (matrix[(value + 3) % 10], False)):
            statistic = float(((seen - count * row) ** 2 / (count * row)).sum())
            assert bool(chi2.sf(statistic, len(keys) - 1) > 1e-6) is same


def test_outputs_are_written_and_read_back() -> None:
    bits = hb.Split(town=hb.Rappor(TOWN, epsilon=2.0), place=hb.LocalHashing(TOWN, epsilon=1.0), sex=PARTS["sex"])
    drawn = bits.privatize([("a", "b", "f")] * 50, rng=1)
    texts = [bits.output_space.write(output) for output in drawn]
    again = bits.output_space.encode([bits.output_space.parse(text) for text in texts])
    assert np.array_equal(again, bits.output_space.encode(drawn))
    one = hb.SampleOne(age=PARTS["age"], sex=PARTS["sex"])
    missing = one.privatize([(1, "f")] * 20, rng=1)
    assert sorted({(entry["age"] is None, entry["sex"] is None) for entry in missing}) == [(False, True), (True, False)]
    assert one.output_space.write(np.array([(None, "m")], dtype=object)[0]) == '{"sex": "m"}'


def test_missing_attributes_count_by_what_is_there() -> None:
    both = hb.Split(age=PARTS["age"], sex=PARTS["sex"])
    reports = hb.Reports.from_outputs(both, [(2, "f"), (None, "f"), (2, None)])
    logs = reports.channel.log_dense()
    assert reports.channel.patterns == 3
    ages, sexes = PARTS["age"].matrix()[:, 1], PARTS["sex"].matrix()[:, 0]
    expected = [np.repeat(ages, 2), np.tile(sexes, 5), np.outer(ages, sexes).ravel()]
    assert {tuple(column.round(12)) for column in np.exp(logs).T} == {tuple(own.round(12)) for own in expected}


def test_a_joint_distribution_is_recovered() -> None:
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.full(10, 0.7))
    values = PEOPLE.labels[rng.choice(10, 40_000, p=truth)]
    both = hb.Split(age=hb.RandomizedResponse(AGE, epsilon=3.0), sex=hb.RandomizedResponse(SEX, epsilon=2.0))
    found = hb.estimate(hb.Reports.from_outputs(both, both.privatize(values, rng=4)), method="mle")
    assert found.gap < 1e-6
    assert hb.total_variation(found.probabilities, truth) < 0.03
