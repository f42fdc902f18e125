"""Several attributes against the literature: inversion of SPL, SMP and RS+FD, RS+FD's epsilon, RAPPOR's association."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, norm

import hubbub as hb
from benchmark_modules import benchmark
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.solvers import invert

Floats = NDArray[np.float64]
INVERSION: Any = benchmark("attribute_inversion")
REFERENCES: Any = benchmark("attribute_references")
ASSOCIATION: Any = benchmark("rappor_association")

SIDES, EPSILON = (4, 2, 3), 1.2
JOINT = np.random.default_rng(2).dirichlet(np.full(24, 0.7)).reshape(SIDES)
INNER = INVERSION.amplified(EPSILON, len(SIDES))
LEVEL = 1e-6  # of each test as a whole


def reporting(way: Any, part: Any, epsilon: float) -> SeveralAttributes:
    domains = {f"a{place}": hb.Integers(1, side) for place, side in enumerate(SIDES)}
    mechanism: SeveralAttributes = way({name: part(domain, epsilon) for name, domain in domains.items()})
    return mechanism


def inversions(name: str) -> list[Any]:
    """Return the literature's inversion of each attribute."""
    grr, oue, make = INVERSION.Oracle.grr, INVERSION.Oracle.oue, INVERSION.Inversion
    places, count = range(len(SIDES)), len(SIDES)
    return {
        "SPL[GRR]": [make(grr(EPSILON / count, SIDES[place])) for place in places],
        "SMP[GRR]": [make(grr(EPSILON, SIDES[place])) for place in places],
        "SMP[OUE]": [make(oue(EPSILON)) for _ in places],
        "RS+FD[GRR]": [INVERSION.rs_fd_grr(EPSILON, SIDES, place) for place in places],
        "RS+FD[OUE-r]": [INVERSION.rs_fd_ue_r(EPSILON, SIDES, place) for place in places],
    }[name]


MECHANISMS = {
    "SPL[GRR]": reporting(hb.Split, hb.RandomizedResponse, EPSILON / len(SIDES)),
    "SMP[GRR]": reporting(hb.SampleOne, hb.RandomizedResponse, EPSILON),
    "SMP[OUE]": reporting(hb.SampleOne, hb.OptimizedUnary, EPSILON),
    "RS+FD[GRR]": reporting(hb.SampleOneWithFakes, hb.RandomizedResponse, INNER),
    "RS+FD[OUE-r]": reporting(hb.SampleOneWithFakes, hb.OptimizedUnary, INNER),
}


def every_output(mechanism: SeveralAttributes) -> list[tuple[Any, ...]]:
    """Return all outputs, also of unary parts, which hubbub does not list."""
    own = [list(part.outputs) for part in mechanism.parts.values() if part.outputs is not None]
    if not isinstance(mechanism, hb.SampleOne):
        return list(itertools.product(*own))
    return [
        tuple(entry if place == other else None for other in range(len(own)))
        for place, entries in enumerate(own)
        for entry in entries
    ]


def supports(outputs: list[tuple[Any, ...]], place: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return for each output which values of an attribute it supports, and whether it has that attribute."""
    size = SIDES[place]
    table, has = np.zeros((len(outputs), size)), np.zeros(len(outputs), dtype=bool)
    for row, output in enumerate(outputs):
        entry = output[place]
        if entry is not None:
            has[row], bits = True, isinstance(entry, np.ndarray)
            table[row] = np.unpackbits(entry, count=size) if bits else np.arange(1, size + 1) == entry
    return table, has


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_literature_inverts_our_channels_exactly(name: str) -> None:
    """The expected number of supporting reports, by our matrix, gives back the truth: formula and channel agree."""
    outputs = every_output(MECHANISMS[name])
    sent = JOINT.ravel() @ np.exp(MECHANISMS[name].channel(outputs).log_dense())
    assert sent.sum() == pytest.approx(1.0, abs=1e-12)
    for place, (inversion, truth) in enumerate(zip(inversions(name), REFERENCES.marginals(JOINT), strict=True)):
        table, has = supports(outputs, place)
        shares = inversion.shares(sent @ table, float(sent[has].sum()))
        assert np.abs(shares - truth).max() < 1e-12
        assert np.abs(inversion.supported(truth) - sent @ table / sent[has].sum()).max() < 1e-12


def test_fakes_with_any_distribution_are_inverted_too() -> None:
    """RS+RFD: fakes follow a prior that is not uniform, and not the truth."""
    parts = {f"a{place}": hb.RandomizedResponse(hb.Integers(1, side), INNER) for place, side in enumerate(SIDES)}
    priors = {name: np.arange(1.0, 1.0 + len(part.domain)) for name, part in parts.items()}
    fakes = {name: prior / prior.sum() for name, prior in priors.items()}
    mechanism = hb.SampleOneWithFakes(parts, fakes=fakes)
    sent = JOINT.ravel() @ mechanism.matrix()
    outputs = every_output(mechanism)
    for place, truth in enumerate(REFERENCES.marginals(JOINT)):
        oracle = INVERSION.Oracle.grr(INNER, SIDES[place])
        inversion = INVERSION.Inversion(oracle, len(SIDES), oracle.of_fakes(fakes[f"a{place}"]))
        assert np.abs(inversion.shares(sent @ supports(outputs, place)[0], 1.0) - truth).max() < 1e-12


def drawn(name: str, runs: int, users: int, seed: int) -> Floats:
    """Return the inverted shares of all attributes, one line for each simulated study."""
    rng, mechanism = np.random.default_rng(seed), MECHANISMS[name]
    values = rng.choice(JOINT.size, runs * users, p=JOINT.ravel())
    sent = mechanism.privatize(mechanism.domain.labels[values], rng=rng)
    found = []
    for place, inversion in enumerate(inversions(name)):
        column, size = sent[f"a{place}"], SIDES[place]
        bits = (
            np.unpackbits(column, axis=1, count=size) if column.ndim == 2 else column[:, None] == np.arange(1, size + 1)
        )
        found.append(inversion.shares(bits.reshape(runs, users, size).sum(axis=1), users))
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("name", ["SPL[GRR]", "RS+FD[GRR]", "RS+FD[OUE-r]"])
def test_inverted_shares_vary_as_the_formula_says(name: str) -> None:
    """Means and variances over 300 studies by our simulator, against the formula: a level of 1e-6 for all shares."""
    runs, users = 300, 400
    shares = drawn(name, runs, users, seed=3)
    truth = np.concatenate(REFERENCES.marginals(JOINT))
    pairs = zip(inversions(name), REFERENCES.marginals(JOINT), strict=True)
    variances = np.concatenate([inversion.variances(own, users) for inversion, own in pairs])
    each = LEVEL / (2 * truth.size)
    scores = (shares.mean(axis=0) - truth) / np.sqrt(variances / runs)
    assert np.abs(scores).max() < norm.isf(each / 2)

    def refused(claimed: Floats) -> bool:
        scaled = ((shares - truth) ** 2).sum(axis=0) / claimed
        return bool((scaled < chi2.ppf(each / 2, runs)).any() or (scaled > chi2.isf(each / 2, runs)).any())

    assert not refused(variances)
    assert refused(variances * 2.0)  # what would be claimed if the level let everything pass
    assert refused(variances / 2.0)


@pytest.mark.parametrize("name", ["SPL[GRR]", "SMP[GRR]", "RS+FD[GRR]"])
def test_the_likelihoods_marginals_agree_with_inversion(name: str) -> None:
    """Both are close to the truth, as far as inversion's variance allows: a level of 1e-6."""
    users = 60_000
    sent = REFERENCES.Reported.drawn(MECHANISMS[name], JOINT, users, np.random.default_rng(8))
    estimate = hb.estimate(sent.reports, method="mle")
    marginals = REFERENCES.marginals(estimate.probabilities.reshape(SIDES))
    most = norm.isf(LEVEL / (4 * sum(SIDES)))
    for place, (inversion, truth) in enumerate(zip(inversions(name), REFERENCES.marginals(JOINT), strict=True)):
        deviations = np.sqrt(inversion.variances(truth, sent.users[place]))
        inverted = inversion.shares(sent.supporting[place], sent.users[place])
        assert (np.abs(inverted - truth) < most * deviations).all()
        assert (np.abs(marginals[place] - truth) < most * deviations).all()
        assert np.abs(estimate.marginal(f"a{place}").probabilities - marginals[place]).max() < 1e-12


def test_split_reports_invert_to_the_literatures_marginals() -> None:
    """Summing the inverse of a Kronecker matrix over the other attributes inverts the attribute's own matrix."""
    sent = REFERENCES.Reported.drawn(MECHANISMS["SPL[GRR]"], JOINT, 2_000, np.random.default_rng(4))
    shares = REFERENCES.marginals(invert(sent.reports).reshape(SIDES))
    for own, theirs in zip(shares, sent.inverted(inversions("SPL[GRR]")), strict=True):
        assert np.abs(own - theirs).max() < 1e-12


def test_what_cannot_be_inverted_says_why() -> None:
    split, fakes = MECHANISMS["SPL[GRR]"], MECHANISMS["RS+FD[GRR]"]
    some = hb.Reports.from_outputs(split, [(1, None, 3), (None, 2, 3)])
    with pytest.raises(hb.EstimateError, match="cannot tell all values apart"):
        hb.estimate(some, method="inv-n")
    everyone = hb.Reports.from_counts(fakes, np.ones(24, dtype=int))
    with pytest.raises(hb.EstimateError, match="singular") as caught:
        hb.estimate(everyone, method="inv-p")
    assert caught.value.got == "rank 7 for 24 values"  # 1 + 3 + 1 + 2: the marginals alone can be told


def test_sampled_attributes_have_the_maxima_that_each_has_by_itself() -> None:
    """With SMP the likelihood is a product over attributes: each marginal is that of its own reports."""
    sent = REFERENCES.Reported.drawn(MECHANISMS["SMP[GRR]"], JOINT, 3_000, np.random.default_rng(6))
    joint = hb.estimate(sent.reports, method="mle", tol=1e-12)
    for name, part in MECHANISMS["SMP[GRR]"].parts.items():
        place = int(name[1:])
        alone = hb.Reports.from_counts(part, sent.supporting[place].astype(int))
        apart = hb.estimate(alone, method="mle").probabilities
        assert np.abs(joint.marginal(name).probabilities - apart).max() < 1e-5


def test_shares_are_made_distributions() -> None:
    shares = np.array([0.9, -0.2, 0.3])
    assert INVERSION.clipped(shares) == pytest.approx([0.75, 0.0, 0.25])
    assert INVERSION.projected(shares) == pytest.approx([0.8, 0.0, 0.2])  # subtract 0.1 from those that stay above 0


# -- RS+FD's epsilon ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sides", [(3, 3), (2, 6), (2, 2, 2), (2, 3, 4)])
def test_the_exact_epsilon_of_fakes_is_that_of_the_full_matrix(sides: tuple[int, ...]) -> None:
    """Stated is 1: it holds for two inputs that differ in one attribute if attributes are alike, never for any two."""
    inner = INVERSION.amplified(1.0, len(sides))
    ratios = {"GRR": INVERSION.rs_fd_grr_ratios(1.0, sides), "OUE": INVERSION.rs_fd_oue_ratios(1.0, sides, "r")}
    for kind, part in (("GRR", hb.RandomizedResponse), ("OUE", hb.OptimizedUnary)):
        domains = {f"a{place}": hb.Integers(1, side) for place, side in enumerate(sides)}
        parts = {name: part(domain, inner) for name, domain in domains.items()}
        mechanism = hb.SampleOneWithFakes(parts)
        assert (mechanism.epsilon, mechanism.epsilon_of_one) == pytest.approx(ratios[kind], abs=1e-12)
        assert ratios[kind][0] == pytest.approx(inner, abs=1e-12)
    alike = len(set(sides)) == 1
    assert (abs(ratios["GRR"][1] - 1.0) < 1e-12) == alike
    assert ratios["GRR"][1] > 1.0 - 1e-12
    assert (abs(ratios["OUE"][1] - 1.0) < 1e-12) == (set(sides) == {2})
    assert INVERSION.rs_fd_oue_ratios(1.0, sides, "z") == pytest.approx((inner, 1.0), abs=1e-12)


# -- RAPPOR's association ----------------------------------------------------------------------------------------------


def bloom(bits: int = 5, own: float = 0.8, other: float = 0.3) -> Any:
    return ASSOCIATION.BloomRappor(hb.Integers(1, 4), ((0, 1), (1, 3), (4,), (0, 2)), bits, own, other)


def test_bloom_filters_are_a_mechanism_of_their_own() -> None:
    """Every bit is independent: P(row | value), bit by bit; the audit's exact ratio is the stated epsilon."""
    mechanism = bloom()
    rows = np.unpackbits(mechanism.outputs, axis=1, count=5)
    for place, own in enumerate(mechanism.filters):
        chances = np.where(np.isin(np.arange(5), own), 0.8, 0.3)
        expected = np.prod(np.where(rows == 1, chances, 1.0 - chances), axis=1)
        assert mechanism.matrix()[place] == pytest.approx(expected, rel=1e-12)
    matrix = mechanism.matrix()
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    assert mechanism.epsilon == pytest.approx(math.log((matrix.max(axis=0) / matrix.min(axis=0)).max()))


def test_one_hot_filters_are_basic_rappor() -> None:
    rappor = hb.Rappor(hb.Integers(1, 4), epsilon=2.0)
    kept = math.e / (1.0 + math.e)
    same = ASSOCIATION.BloomRappor(rappor.domain, ((0,), (1,), (2,), (3,)), 4, kept, 1.0 - kept)
    assert same.matrix() == pytest.approx(rappor.matrix(), rel=1e-12)
    assert same.epsilon == pytest.approx(2.0)


def test_cohorts_have_the_maximum_that_a_plain_em_climbs_to() -> None:
    """The update of google/rappor's association analysis, report by report, written out anew."""
    setting = ASSOCIATION.Setting("few", 8, 2, 3, 0.1, 0.9, 0.2, 600, values=(3, 4))
    problem = ASSOCIATION.Problem.drawn(setting)
    estimate = hb.estimate(problem.reports(), method="mle")
    likelihoods = np.empty((setting.users, 3, 4))
    for user, cohort in enumerate(problem.cohorts):
        parts = []
        for place, part in enumerate(problem.mechanisms[cohort].parts.values()):
            sent = problem.bits[place][user]
            chances = [np.where(np.isin(np.arange(8), own), setting.own, setting.other) for own in part.filters]
            parts.append([math.prod(np.where(sent == 1, chance, 1.0 - chance)) for chance in chances])
        likelihoods[user] = np.outer(parts[0], parts[1])
    shares = np.full((3, 4), 1.0 / 12.0)
    for _ in range(3_000):
        posterior = likelihoods * shares
        shares = (posterior / posterior.sum(axis=(1, 2), keepdims=True)).mean(axis=0)
    heights = [
        np.log((likelihoods * own).sum(axis=(1, 2))).mean() for own in (shares, estimate.probabilities.reshape(3, 4))
    ]
    assert heights[0] <= heights[1] + 1e-9
    assert heights[1] - heights[0] < 1e-6
    assert np.abs(shares.ravel() - estimate.probabilities).max() < 1e-3


# -- numbers in arrays -------------------------------------------------------------------------------------------------


def test_arrays_of_numbers_are_encoded_as_lists_are() -> None:
    mechanism = MECHANISMS["RS+FD[OUE-r]"]
    sent = mechanism.privatize({f"a{place}": [1, 2, 2] for place in range(3)}, rng=1)
    listed = {name: list(sent[name]) for name in sent.dtype.names or ()}
    assert (mechanism.output_space.encode(sent) == mechanism.output_space.encode(listed)).all()
    wrong = dict(listed, a1=np.array([[64], [1], [64]], dtype=np.uint8))  # a one beyond the last of two bits
    with pytest.raises(hb.OutputError, match="beyond the last value") as caught:
        mechanism.output_space.encode(wrong)
    assert "attribute a1, position 1" in caught.value.where
