"""The central epsilon of shuffled reports: by definition, by formulas of others, and how it behaves."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from scipy.stats import binom, norm

import hubbub as hb
from hubbub.amplification import blanket_divergence
from hubbub.amplification.blanket_divergence import WIDENINGS, ReportSum, divergence_bound, most_places
from hubbub.amplification.local_budget import largest_local_epsilon
from hubbub.amplification.pair_laws import PairLaw, any_mechanism, closed_law
from hubbub.amplification.worst_pair import ShuffledMechanism
from hubbub.core.arrays import Floats
from hubbub.mechanisms import Mechanism

THREE, FOUR = hb.Categories(["a", "b", "c"]), hb.Integers(0, 3)
DELTAS = (1e-3, 0.05, 0.3)


def drawn_matrix(seed: int, values: int = 3, outputs: int = 4) -> hb.Matrix:
    """Return a mechanism whose pairs of values all differ."""
    table = np.random.default_rng(seed).dirichlet(np.full(outputs, 4.0), values)
    domain = hb.Categories([f"v{place}" for place in range(values)])
    return hb.Matrix(domain, outputs=[f"z{place}" for place in range(outputs)], probabilities=table)


LISTED: dict[str, Mechanism] = {
    "k-rr": hb.RandomizedResponse(THREE, 1.0),
    "coin": hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.5),
    "rappor": hb.Rappor(THREE, 1.2),
    "oue": hb.OptimizedUnary(THREE, 1.0),
    "subsets": hb.SubsetSelection(hb.Integers(0, 4), 1.0, size=2),
    "wave": hb.SquareWave(FOUR, 1.0, reach=1),
    "wide wave": hb.SquareWave(FOUR, 1.0, reach=2),
    "geometric": hb.TruncatedGeometric(FOUR, 0.5),
    "exponential": hb.Exponential(THREE, 1.0),
    "drawn": drawn_matrix(1),
    "hadamard": hb.HadamardResponse(THREE, 1.0),
    "hadamard in one block": hb.HadamardResponse(THREE, 1.0, blocks=1),
    "projective": hb.ProjectiveResponse(hb.Integers(0, 6), 1.0, prime=2),
    "duchi": hb.Duchi(FOUR, 1.0),
    "daily": hb.LongitudinalResponse(THREE, epsilon=2.0, first=1.0),
}


def tables_of(rows: Floats) -> dict[tuple[int, ...], float]:
    """Return the distribution of how often each output is sent by people with these rows, by definition."""
    law = {(0,) * rows.shape[1]: 1.0}
    for row in rows:
        wider: dict[tuple[int, ...], float] = defaultdict(float)
        for counts, chance in law.items():
            for output, own in enumerate(row):
                more = list(counts)
                more[output] += 1
                wider[tuple(more)] += chance * own
        law = wider
    return law


def exact_divergence(matrix: Floats, users: int, epsilon: float) -> float:
    """Return the divergence of shuffled reports of the worst pair among the worst others."""
    worst = 0.0
    for others in combinations_with_replacement(range(len(matrix)), users - 1):
        laws = [tables_of(matrix[[value, *others]]) for value in range(len(matrix))]
        for one, two in permutations(laws, 2):
            worst = max(worst, sum(max(0.0, one[key] - math.exp(epsilon) * two[key]) for key in one))
    return worst


@pytest.mark.sampled(4)
@pytest.mark.parametrize("users", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LISTED)
def test_never_below_what_is_exact(name: str, users: int) -> None:
    mechanism = LISTED[name]
    matrix = mechanism.checked_matrix()
    if matrix.shape[1] > 6:
        users = min(users, 2)
    for delta in DELTAS:
        result = hb.amplify(mechanism, users, delta)
        assert exact_divergence(matrix, users, result.epsilon) <= delta * (1 + 1e-9)
        assert result.epsilon <= result.general_epsilon <= result.local_epsilon


def test_the_exact_divergence_of_one_user_is_that_of_a_report() -> None:
    matrix = LISTED["k-rr"].checked_matrix()
    distance = 0.5 * np.abs(matrix[0] - matrix[1]).sum()
    assert exact_divergence(matrix, 1, 0.0) == pytest.approx(distance)


@pytest.mark.parametrize("users", [2, 5, 9])
def test_close_to_what_is_exact_for_a_coin(users: int) -> None:
    matrix = LISTED["coin"].checked_matrix()
    for delta in (1e-2, 0.1):
        bound = hb.amplify(LISTED["coin"], users, delta).epsilon
        assert exact_divergence(matrix, users, bound * 0.8) > delta  # nothing much below it would hold


def blanket_expectation(law: PairLaw, users: int, epsilon: float) -> float:
    """Return E[(X_1 + ... + X_n)_+] / n of the blanket, by adding up all sums."""
    atoms = (law.own - math.exp(epsilon) * law.other) / law.blanket
    choices = [*zip(atoms, law.blanket, strict=True), (0.0, max(0.0, 1.0 - law.blanket.sum()))]
    sums = {0.0: 1.0}
    for _ in range(users):
        wider: dict[float, float] = defaultdict(float)
        for total, chance in sums.items():
            for atom, own in choices:
                wider[round(total + atom, 10)] += chance * own
        sums = wider
    return sum(total * chance for total, chance in sums.items() if total > 0) / users


@pytest.mark.parametrize("users", [2, 7, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["k-rr", "rappor", "subsets", "wave", "wide wave"])
def test_the_bound_is_the_expectation_rounded_up(name: str, users: int) -> None:
    mechanism = LISTED[name]
    law = closed_law(mechanism)
    assert law is not None
    for epsilon in (0.0, 0.1, 0.4):
        expected = blanket_expectation(law, users, epsilon)
        bound = divergence_bound(law, users, epsilon, mechanism.spent(1))
        assert expected <= bound <= expected * 1.01


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    ["k-rr", "coin", "rappor", "oue", "subsets", "wave", "wide wave", "daily", "hadamard", "projective", "duchi"],
)
def test_formulas_agree_with_all_pairs_of_the_matrix(name: str) -> None:
    """The worst pair of the matrix is that of the formula: neither more nor less."""
    mechanism = LISTED[name]
    matrix = mechanism.checked_matrix()
    from_matrix = ShuffledMechanism(mechanism.spent(1), None, matrix, specific=True)
    for users, delta in ((3, 0.05), (100, 1e-3), (100_000, 1e-7)):
        formula = ShuffledMechanism.of(mechanism).central_epsilon(users, delta)
        assert from_matrix.central_epsilon(users, delta) == pytest.approx(formula, rel=2e-3)


def asked_bits_matrix(mechanism: hb.DBitFlip) -> Floats:
    """Return P(asked, answers | value) by definition."""
    from itertools import combinations, product

    buckets, asked = int(mechanism.buckets or 0), int(mechanism.bits or 0)
    right = 1 / (1 + math.exp(-mechanism.nats))
    rows = []
    for own in mechanism.bucket_of(np.arange(len(mechanism.domain))).tolist():
        chances = []
        for chosen in combinations(range(buckets), asked):
            for answers in product((0, 1), repeat=asked):
                likely = [
                    right if bit == (own == bucket) else 1 - right for bucket, bit in zip(chosen, answers, strict=True)
                ]
                chances.append(math.prod(likely) / math.comb(buckets, asked))
        rows.append(chances)
    return np.array(rows)


@pytest.mark.parametrize(("buckets", "bits"), [(4, 1), (4, 2), (4, 4), (3, 2)])
def test_asked_bits(buckets: int, bits: int) -> None:
    mechanism = hb.DBitFlip(hb.Integers(0, buckets - 1), 1.0, buckets=buckets, bits=bits)
    matrix = asked_bits_matrix(mechanism)
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    from_matrix = ShuffledMechanism(1.0, None, matrix, specific=True)
    for users, delta in ((3, 0.05), (1000, 1e-5)):
        formula = ShuffledMechanism.of(mechanism).central_epsilon(users, delta)
        assert from_matrix.central_epsilon(users, delta) == pytest.approx(formula, rel=2e-3)


@pytest.mark.parametrize("kind", [hb.CountMeanSketch, hb.HadamardCountMeanSketch])
def test_sketches(kind: Callable[..., Mechanism]) -> None:
    """Two values that share no bucket are the worst, whatever the hashes do; here some do."""
    apart = kind(hb.Integers(0, 1), epsilon=1.0, hashes=2, width=4)
    several = kind(hb.Integers(0, 5), epsilon=1.0, hashes=2, width=4)
    for users, delta in ((3, 0.05), (1000, 1e-5)):
        formula = ShuffledMechanism.of(several).central_epsilon(users, delta)
        assert ShuffledMechanism.of(apart).central_epsilon(users, delta) == formula
        from_matrix = ShuffledMechanism(1.0, None, several.matrix(), specific=True).central_epsilon(users, delta)
        assert 0.9 * formula < from_matrix <= formula * 1.0003


@pytest.mark.parametrize("way", [hb.Split, hb.SampleOne])
def test_several_attributes(way: type[Mechanism]) -> None:
    """The worst pair differs in all attributes."""
    build: Callable[..., Mechanism] = way
    both = build(hue=hb.RandomizedResponse(THREE, 0.8), tea=hb.OptimizedUnary(hb.Categories(["yes", "no"]), 0.5))
    matrix = both.matrix()
    from_matrix = ShuffledMechanism(both.spent(1), None, matrix, specific=True)
    for users, delta in ((3, 0.05), (1000, 1e-5)):
        formula = ShuffledMechanism.of(both)
        assert formula.law is not None
        found = formula.central_epsilon(users, delta)
        assert from_matrix.central_epsilon(users, delta) == pytest.approx(found, rel=2e-3)


def clones_divergence(local: float, users: int, epsilon: float) -> float:
    """Return that of the stronger clones (Feldman, McMillan, Talwar 2023, theorem 3.2), by their binomials."""
    odds = math.exp(local)
    clones = np.arange(users)
    total = 0.0
    for count, chance in zip(clones.tolist(), binom.pmf(clones, users - 1, 2 / (odds + 1)), strict=True):
        heads = np.arange(count + 2)
        without, one_less = binom.pmf(heads, count, 0.5), binom.pmf(heads - 1, count, 0.5)
        own, other = (odds * one_less + without) / (odds + 1), (one_less + odds * without) / (odds + 1)
        total += chance * float(np.maximum(0.0, own - math.exp(epsilon) * other).sum())
    return total


@pytest.mark.parametrize("local", [0.5, 1.0, 3.0])
def test_general_bound_is_that_of_the_stronger_clones(local: float) -> None:
    for users in (2, 30, 500):
        for epsilon in (0.05, 0.3):
            published = clones_divergence(local, users, epsilon)
            bound = divergence_bound(any_mechanism(local), users, epsilon, local)
            assert published * (1 - 1e-9) <= bound <= published * 1.01 + 1e-300


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(20))
def test_never_above_the_clones_nor_below_what_is_exact_for_drawn_mechanisms(seed: int) -> None:
    mechanism = drawn_matrix(seed, values=3, outputs=3)
    matrix = mechanism.checked_matrix()
    general = any_mechanism(mechanism.epsilon)
    own = ShuffledMechanism.of(mechanism)
    for users, delta in ((2, 0.1), (3, 0.01), (1000, 1e-6)):
        found = own.central_epsilon(users, delta)
        if 0.0 < found < mechanism.epsilon:
            assert divergence_bound(general, users, found * 0.999, mechanism.epsilon) > delta
        if users < 10:
            assert exact_divergence(matrix, users, found) <= delta


@pytest.mark.parametrize("local", [0.5, 2.0, 4.0])
def test_below_the_closed_form_that_was_published(local: float) -> None:
    """Feldman, McMillan, Talwar 2021, theorem 3.1."""
    odds = math.exp(local)
    for users, delta in ((10_000, 1e-6), (10**6, 1e-8), (10**9, 1e-12)):
        if local > math.log(users / (16 * math.log(2 / delta))):
            continue
        rate = 8 * math.sqrt(odds * math.log(4 / delta) / users) + 8 * odds / users
        closed = math.log1p((odds - 1) / (odds + 1) * rate)
        assert hb.amplify(hb.RandomizedResponse(hb.Categories(["y", "n"]), local), users, delta).epsilon < closed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["k-rr", "rappor", "drawn", "geometric"])
def test_more_users_or_a_larger_delta_never_cost_more(name: str) -> None:
    mechanism = LISTED[name]
    users = [1, 2, 5, 50, 51, 1000, 10**5, 10**5 + 1, 10**9, 10**9 + 1, 10**12]
    found = [hb.amplify(mechanism, count, 1e-6).epsilon for count in users]
    assert found == sorted(found, reverse=True)
    deltas = [1e-300, 1e-12, 1.01e-12, 1e-6, 1.0001e-6, 0.1, 0.9]
    found = [hb.amplify(mechanism, 1000, delta).epsilon for delta in deltas]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("name", ["k-rr", "rappor", "subsets"])
def test_of_many_users_the_reports_are_normal(name: str) -> None:
    """The limit is a shift of a normal law by the root of sum (P - P')^2 / w over the users."""
    mechanism, users, delta = LISTED[name], 10**9, 1e-10
    law = closed_law(mechanism)
    assert law is not None
    shift = math.sqrt(float(((law.own - law.other) ** 2 / law.blanket).sum()) / users)
    epsilon = hb.amplify(mechanism, users, delta).epsilon
    there = norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
    assert there == pytest.approx(delta, rel=0.01)


def test_of_large_domains_only_the_epsilon_counts() -> None:
    steps = hb.TruncatedGeometric(hb.Integers(0, 999), 0.002)
    result = hb.amplify(steps, 10**6, 1e-9)
    assert result.method == "clones"
    assert result.local_epsilon == pytest.approx(0.002 * 999)
    assert result.epsilon == result.general_epsilon
    assert "between any two values of the domain" in result.explain()


def test_metric_epsilon_is_the_largest_that_is_realised() -> None:
    rounded = hb.Laplace(FOUR, 0.5)  # remapped: less than 3 times 0.5
    matrix = rounded.checked_matrix()
    logs = np.log(matrix)
    assert hb.amplify(rounded, 100, 0.01).local_epsilon == pytest.approx((logs.max(0) - logs.min(0)).max())


def test_unbounded_noise_is_as_private_as_clamped_noise() -> None:
    free, clamped = hb.Geometric(FOUR, 0.4), hb.TruncatedGeometric(FOUR, 0.4)
    assert hb.amplify(free, 500, 1e-4).epsilon == hb.amplify(clamped, 500, 1e-4).epsilon


def test_what_a_matrix_realises_counts_and_not_what_is_claimed() -> None:
    class Boastful(hb.Matrix):
        """A matrix that claims less than it gives away."""

        @property
        def epsilon(self) -> float:  # type: ignore[override]
            return 0.1

    table = LISTED["k-rr"].checked_matrix()
    honest = hb.amplify(hb.Matrix(THREE, ["x", "y", "z"], table), 1000, 1e-6)
    boastful = hb.amplify(Boastful(THREE, ["x", "y", "z"], table), 1000, 1e-6)
    assert boastful.local_epsilon == pytest.approx(1.0)
    assert boastful.epsilon == honest.epsilon


def test_equal_rows_and_rows_that_floats_cannot_hold() -> None:
    same = hb.Matrix(THREE, ["x", "y"], [[0.3, 0.7]] * 3)
    assert hb.amplify(same, 10, 1e-9).epsilon == 0.0
    far = hb.TruncatedGeometric(hb.Integers(0, 999), 1.0)
    assert hb.amplify(far, 10**9, 1e-9).epsilon == pytest.approx(999.0)  # between the ends


def test_nobody_is_hidden_if_reports_are_almost_certain() -> None:
    sure = hb.RandomizedResponse(THREE, 50.0)
    result = hb.amplify(sure, 10**9, 1e-9)
    assert (result.method, result.epsilon) == ("local", 50.0)


def test_nothing_to_protect_is_epsilon_0() -> None:
    assert hb.amplify(LISTED["k-rr"], 1, 0.9).epsilon == 0.0  # any report alone differs by less


@pytest.mark.parametrize("name", ["blanket", "noise", "ratio"])
def test_a_planted_fault_falls_below_what_is_exact(name: str) -> None:
    """A blanket that is too thick, or values that are too alike, would be noticed by the tests above."""
    mechanism = LISTED["k-rr"]
    law = closed_law(mechanism)
    assert law is not None
    faults = {
        "blanket": PairLaw(law.own, law.other, law.blanket * 1.4),
        "noise": PairLaw(*(np.array([part.sum()]) for part in (law.own, law.other, law.blanket))),
        "ratio": PairLaw((law.own + law.other) / 2, law.other, law.blanket),
    }
    exact = exact_divergence(mechanism.checked_matrix(), 3, 0.1)
    assert divergence_bound(law, 3, 0.1, 1.0) >= exact
    assert divergence_bound(faults[name], 3, 0.1, 1.0) < exact


@pytest.mark.parametrize("kind", [hb.RandomizedResponse, hb.OptimizedUnary, hb.LocalHashing, hb.SubsetSelection])
def test_the_largest_local_epsilon_meets_the_target_and_hardly_more_would(kind: Callable[..., Mechanism]) -> None:
    domain = hb.Categories([str(place) for place in range(20)])
    found = largest_local_epsilon(lambda epsilon: kind(domain, epsilon=epsilon), 50_000, 1e-7, 0.3)
    assert hb.amplify(kind(domain, epsilon=found), 50_000, 1e-7).epsilon <= 0.3 * 1.0002
    assert hb.amplify(kind(domain, epsilon=found * 1.02), 50_000, 1e-7).epsilon > 0.3


def test_result_in_words_and_as_json() -> None:
    hashed = hb.LocalHashing(THREE, 1.0)
    result = hb.amplify(hashed, 1000, 1e-6)
    text = result.explain()
    for word in ("1,000 users", "1e-06", "hash is taken to be random", "blanket", f"{result.epsilon:.4g}"):
        assert word in text
    assert json.loads(result.to_json()) == result.document()
    assert str(result) == text
    assert "LocalHashing" in result._repr_html_()


WHOLE, STEPS = hb.Integers(0, 2), hb.Integers(0, 299)


@dataclass(frozen=True)
class Claims(hb.Mechanism):
    """A class of somebody else, which claims an epsilon and returns a matrix of its own."""

    domain: hb.Domain
    epsilon: float
    table: object
    count: int

    @property
    def outputs(self) -> Floats:
        return np.arange(float(self.count))

    def matrix(self) -> Floats:
        return self.table  # type: ignore[return-value]


NO_MATRICES = {
    "not a number": np.full((3, 3), np.nan),
    "sums of 3": np.ones((3, 3)),
    "negative": np.array([[1.2, -0.4, 0.2]] * 3),
    "shape": np.full((3, 2), 0.5),
    "nothing": None,
    "no outputs": np.ones((3, 0)),
}


@pytest.mark.parametrize("claimed", [1.0, 50.0])
@pytest.mark.parametrize("name", NO_MATRICES)
def test_a_claim_is_no_guarantee_where_the_matrix_is_none(name: str, claimed: float) -> None:
    broken = Claims(WHOLE, claimed, NO_MATRICES[name], 0 if name == "no outputs" else 3)
    with pytest.raises(hb.MechanismError) as caught:
        hb.amplify(broken, 10_000, 1e-6)
    assert "Claims.matrix()" in caught.value.where


def test_an_invalid_matrix_is_refused_where_pairs_are_too_many_to_compare_and_among_attributes() -> None:
    with pytest.raises(hb.MechanismError, match="do not sum to 1"):
        hb.amplify(Claims(STEPS, 1.0, np.ones((300, 300)), 300), 10_000, 1e-6)
    broken = Claims(WHOLE, 1.0, np.ones((3, 3)), 3)
    with pytest.raises(hb.MechanismError, match="do not sum to 1"):
        hb.amplify(hb.Split(one=broken, two=hb.Geometric(FOUR, 1.0)), 10_000, 1e-6)  # cannot be listed as a whole


def test_combinations_of_attributes_are_compared_where_they_can_be_listed() -> None:
    listed = hb.Split(one=LISTED["drawn"], two=hb.RandomizedResponse(hb.Categories(["y", "n"]), 0.5))
    matrix = listed.matrix()
    for users, delta in ((2, 0.1), (2, 0.3)):
        result = hb.amplify(listed, users, delta)
        assert exact_divergence(matrix, users, result.epsilon) <= delta
        assert result.method == "blanket"
    liar = Claims(WHOLE, 1.0, hb.RandomizedResponse(WHOLE, 3.0).matrix(), 3)
    assert hb.amplify(hb.Split(one=liar, two=hb.Geometric(FOUR, 0.5)), 100, 1e-6).local_epsilon == pytest.approx(4.5)


@pytest.mark.parametrize("claimed", [1.0, 50.0])
@pytest.mark.parametrize("values", [200, 300])
def test_what_is_realised_counts_for_any_number_of_values(values: int, claimed: float) -> None:
    spent = 3.0 * claimed
    rows = np.full((values, values), 1.0 / (math.exp(spent) + values - 1))
    np.fill_diagonal(rows, math.exp(spent) / (math.exp(spent) + values - 1))
    result = hb.amplify(Claims(hb.Integers(0, values - 1), claimed, rows, values), 10**6, 1e-6)
    assert result.local_epsilon == pytest.approx(spent)
    assert result.epsilon >= hb.amplify(hb.RandomizedResponse(hb.Integers(0, values - 1), spent), 10**6, 1e-6).epsilon


def test_a_larger_claim_stays_where_pairs_are_not_compared() -> None:
    careful = Claims(STEPS, 2.0, hb.RandomizedResponse(STEPS, 1.0).matrix(), 300)
    assert hb.amplify(careful, 10**6, 1e-6).local_epsilon == 2.0


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many atoms times places each transform summed; none may be beyond its limit."""
    seen: list[int] = []
    turned = blanket_divergence._turned

    def counted(atoms: Floats, powers: Floats, step: float, count: int) -> blanket_divergence.Complexes:
        assert count <= most_places(atoms.size) + 1
        seen.append(count * atoms.size)
        return turned(atoms, powers, step, count)

    monkeypatch.setattr(blanket_divergence, "_turned", counted)
    yield seen
    assert sum(seen) < 3e8  # some seconds at most


@pytest.mark.parametrize(
    ("mechanism", "users"),
    [
        (hb.Geometric(hb.Integers(0, 99), 0.3), 1000),
        (hb.TruncatedGeometric(hb.Integers(0, 120), 0.2), 10_000),
        (hb.Laplace(hb.Integers(0, 50), 0.5), 5000),
        (hb.RandomizedResponse(WHOLE, 24.0), 1000),
        (hb.RandomizedResponse(WHOLE, 25.0), 1000),
        (hb.RandomizedResponse(WHOLE, 39.9), 10),
    ],
)
def test_nobody_is_hidden_by_few_reports_that_are_almost_certain(
    places: list[int], mechanism: Mechanism, users: int
) -> None:
    """Each user's report alone gives away too much in all but one case of many: no sum has to be looked at closely."""
    result = hb.amplify(mechanism, users, 1e-6)
    assert (result.method, result.epsilon) == ("local", result.local_epsilon)
    assert max(places, default=0) < 1_000_000


@pytest.mark.parametrize("epsilon", [1e-12, 1e-10, 1e-9, 1e-8, 1e-6])
def test_tiny_epsilons(places: list[int], epsilon: float) -> None:
    """Values differ by less than what is rounded: either delta covers them, or the epsilon of a report is left."""
    tiny = hb.RandomizedResponse(THREE, epsilon)
    for users in (10, 10**6, 10**12):
        assert hb.amplify(tiny, users, 1e-6).epsilon == 0.0  # any report alone differs by less
        assert hb.amplify(tiny, users, 1e-15).epsilon <= epsilon
    assert hb.amplify(tiny, 1, epsilon / 1e6).epsilon == pytest.approx(epsilon, rel=1e-3)


def test_sums_with_few_large_atoms_among_many_small_ones(places: list[int]) -> None:
    """Of such a sum, details count that are far below its width."""
    for mechanism, users, delta in (
        (hb.Laplace(hb.Integers(0, 29), 1.0), 10**8, 0.3),
        (hb.Geometric(hb.Integers(0, 59), 0.49), 10**10, 1e-6),
        (hb.RandomizedResponse(WHOLE, 33.0), 10**6, 1e-15),
    ):
        result = hb.amplify(mechanism, users, delta)
        assert result.epsilon <= result.general_epsilon <= result.local_epsilon


@pytest.mark.parametrize("users", [2, 3])
@pytest.mark.parametrize("epsilon", [4.0, 12.0, 24.0])
def test_never_below_what_is_exact_at_large_epsilons(epsilon: float, users: int) -> None:
    for mechanism in (hb.RandomizedResponse(THREE, epsilon), hb.TruncatedGeometric(WHOLE, epsilon / 2.0)):
        for delta in (1e-9, 1e-3, 0.05):
            found = hb.amplify(mechanism, users, delta).epsilon
            assert exact_divergence(mechanism.checked_matrix(), users, found) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("users", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_quick_bounds_enclose_the_expectation(seed: int, users: int) -> None:
    mechanism = drawn_matrix(seed)
    matrix = mechanism.checked_matrix()
    law = PairLaw(matrix[0], matrix[1], matrix.min(axis=0))
    for epsilon in (0.0, 0.2, 0.6 * mechanism.epsilon):
        expected = blanket_expectation(law.rounded_outward(), users, epsilon)
        total = ReportSum.of(law, users, epsilon, mechanism.epsilon)
        if total is None:  # no output is likelier by that much
            assert expected == 0.0
            continue
        assert 0.0 <= total.best_event() <= expected * (1 + 1e-9)
        bounds = [total.by_transform(), total.of_one_report(), total.chernoff_bound()]
        for bound in bounds + [total.by_short_transform(widening) for widening in WIDENINGS]:
            assert bound >= expected * (1 - 1e-9)


@pytest.mark.parametrize("limit", [300, 3000])
def test_a_sum_that_needs_too_many_places_gets_more_noise(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(blanket_divergence, "most_places", lambda atoms: limit)
    law = closed_law(LISTED["k-rr"])
    assert law is not None
    for users in (2, 7):
        for epsilon in (0.0, 0.1, 0.4):
            total = ReportSum.of(law, users, epsilon, 1.0)
            assert total is not None
            expected = blanket_expectation(law, users, epsilon)
            assert expected <= total.by_transform() <= 1.0
            if limit == 3000:
                assert total.by_transform() < 1.1 * expected


def test_progress_over_pairs_of_values() -> None:
    drawn = drawn_matrix(2, values=8, outputs=9)
    steps = list(hb.amplify.steps(drawn, 10_000, 1e-6))
    assert steps
    assert all(0 <= step.done < step.total for step in steps)
    assert {step.what for step in steps} == {"comparing pairs of values"}
