"""Which distributions are maximum likelihood estimators: the paper's single input, and its uniqueness results.

Each test cites the label of the statement it checks. Where the paper errs, the page of errata says what is right.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import entr, rel_entr, xlogy

import hubbub as hb
from hubbub.likelihood import Likelihood
from strategies import examples

Floats = NDArray[np.float64]
Table = tuple[tuple[Fraction, ...], ...]
Family = Callable[[hb.Integers, float], hb.Mechanism]

drawn = examples(60)


def floats(rows: Table) -> Floats:
    return np.array(rows, dtype=np.float64)


def matrix(rows: Table) -> hb.Matrix:
    return hb.Matrix(hb.Integers(1, len(rows)), list(range(1, len(rows[0]) + 1)), floats(rows))


def gradient(reports: hb.Reports, theta: Floats) -> Floats:
    """Return D: at a maximum it is 1 wherever theta has mass and at most 1 elsewhere."""
    return Likelihood.of(reports).at(theta).gradient


def separates(reports: hb.Reports) -> bool:
    """Say whether v G = 0 and v 1 = 0 together imply v = 0 (the condition of thm:mlunique)."""
    g = np.exp(reports.channel.log_dense())
    scaled = g / g.max(axis=0)  # a column's scale does not matter, but rounding in the rank does
    return bool(np.linalg.matrix_rank(np.column_stack([scaled, np.ones(len(g))])) == len(g))


# -- a single input (sec:single_inp) -----------------------------------------------------------------------


@st.composite
def stochastic(draw: st.DrawFn, values: int, outputs: int) -> Table:
    """Rows with few distinct entries, not symmetric: ties between values do occur."""
    rows = st.lists(st.integers(1, 3), min_size=outputs, max_size=outputs)
    weights = draw(st.lists(rows, min_size=values, max_size=values))
    return tuple(tuple(Fraction(weight, sum(row)) for weight in row) for row in weights)


@drawn
@given(st.data())
def test_single_input(data: st.DataObject) -> None:
    """thm:single_inp: an MLE is any distribution on the values that maximise P(z | x), and nothing else."""
    values = data.draw(st.integers(2, 5))
    tables = data.draw(st.lists(stochastic(values, 3), min_size=1, max_size=3))
    sent = data.draw(st.lists(st.tuples(st.sampled_from(tables), st.integers(1, 3)), min_size=1, max_size=6))
    reports = hb.Reports.from_users([[(matrix(rows), output) for rows, output in sent]])
    chances = [math.prod(rows[x][output - 1] for rows, output in sent) for x in range(values)]
    best = np.array([chance == max(chances) for chance in chances])

    estimate = hb.estimate(reports, "mle")
    assert estimate.converged
    assert estimate.log_likelihood == pytest.approx(math.log(max(chances)), abs=1e-9)
    assert estimate.probabilities[best].sum() == pytest.approx(1)
    assert (estimate.probabilities[~best] == 0).all()
    assert ("not the only maximum" in estimate.status) == (best.sum() > 1)
    # The whole set, from inside and from outside:
    weights = np.arange(1.0, values + 1)
    inside = np.where(best, weights, 0.0) / weights[best].sum()
    assert hb.optimality_gap(reports, inside) <= 1e-12
    if not best.all():
        outside = 0.9 * inside + 0.1 * ~best / (~best).sum()
        assert hb.optimality_gap(reports, outside) > 1e-3


def test_single_input_by_mechanisms_of_every_kind() -> None:
    """sec:single_inp_arb_mech: g_x1 is the product over the mechanisms, whatever they are."""
    domain = hb.Integers(0, 5)
    response, noise = hb.RandomizedResponse(domain, 0.8), hb.TruncatedGeometric(domain, 0.4)
    region = hb.Cloaking(domain, ["low"] * 3 + ["high"] * 3)
    bits = np.array([0, 1, 0, 1, 0, 0], dtype=np.uint8)
    reports = hb.Reports.from_users([[(response, 4), (noise, 2), (region, "high"), (hb.Rappor(domain, 1.2), bits)]])
    keep = 1 / (1 + math.exp(-0.6))
    chances = [
        (math.exp(0.8) if x == 4 else 1.0)
        * math.exp(-0.4 * abs(2 - x))
        * (x >= 3)
        * math.prod(keep if bit == (x == j) else 1 - keep for j, bit in enumerate(bits))
        for x in range(6)
    ]
    assert hb.estimate(reports, "mle").probabilities.tolist() == [0, 0, 0, 1, 0, 0]
    assert int(np.argmax(chances)) == 3
    logs = reports.channel.log_dense()[:, 0]
    assert np.exp(logs[3:] - logs[3]) == pytest.approx(np.array(chances[3:]) / chances[3])
    assert (logs[:3] == -math.inf).all()


@drawn
@given(st.data())
def test_the_most_likely_values_are_nearest_in_divergence(data: st.DataObject) -> None:
    """eq:one, eq:ml-kl, and the erratum: D_KL(q || a_x) = -H(q) - sum q log a, with a minus."""
    values = data.draw(st.integers(2, 5))
    rows = data.draw(stochastic(values, 4))
    outputs = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=12))
    shares = np.bincount(outputs, minlength=5)[1:] / len(outputs)
    table_ = floats(rows)
    divergence = rel_entr(shares, table_).sum(axis=1)
    cross = -xlogy(shares, table_).sum(axis=1)
    entropy = float(entr(shares).sum())
    assert divergence == pytest.approx(-entropy + cross, abs=1e-12)
    assert divergence == pytest.approx([hb.kl_divergence(shares, row) for row in table_], abs=1e-12)
    if len(set(outputs)) > 1:
        assert np.abs(divergence - (entropy + cross)).min() > 0.1  # the printed sign is off by 2 H(q)
    estimate = hb.estimate(hb.Reports.from_users([[(matrix(rows), output) for output in outputs]]), "mle")
    assert ((estimate.probabilities > 0) == (divergence < divergence.min() + 1e-9)).all()


def test_two_thousand_outputs_do_not_underflow() -> None:
    """thm:single_inp for a long z: the product of 2,000 probabilities, in logarithms."""
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 30), 0.3)
    outputs = mechanism.privatize(np.full(2000, 12), rng=5)
    reports = hb.Reports.from_users([[(mechanism, int(z)) for z in outputs]])
    logs = np.log(mechanism.matrix())[:, outputs].sum(axis=1)
    estimate = hb.estimate(reports, "mle")
    assert logs.max() < -2000  # exp of this is 0 in floating point
    assert estimate.log_likelihood == pytest.approx(logs.max(), rel=1e-12)
    assert estimate.probabilities[12] == 1  # sec:single_inp: as k grows, the MLE is the real input


@pytest.mark.parametrize(("epsilon", "times"), [(0.7, 10), (0.001, 1000), (0.3, 10_000)])
def test_ties_are_ties_however_many_the_outputs(epsilon: float, times: int) -> None:
    """thm:single_inp: outputs 4 and 6, equally often, are as likely from 4, from 5 and from 6."""
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 10), epsilon)
    estimate = hb.estimate(hb.Reports.from_users([[(mechanism, 4), (mechanism, 6)] * times]), "mle")
    assert np.flatnonzero(estimate.probabilities).tolist() == [4, 5, 6]
    assert "not the only maximum" in estimate.status


def test_equal_rows_are_never_told_apart() -> None:
    """The remark after eq:conv_rate: if the real input's row is not unique, neither is the MLE."""
    repeated, apart = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5))
    mechanism = matrix((repeated, apart, repeated))
    outputs = mechanism.privatize([1] * 500, rng=3)
    estimate = hb.estimate(hb.Reports.from_users([[(mechanism, int(z)) for z in outputs]]), "mle")
    assert estimate.probabilities == pytest.approx([0.5, 0, 0.5])
    assert "not the only maximum" in estimate.status


def test_the_empirical_distribution_converges_exponentially() -> None:
    """eq:conv_rate, by summing over all vectors of length k; true in bits, as in the book cited, and in nats."""
    law = np.array([0.7, 0.2, 0.1])
    for length, limit in itertools.product((10, 30), (0.5, 1.0, 2.0)):
        tail = {"nats": 0.0, "bits": 0.0}
        for one, two in itertools.product(range(length + 1), repeat=2):
            if one + two <= length:
                counts = np.array([one, two, length - one - two])
                ways = math.comb(length, one) * math.comb(length - one, two)
                divergence = hb.kl_divergence(counts / length, law)
                tail["nats"] += (divergence > limit) * ways * float(np.prod(law**counts))
                tail["bits"] += (divergence > limit * math.log(2)) * ways * float(np.prod(law**counts))
        bound = (1 + length) ** 3 * 2 ** (-length * limit)
        assert tail["nats"] <= tail["bits"] <= bound


# -- uniqueness (sec:unique) -------------------------------------------------------------------------------

FAMILIES: list[Family] = [hb.RandomizedResponse, hb.Geometric, hb.TruncatedGeometric]
GAPPED = [[3], [0, 19], [4, 5, 6], [0, 1, 5, 9, 19], [2, 3, 11, 12, 13, 17], list(range(0, 20, 3))]
LINE = hb.Integers(0, 19)


def uneven(observed: Sequence[int]) -> dict[int, int]:
    """Give each observed value a number of users, no two alike."""
    return {value: 5 + 7 * place for place, value in enumerate(observed)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("observed", GAPPED)
def test_unique_on_the_observed_values(family: Family, observed: list[int]) -> None:
    """thm:mlunique-krr, thm:mlunique-geometric, thm:mlunique-tgeometric, with gaps between the observed values."""
    for epsilon in (0.1, 1.0, 3.0):
        reports = hb.Reports.from_counts(family(LINE, epsilon), uneven(observed)).restrict(observed)
        g = np.exp(reports.channel.log_dense())
        assert g.shape == (len(observed), len(observed))
        assert np.linalg.matrix_rank(g / g.max(axis=0)) == len(observed)
        assert separates(reports)
    # With epsilon 3 the maximum is well determined: starts that differ must meet.
    first, second = (
        hb.estimate(reports, "mle", start=np.array(weights) / sum(weights), tol=1e-10)
        for weights in (range(1, len(observed) + 1), range(len(observed), 0, -1))
    )
    assert first.probabilities == pytest.approx(second.probabilities, abs=1e-3)


def test_columns_of_the_proofs() -> None:
    """The proofs of the corollaries: each combination of columns leaves one entry, hence v_i = 0 one by one."""
    alpha, places = Fraction(1, 2), [0, 1, 5, 9]
    columns = [[alpha ** abs(x - z) for x in places] for z in places]
    for place in range(3):  # thm:mlunique-geometric
        step = alpha ** (places[place + 1] - places[place])
        left = [a - step * b for a, b in zip(columns[place], columns[place + 1], strict=True)]
        assert left[place] == 1 - step**2
        assert left[place + 1 :] == [0] * (3 - place)
    high, low = Fraction(2, 5), Fraction(1, 5)  # thm:mlunique-krr: k = 4, exp(epsilon) = 2
    assert [entry - low for entry in (low, high, low, low)] == [0, high - low, 0, 0]


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(2), Fraction(9)])
def test_the_constants_of_the_krr_proof(k: int, ratio: Fraction) -> None:
    """Erratum to the proof of thm:mlunique-krr: the denominator is k - 1 + e^epsilon, not 1 - k + e^epsilon."""
    assert ratio / (k - 1 + ratio) + (k - 1) / (k - 1 + ratio) == 1
    printed = 1 - k + ratio
    assert printed <= 0 or (ratio + k - 1) / printed > 1  # negative, undefined, or rows that sum to more than 1


def test_uniqueness_condition_is_sufficient_only() -> None:
    """thm:mlunique: where the condition fails the MLE may or may not be unique; the data decide."""
    example = matrix(((Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)),) + ((Fraction(1, 3),) * 3,) * 2)
    reports = hb.Reports.from_outputs(example, [1, 1, 1, 2])
    assert not separates(reports)
    assert (gradient(reports, np.array([1.0, 0.0, 0.0]))[1:] < 1).all()  # all mass on 1, and nowhere else
    assert hb.optimality_gap(reports, [1, 0, 0]) <= 1e-12
    other = hb.Reports.from_outputs(example, [3])
    assert hb.optimality_gap(other, [0, 1, 0]) <= 1e-12
    assert hb.optimality_gap(other, [0, 0, 1]) <= 1e-12


def mixed_krr(counts: Mapping[float, Mapping[int, int]]) -> hb.Reports:
    """Build reports of several k-RR mechanisms over 0..9, one output for each user."""
    domain = hb.Integers(0, 9)
    parts = [hb.Reports.from_counts(hb.RandomizedResponse(domain, epsilon), each) for epsilon, each in counts.items()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


@pytest.mark.parametrize(
    "counts",
    [
        {0.3: {1: 40, 4: 55, 8: 31}},
        {2.0: {0: 7, 3: 90, 4: 12, 9: 30}},
        {0.5: {1: 40, 4: 55}, 1.5: {4: 20, 7: 33}, 3.0: {2: 5, 7: 1}},
    ],
)
def test_krr_gives_unobserved_values_nothing(counts: dict[float, dict[int, int]]) -> None:
    """The source's comments on thm:mlunique-krr: unique on the whole domain, with several k-RR mechanisms too."""
    reports = mixed_krr(counts)
    observed = sorted({value for each in counts.values() for value in each})
    hidden = np.setdiff1d(np.arange(10), observed)
    estimate = hb.estimate(reports, "mle", tol=1e-11)
    assert estimate.converged
    assert estimate.probabilities[hidden].max() < 1e-6
    assert gradient(reports, estimate.probabilities)[hidden].max() < 1 - 1e-3
    assert separates(reports.restrict(observed))
    assert not separates(reports)  # the whole domain is decided by D < 1, not by the rank


def test_krr_may_start_from_the_observed_shares() -> None:
    """Remark on sec:mul_inp_single_mech_fixed: for k-RR a start without the unobserved values loses nothing."""
    reports = mixed_krr({1.0: {1: 40, 4: 55, 8: 31}})
    inside = hb.estimate(reports.restrict([1, 4, 8]), "mle", tol=1e-11)
    whole = np.zeros(10)
    whole[[1, 4, 8]] = inside.probabilities
    assert hb.optimality_gap(reports, whole) <= 1e-10


@drawn
@given(
    family=st.sampled_from([hb.Geometric, hb.TruncatedGeometric]),
    epsilons=st.lists(st.sampled_from([0.2, 0.7, 1.5]), min_size=1, max_size=2, unique=True),
    counts=st.dictionaries(st.integers(2, 13), st.integers(1, 30), min_size=2, max_size=5),
)
def test_geometric_maximum_lies_on_the_observed_values(
    family: Family, epsilons: list[float], counts: dict[int, int]
) -> None:
    """The source's comments on thm:mlunique-geometric: within the range of the outputs; in fact on the outputs."""
    # Between neighbouring outputs D is a sum of terms e^(+-epsilon x), hence strictly convex, and 1 at most at
    # both ends; outside the range it falls. So D < 1 at every value that was not observed.
    domain = hb.Integers(0, 15)
    reports = hb.Reports.from_counts(family(domain, epsilons[0]), counts)
    for epsilon in epsilons[1:]:
        reports = reports + hb.Reports.from_counts(family(domain, epsilon), counts)
    estimate = hb.estimate(reports, "mle", tol=1e-8, max_iter=3000)
    outside = (domain.labels < min(counts)) | (domain.labels > max(counts))
    hidden = ~np.isin(domain.labels, list(counts))
    slopes = gradient(reports, estimate.probabilities)
    assert slopes[outside].max() < 1
    assert slopes[hidden].max() < 1
    assert estimate.probabilities[outside].sum() < 1e-4
    assert estimate.probabilities[hidden].sum() < 1e-3
    # Hence the maximum on the observed values is a maximum on the whole domain.
    inside = hb.estimate(reports.restrict(sorted(counts)), "mle", tol=1e-8, max_iter=3000)
    assert inside.log_likelihood == pytest.approx(estimate.log_likelihood, abs=1e-4)


def test_geometric_outputs_beyond_the_domain_count_for_its_ends() -> None:
    """eq:geometric: outputs on all integers; those beyond the domain tell its values apart as its end does."""
    mechanism = hb.Geometric(hb.Integers(0, 15), 0.5)
    far = hb.Reports.from_counts(mechanism, {-40: 3, 6: 8, 90: 2})
    near = hb.Reports.from_counts(mechanism, {0: 3, 6: 8, 15: 2})
    ends = [hb.estimate(reports, "mle").probabilities for reports in (far, near)]
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)
    assert ends[0][[0, 6, 15]].sum() == pytest.approx(1, abs=1e-6)
