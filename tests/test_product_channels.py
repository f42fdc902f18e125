"""Likelihoods of several attributes by their axes: every path, rounding bounds, another solver, restricted values."""

from __future__ import annotations

import importlib
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.channels import RestrictedChannel, kronecker
from hubbub.channels.base import Channel, structured_only
from hubbub.channels.kronecker import MISSING, KroneckerChannel
from hubbub.channels.mixture import MixtureChannel
from hubbub.likelihood import Likelihood
from hubbub.reports import Singles
from hubbub.sampling.simulation_draws import source_of
from hubbub.solvers import newton_systems
from hubbub.solvers.maximum_likelihood import choose_solver

Floats = NDArray[np.float64]
AGE, SEX, TOWN = hb.Integers(1, 6), hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
WIDE = hb.Integers(1, 80)
PARTS: dict[str, hb.Mechanism] = {
    "one value stands out": hb.RandomizedResponse(WIDE, epsilon=2.0),  # so wide that its structure is kept
    "decay": hb.TruncatedGeometric(AGE, epsilon=0.8),
    "decay, all integers": hb.Geometric(AGE, epsilon=0.4),
    "convolution": hb.PlanarGeometric(hb.Grid(3, 2, cell=0.5), 1.5),
    "bits": hb.Rappor(TOWN, epsilon=2.0),
    "hashes": hb.LocalHashing(AGE, epsilon=1.0),
    "subsets": hb.SubsetSelection(AGE, epsilon=1.0),
    "matrix": hb.Matrix(SEX, ["x", "y", "z"], [[0.7, 0.2, 0.1], [0.05, 0.15, 0.8]]),
    "sparse": hb.Cloaking(AGE, ["low", "low", "low", "high", "high", "high"]),
}


def reports_of(mechanism: hb.Mechanism, users: int, seed: int) -> hb.Reports:
    rng = np.random.default_rng(seed)
    labels = mechanism.domain.labels
    shares = rng.dirichlet(np.full(len(labels), 0.5))
    return hb.Reports.from_outputs(
        mechanism, mechanism.privatize(labels[rng.choice(len(labels), users, p=shares)], rng=rng)
    )


def written_out(channel: KroneckerChannel) -> list[list[Fraction]]:
    """Return the stored matrix, cells by patterns, multiplied exactly."""
    tables = []
    for axis in channel.axes:
        entries = axis.factor.dense()
        tables.append([[*map(Fraction, row), Fraction(1)] for row in entries.tolist()])  # the last one: missing
    cells = itertools.product(*(range(side) for side in channel.sides))
    return [
        [
            math.prod(table[at][pick] for table, at, pick in zip(tables, cell, picks, strict=True))
            for picks in channel.picks.tolist()
        ]
        for cell in cells
    ]


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("missing", [False, True])
def test_rounding_stays_within_its_bound(kind: str, missing: bool) -> None:
    """Sums of fractions, for every structure that a factor may have."""
    rng = np.random.default_rng(len(kind))
    both = hb.Split(first=PARTS[kind], second=hb.RandomizedResponse(TOWN, epsilon=1.0))
    labels = both.domain.labels[rng.choice(len(both.domain), 25)]
    sent = [tuple(output) for output in both.privatize(labels, rng=rng).tolist()]
    if missing:
        sent[3:7] = [(None, "a")] * 4
        sent[7:9] = [(first, None) for first, _ in sent[7:9]]
    with structured_only():
        channel = hb.Reports.from_outputs(both, sent).channel
    assert isinstance(channel, KroneckerChannel)
    exact = written_out(channel)
    theta, ratio = rng.dirichlet(np.full(channel.values, 0.3)), rng.exponential(size=channel.patterns)
    fitted, gathered = channel.forward(theta), channel.backward(ratio)
    relative = Fraction(channel.forward_rounding(theta, fitted).relative)
    shares = [Fraction(share) for share in theta.tolist()]
    for i, own in enumerate(fitted.tolist()):
        total = sum(share * row[i] for share, row in zip(shares, exact, strict=True))
        assert abs(Fraction(own) - total) <= relative * total
    assert 0 < relative < Fraction(1, 10**12)
    relative = Fraction(channel.backward_rounding(ratio).relative)
    numbers = [Fraction(number) for number in ratio.tolist()]
    for own, row in zip(gathered.tolist(), exact, strict=True):
        total = sum(number * entry for number, entry in zip(numbers, row, strict=True))
        assert abs(Fraction(own) - total) <= relative * total
    assert 0 < relative < Fraction(1, 10**12)


@pytest.mark.parametrize("memory", [1, 200, 4_000_000])
@pytest.mark.parametrize("sides", [(5, 4), (4, 3, 2)])
def test_rows_that_hardly_repeat_are_multiplied_in_blocks(
    sides: tuple[int, ...], memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RAPPOR on every axis, with some missing; the amount of memory changes nothing."""
    parts = {f"axis{place}": hb.Rappor(hb.Integers(1, side), epsilon=2.0) for place, side in enumerate(sides)}
    mechanism = hb.Split(parts)
    rng = np.random.default_rng(4)
    codes = mechanism.report(rng.integers(0, len(mechanism.domain), 150), source_of(1))
    with structured_only():
        whole = mechanism.encoded_channel(codes)
    assert isinstance(whole, KroneckerChannel)
    picks = np.where(rng.random((150, len(sides))) < 0.1, MISSING, whole.picks)
    picks[:, 0] = whole.picks[:, 0]
    monkeypatch.setattr(kronecker, "CHUNK_ENTRIES", memory)
    monkeypatch.setattr(kronecker._pieces, "__defaults__", (memory,))
    monkeypatch.setattr(kronecker, "GATHERED_ENTRIES", memory)
    channel = KroneckerChannel([axis.factor for axis in whole.axes], picks)
    matrix = channel.dense()
    theta, ratio = rng.random((2, channel.values)), rng.random((3, channel.patterns))
    for batch in (theta, theta[0]):
        np.testing.assert_allclose(channel.forward(batch), batch @ matrix, rtol=1e-12)
    for batch in (ratio, ratio[0]):
        np.testing.assert_allclose(channel.backward(batch), batch @ matrix.T, rtol=1e-12)
    np.testing.assert_allclose(channel.squares(ratio[0]), matrix**2 @ ratio[0], rtol=1e-12)


@pytest.mark.parametrize("impossible", [[], [{"age": [1, 2], "sex": "m"}]])
def test_squares_of_a_mixture_come_from_its_terms(impossible: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    product = hb.Product(age=AGE, sex=SEX, town=TOWN, impossible=impossible)
    mechanism = hb.SampleOneWithFakes(
        product, age=PARTS["decay"], sex=hb.RandomizedResponse(SEX, epsilon=1.0), town=PARTS["bits"]
    )
    monkeypatch.setattr(Channel, "max_written_entries", 0)
    with structured_only():
        channel = reports_of(mechanism, 60, 1).channel
    mixture = channel.whole if isinstance(channel, RestrictedChannel) else channel
    assert isinstance(mixture, MixtureChannel)
    weights = np.random.default_rng(2).random(channel.patterns)
    matrix = channel.dense()
    monkeypatch.setattr(MixtureChannel, "rows", None)
    np.testing.assert_allclose(channel.squares(weights), matrix**2 @ weights, rtol=1e-12)


@pytest.mark.parametrize("kind", [hb.Split, hb.SampleOne, hb.SampleOneWithFakes])
def test_no_patterns_are_no_special_case(kind: type) -> None:
    mechanism = kind(age=PARTS["decay"], town=PARTS["bits"])
    codes = mechanism.report(np.arange(3), source_of(1))
    for among in (None, np.array([0, 4])):
        with structured_only():
            none = mechanism.encoded_channel(codes[:0], among)
        assert none.forward(np.full(none.values, 1 / none.values)).shape == (0,)
        assert none.backward(np.zeros(0)).tolist() == [0.0] * none.values


def mixed(kind: str) -> hb.Reports:
    """Return small reports: one way to report, two of them, missing attributes, impossible combinations."""
    parts = {"age": PARTS["decay"], "town": hb.RandomizedResponse(TOWN, epsilon=1.5)}
    if kind == "split":
        return reports_of(hb.Split(parts), 400, 1)
    if kind == "sample one":
        return reports_of(hb.SampleOne(parts), 400, 2)
    if kind == "sample one with fakes":
        return reports_of(hb.SampleOneWithFakes(parts), 400, 3)
    if kind == "two ways, bits and missing attributes":
        other = hb.Split(age=hb.Geometric(AGE, epsilon=0.4), town=hb.Rappor(TOWN, epsilon=2.0))
        sent = [tuple(entry) for entry in other.privatize([(2, "a"), (5, "c"), (6, "b")] * 40, rng=4).tolist()]
        sent = [(None if place % 5 == 0 else age, bits) for place, (age, bits) in enumerate(sent)]
        return hb.Reports.from_outputs(other, sent) + reports_of(hb.SampleOne(parts), 200, 5)
    product = hb.Product(age=AGE, town=TOWN, impossible=[{"age": [1, 2], "town": ["b", "c"]}, {"age": 6, "town": "a"}])
    age, town = parts["age"], parts["town"]
    fakes = hb.SampleOneWithFakes(product, age=age, town=town)
    return reports_of(hb.Split(product, age=age, town=town), 300, 6) + reports_of(fakes, 300, 7)


# Their warnings are not ours; that an answer may be inaccurate is for the comparison to say.
@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:Solution may be inaccurate")
@pytest.mark.parametrize(
    "kind",
    [
        "split",
        "sample one",
        "sample one with fakes",
        "two ways, bits and missing attributes",
        "two ways, impossible combinations",
    ],
)
def test_a_conic_solver_finds_the_same_maximum(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the structure of the axes and conjugate gradients, as where matrices would be too large."""
    cp: Any = importlib.import_module("cvxpy")  # slow to load
    dense = mixed(kind)
    matrix, weights = np.exp(dense.channel.log_dense()), dense.weights / dense.users
    theta = cp.Variable(len(dense.domain), nonneg=True)
    program = cp.Problem(cp.Maximize(weights @ cp.log(matrix.T @ theta)), [cp.sum(theta) == 1])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    theirs = np.maximum(np.asarray(theta.value, dtype=np.float64), 0.0)
    theirs /= theirs.sum()
    monkeypatch.setattr(Channel, "max_written_entries", 0)
    monkeypatch.setattr(newton_systems, "MAX_FACTOR_WORK", 0.0)
    with structured_only():
        reports = mixed(kind)
        found = hb.estimate(reports, method="mle", solver="interior point")
        assert found.settings["linear algebra"] == "conjugate gradients"
        assert found.gap <= 1e-9
        few = hb.estimate(reports, method="mle", solver="support generation")
    best = hb.log_likelihood(dense, theirs)
    assert found.log_likelihood == pytest.approx(best, abs=1e-7 * dense.users)
    assert few.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-8 * dense.users)


def test_large_products_are_solved_on_all_values() -> None:
    """Support generation takes several times as long (benchmarks/several_attributes.py compares both)."""
    wide = hb.Integers(1, 75)
    both = hb.Split(one=hb.RandomizedResponse(wide, epsilon=4.0), other=hb.RandomizedResponse(wide, epsilon=4.0))
    likelihood = Likelihood.of(reports_of(both, 5_000, 1))
    assert isinstance(likelihood.channel, KroneckerChannel)
    assert choose_solver(likelihood) == "interior point"


# -- restricted values, and trust -------------------------------------------------------------------------------------


@pytest.mark.parametrize("structured", [False, True])
def test_kept_values_are_what_is_left_of_impossible_combinations(structured: bool) -> None:
    parts = {"age": PARTS["decay"], "town": hb.RandomizedResponse(TOWN, epsilon=1.5)}
    rules = [{"age": [1, 2], "town": "b"}, {"age": 6, "town": ["a", "b"]}]
    product = hb.Product(age=AGE, town=TOWN, impossible=rules)
    sent = reports_of(hb.Split(product, **parts), 500, 8)
    (block,) = sent.blocks
    assert isinstance(block, Singles)
    free = hb.Split(parts)
    outputs = free.output_space.decode(np.repeat(block.codes, block.counts, axis=0))
    kept = [tuple(label) for label in product.labels.tolist()]
    whole = hb.Reports.from_outputs(free, outputs)
    if structured:
        with structured_only():
            few = whole.restrict(kept)
            found = hb.estimate(few, method="mle")
    else:
        few = whole.restrict(kept)
        found = hb.estimate(few, method="mle")
    np.testing.assert_allclose(found.probabilities, hb.estimate(sent, method="mle").probabilities, atol=1e-7)
    assert list(found.to_frame().columns) == ["age", "town", "probability"]
    fewer = few.restrict(kept[:3])
    assert fewer.domain.labels.tolist() == kept[:3]
    with pytest.raises(hb.DomainError, match="not in the domain") as caught:
        few.restrict([(1, "b")])
    assert caught.value.got == "(1, 'b')"


@pytest.mark.parametrize("kind", [hb.SampleOne, hb.SampleOneWithFakes])
def test_one_attribute_at_a_time_leaves_the_joint_distribution_open(kind: type) -> None:
    """Marginals fix 1 + (6 - 1) + (3 - 1) of 18 shares; with all shares above 0, the rest is free."""
    mechanism = kind(age=hb.RandomizedResponse(AGE, epsilon=3.0), town=hb.RandomizedResponse(TOWN, epsilon=3.0))
    labels = mechanism.domain.labels
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(np.tile(labels, 300), rng=1))
    found = hb.identify(reports)
    assert not found.identifiable
    assert not found.unique
    assert found.dimension == 18 - 8
    both = hb.Split(age=hb.RandomizedResponse(AGE, epsilon=3.0), town=hb.RandomizedResponse(TOWN, epsilon=3.0))
    told = hb.identify(hb.Reports.from_outputs(both, both.privatize(np.tile(labels, 100), rng=2)))
    assert told.identifiable
    assert told.unique


def test_inversion_says_why_it_does_not_apply() -> None:
    with pytest.raises(hb.EstimateError, match="cannot tell all values apart") as caught:
        hb.estimate(mixed("sample one"), method="inv-n")
    assert caught.value.got == "rank 8 for 18 values, and outputs of 9 kinds"
