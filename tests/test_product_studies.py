"""Several attributes in study files, budgets and exact draws: on the device, in the library and in files of reports."""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

import hubbub as hb
from hubbub import client
from hubbub.auditing.privacy_budget import privacy_budget
from hubbub.client import Client, ClientError
from hubbub.intake.privacy_loss_summary import epsilon_document, spending_lines
from hubbub.intake.study import parse_study
from hubbub.intake.study_entries import MECHANISMS
from hubbub.intake.study_files import template
from hubbub.intake.tallies.tally_summary import check_writable, without_nulls
from hubbub.planning.attribute_ways import ways_at
from hubbub.reports.privacy_accounting import spent_once
from hubbub.sampling import RandomSource, SystemSource
from hubbub.sampling.fraction_table import FractionTable
from terminal import hubbub

LEVEL = 1e-6  # of every test of draws
AGE, SEX, TOWN = hb.Integers(1, 4), hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c"])
PEOPLE = hb.Product(age=AGE, sex=SEX)
STUDY = """version = 1
name = "two attributes"
[domain]
kind = "product"
impossible = [{ age = [1, 2], sex = "m" }]
[domain.attributes.age]
kind = "integers"
low = 1
high = 4
[domain.attributes.sex]
kind = "categories"
labels = ["f", "m"]
[mechanisms.both]
kind = "split"
epsilon = 2.0
[mechanisms.both.parts.age]
kind = "truncated-geometric"
share = 0.75
[mechanisms.both.parts.sex]
kind = "krr"
share = 0.25
[mechanisms.one]
kind = "sample-one"
probabilities = { age = "1/3", sex = "2/3" }
[mechanisms.one.parts.age]
kind = "randomized-response"
epsilon = 1.0
[mechanisms.one.parts.sex]
kind = "randomized-response"
p = 0.75
[mechanisms.fakes]
kind = "sample-one-with-fakes"
epsilon = 1.5
fakes = { age = [0.5, 0.25, 0.25, 0.0] }
[mechanisms.fakes.parts.age]
kind = "exponential"
[mechanisms.fakes.parts.sex]
kind = "randomized-response"
"""


def study_of(text: str = STUDY) -> hb.Study:
    return parse_study(tomllib.loads(text), "study")


# -- the study file ----------------------------------------------------------------------------------------------------


def test_a_study_file_describes_the_product_and_its_mechanisms() -> None:
    study = study_of()
    domain = hb.Product(age=AGE, sex=SEX, impossible=[{"age": [1, 2], "sex": "m"}])
    age = hb.TruncatedGeometric(AGE, epsilon=1.5 / 3.0)  # three quarters of 2, over the diameter
    assert study.domain == domain
    assert study.mechanisms["both"] == hb.Split(domain, age=age, sex=hb.RandomizedResponse(SEX, epsilon=0.5))
    assert study.mechanisms["one"] == hb.SampleOne(
        domain,
        age=hb.RandomizedResponse(AGE, epsilon=1.0),
        sex=hb.RandomizedResponse(SEX, p=0.75),
        probabilities={"age": Fraction(1, 3), "sex": "2/3"},
    )
    assert study.mechanisms["fakes"] == hb.SampleOneWithFakes(
        domain,
        age=hb.Exponential(AGE, epsilon=0.5),
        sex=hb.RandomizedResponse(SEX, epsilon=1.5),
        fakes={"age": [0.5, 0.25, 0.25, 0.0]},
    )


def test_a_study_is_read_back_from_its_canonical_form() -> None:
    study = study_of()
    check_writable(study)
    again = parse_study(without_nulls(json.loads(study.canonical)), "study")
    assert again.domain == study.domain
    assert again.mechanisms == study.mechanisms


def test_equal_combinations_are_equal_however_the_rules_say_it() -> None:
    rules: list[Any] = [
        [{"age": [1, 2], "sex": "m"}],
        [{"sex": ["m"], "age": [2, 1, 1]}],
        [{"age": 1, "sex": "m"}, {"age": 2, "sex": "m"}, {"age": 1, "sex": "m"}],
        np.array([[False, True], [False, True], [False, False], [False, False]]),
    ]
    products = [hb.Product(age=AGE, sex=SEX, impossible=each) for each in rules]
    assert len(set(products)) == 1
    assert hb.Product(age=AGE, sex=SEX, impossible=[]) == PEOPLE
    wide = hb.Product(age=AGE, town=TOWN, sex=SEX, impossible=rules[0])
    assert wide.fields()["impossible"] == [{"age": [1, 2], "sex": ["m"]}]  # of the attributes that matter alone
    assert len(wide) == 3 * len(products[0])


def test_the_order_of_attributes_matters_and_that_of_parts_does_not() -> None:
    first, last = STUDY.index("[domain.attributes.age]"), STUDY.index("[mechanisms.both]")
    middle = STUDY.index("[domain.attributes.sex]")
    swapped = STUDY[:first] + STUDY[middle:last] + STUDY[first:middle] + STUDY[last:]
    ordered = swapped.replace('kind = "product"', 'kind = "product"\norder = ["age", "sex"]')
    assert study_of(swapped).fingerprint != study_of().fingerprint == study_of(ordered).fingerprint
    a, b, c = (STUDY.index(f"[mechanisms.{name}]") for name in ("both.parts.age", "both.parts.sex", "one"))
    assert study_of(STUDY[:a] + STUDY[b:c] + STUDY[a:b] + STUDY[c:]).fingerprint == study_of().fingerprint


def test_what_a_budget_comes_to_is_the_study_however_it_is_said() -> None:
    spelt = STUDY.replace("epsilon = 2.0\n", "").replace("share = 0.75", "epsilon = 0.5").replace("0.25\n", "0.5\n")
    assert study_of(spelt.replace("share = 0.5", "epsilon = 0.5")).fingerprint == study_of().fingerprint


# -- mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES: list[tuple[str, str, str, str]] = [  # what is replaced by what, the message, and the line it names
    ("[domain.attributes.sex]", "[domain.attributes.output]", "cannot be called output", "[domain]"),
    ("[domain.attributes.sex]", '[domain.attributes."a b"]', "characters that are not allowed", "[domain]"),
    ('kind = "categories"', 'kind = "product"', "sex is a product itself", 'kind = "product"'),
    ('kind = "categories"', 'kind = "set"', "no such kind", 'kind = "set"'),
    ("high = 4", "high = 0", "low must be below high", "high = 0"),
    ("age = [1, 2], sex", "ages = [1, 2], sex", "no such attribute", "impossible"),
    ("age = [1, 2], sex", "age = [1, 9], sex", "not in the domain", "impossible"),
    ('age = [1, 2], sex = "m"', "", "attributes and their values are not named", "impossible"),
    ('age = [1, 2], sex = "m"', "age = []", "an attribute has no value", "impossible"),
    ('age = [1, 2], sex = "m"', "age = [1, 2, 3, 4]", "leave nothing to estimate", "impossible"),
    ('kind = "split"', 'kind = "splitt"', "no such kind", 'kind = "splitt"'),
    ("[mechanisms.both.parts.sex]", "[mechanisms.both.parts.town]", "sex has no mechanism", "[mechanisms.both]"),
    ("share = 0.25", "share = 0.2", "the shares do not add up to 1", "epsilon = 2.0"),
    ("share = 0.25", "share = 0", "a share is not between 0 and 1", "share = 0"),
    ("share = 0.25\n", "", "sex has no share", "[mechanisms.both.parts.sex]"),
    ("share = 0.25", "share = 0.25\nepsilon = 0.5", "sex has two budgets", "share = 0.25"),
    ("epsilon = 2.0\n", "", "a share of nothing", "share = 0.75"),
    ("epsilon = 2.0", "epsilon = -2.0", "the budget is not a positive number", "epsilon = -2.0"),
    ("share = 0.75", "epsilon = 0.5", "age has no share", "[mechanisms.both.parts.age]"),
    ('kind = "krr"', 'kind = "geometric"', "needs another domain", "[mechanisms.both.parts.sex]"),
    ('kind = "krr"', 'kind = "sample-one"', "no such kind", 'kind = "sample-one"'),
    ('age = "1/3"', 'age = "1/2"', "probabilities do not add up to 1", "probabilities"),
    ('age = "1/3", ', "", "probabilities do not name the attributes", "probabilities"),
    ('kind = "sample-one"\n', 'kind = "sample-one"\nepsilon = 2.0\n', "no attribute has the stated budget", "epsilon"),
    ("fakes = { age", "fakes = { town", "the fakes do not name the attributes", "fakes ="),
    ("0.25, 0.25, 0.0]", "0.25, 0.25]", "distribution of fake values does not fit", "fakes ="),
    ("p = 0.75", "p = 0.75\nshare = 0.5", "does not divide a budget", "share = 0.5"),
]


@pytest.mark.parametrize(("old", "new", "message", "line"), MISTAKES, ids=[each[2] + each[1][:9] for each in MISTAKES])
def test_mistakes_in_a_study_file_are_told_with_their_line(
    old: str, new: str, message: str, line: str, tmp_path: Path
) -> None:
    assert STUDY.count(old) == 1
    text = STUDY.replace(old, new)
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(hb.StudyError, match=message) as caught:
        hb.read_study(path)
    error = caught.value
    assert all([error.got, error.expected, error.remedy])
    place = next(number for number, each in enumerate(text.splitlines(), 1) if each.startswith(line))
    if text.count(f"\n{line}") == 1:
        assert f"line {place}," in error.where
    with pytest.raises(ClientError):
        Client(path)


def test_budgets_that_do_not_add_up_tell_their_sum() -> None:
    text = STUDY.replace("share = 0.75", "epsilon = 0.5").replace("share = 0.25", "epsilon = 1.0")
    with pytest.raises(hb.StudyError, match="do not add up") as caught:
        study_of(text)
    assert "1.5 for age + 1 for sex = 2.5" in caught.value.got


@pytest.mark.parametrize(
    "ask",
    [
        lambda: study_of(STUDY.replace("[mechanisms.both.parts.sex]", "[mechanisms.both.parts.sexx]")),
        lambda: PEOPLE.index({"age": [1], "sexx": ["f"]}),
    ],
)
def test_the_known_name_is_advised_for_the_unknown_one(ask: Callable[[], object]) -> None:
    with pytest.raises(hb.HubbubError) as caught:
        ask()
    assert caught.value.remedy == "rename 'sexx' to 'sex'"


# -- budgets in Python -------------------------------------------------------------------------------------------------


def test_a_budget_is_divided_among_the_attributes() -> None:
    kinds = {"age": hb.TruncatedGeometric, "sex": hb.RandomizedResponse}
    both = hb.Split.with_budget(PEOPLE, 2.0, kinds, shares={"age": 0.75, "sex": 0.25})
    assert [part.epsilon for part in both.parts.values()] == [0.5, 0.5]
    assert both.epsilon == 2.0
    three = hb.Split.with_budget(hb.Product(a=AGE, b=SEX, c=TOWN), 1.0, partial(hb.LocalHashing, buckets=2))
    assert three.epsilon == 1.0
    assert {part.epsilon for part in three.parts.values()} == {1.0 / 3.0}


def drawn_budgets(count: int) -> list[tuple[float, dict[str, Fraction]]]:
    """Return budgets, of few digits and of many, with shares of three attributes that add up to 1 exactly."""
    rng = np.random.default_rng(0)
    budgets = [*(n / 100 for n in range(1, count // 2)), *rng.uniform(0.01, 10.0, count - count // 2).tolist()]
    shares = []
    for _ in budgets:
        parts = [int(n) for n in rng.integers(1, 100, 3)]
        shares.append({name: Fraction(n, sum(parts)) for name, n in zip("abc", parts, strict=True)})
    return [(0.23, {"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4)}), *zip(budgets, shares, strict=True)]


HOURS = hb.Bins([0.1, 0.3, 1.7, 2.9])


def warner_of(own: Any, epsilon: float) -> hb.Mechanism:
    return hb.Warner(own, repr(math.exp(epsilon) / (1.0 + math.exp(epsilon))))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kinds", [(hb.RandomizedResponse,) * 3, (hb.Exponential, warner_of, hb.Geometric)])
def test_attributes_never_spend_more_than_their_budget(kinds: tuple[Any, ...]) -> None:
    """Sums of rounded parts may be above the budget: 0.23 was spent as 0.23000000000000004."""
    three = hb.Product(a=HOURS, b=SEX, c=hb.Integers(1, 8))
    named = dict(zip("abc", kinds, strict=True))
    for budget, shares in drawn_budgets(400):
        for each in (shares, None):
            spent = hb.Split.with_budget(three, budget, named, shares=each).epsilon
            assert budget * (1.0 - 1e-9) <= spent <= budget
        one = hb.SampleOne.with_budget(three, budget, named)
        assert budget * (1.0 - 1e-9) <= one.epsilon <= budget


def test_ten_attributes_never_spend_more_than_their_budget() -> None:
    ten = hb.Product({f"q{n}": SEX for n in range(10)})
    for budget, _ in drawn_budgets(400):
        assert hb.Split.with_budget(ten, budget, hb.RandomizedResponse).epsilon <= budget


def test_planned_ways_never_spend_more_than_their_budget() -> None:
    six = hb.Product({f"q{n}": SEX for n in range(6)})
    for budget, _ in drawn_budgets(40):
        assert max(way.epsilon for way in ways_at(six, budget).values()) <= budget


SHARED = """version = 1
max_epsilon_per_user = {budget!r}
[domain]
kind = "product"
[domain.attributes.a]
kind = "bins"
edges = [0.1, 0.3, 1.7, 2.9]
[domain.attributes.b]
kind = "categories"
labels = ["f", "m"]
[domain.attributes.c]
kind = "integers"
low = 1
high = 8
[mechanisms.all]
kind = "split"
epsilon = {budget!r}
[mechanisms.all.parts]
a = {{ kind = "exponential"{a} }}
b = {{ kind = "krr"{b} }}
c = {{ kind = "truncated-geometric"{c} }}
"""


@pytest.mark.parametrize("shared", [True, False])
def test_a_budget_in_a_study_is_never_exceeded(shared: bool, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    for budget, shares in drawn_budgets(120):
        path.write_text(
            SHARED.format(
                budget=budget, **{name: f', share = "{own}"' if shared else "" for name, own in shares.items()}
            )
        )
        split = hb.read_study(path).mechanisms["all"]
        assert isinstance(split, hb.Split)
        assert budget * (1.0 - 1e-14) <= split.epsilon <= budget
        parts = Client(path)._mechanisms["all"].parts
        assert {name: own.epsilon for name, own in parts.items()} == {
            name: own.epsilon for name, own in split.parts.items()
        }


def test_rounding_is_not_told_as_spending_above_the_limit() -> None:
    """Three tenths, stated part by part, add up to 0.30000000000000004."""
    split = hb.Split(age=hb.RandomizedResponse(AGE, 0.1), sex=hb.RandomizedResponse(SEX, 0.2))
    assert split.epsilon > 0.3
    for limit, above in ((0.3, 0), (0.29, 2)):
        study = hb.Study(split.domain, {"all": split}, max_epsilon_per_user=limit)
        spent = spent_once(split, 2)
        assert any("spent more" in line for line in spending_lines(spent, study, users_named=True)) == bool(above)
        assert epsilon_document(spent, study, users_named=True)["users_above_limit"] == above
        budget = privacy_budget([split], 1, (limit, None))
        assert budget.exceeded == bool(above)
        assert ("more than" in budget.explain()) == bool(above)


@pytest.mark.parametrize("way", [hb.SampleOne, hb.SampleOneWithFakes])
def test_one_attribute_at_random_gets_the_whole_budget(way: Any) -> None:
    kinds = {"age": hb.TruncatedGeometric, "sex": hb.RandomizedResponse}
    one = way.with_budget(PEOPLE, 2.0, kinds, probabilities={"age": 0.25, "sex": 0.75})
    assert one.epsilon == pytest.approx(2.0, rel=1e-12)
    assert one.parts["sex"].epsilon == 2.0
    assert one.parts["age"].epsilon == 2.0 / 3.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: hb.Split.with_budget(AGE, 1.0, hb.Rappor), "not a product"),  # type: ignore[arg-type]
        (lambda: hb.Split.with_budget(PEOPLE, 0.0, hb.Rappor), "must be positive"),
        (lambda: hb.Split.with_budget(PEOPLE, 1.0, {"age": hb.Rappor}), "names are not those"),
        (lambda: hb.Split.with_budget(PEOPLE, 1.0, "rappor"), "no class of mechanisms"),  # type: ignore[arg-type]
        (lambda: hb.Split.with_budget(PEOPLE, 1.0, hb.Rappor, shares={"age": 1}), "names are not those"),
        (lambda: hb.Split.with_budget(PEOPLE, 1.0, hb.Rappor, shares={"age": 0.5, "sex": 0.6}), "do not add up"),
        (lambda: hb.Split.with_budget(PEOPLE, 1.0, lambda own, epsilon: hb.Rappor(own, 2 * epsilon)), "spends more"),
        (lambda: hb.SampleOne(age=hb.Rappor(AGE, 1.0), sex=PEOPLE), "no mechanism of its own"),  # type: ignore[arg-type]
        (lambda: hb.SampleOne(PEOPLE, age=hb.Rappor(AGE, 1.0)), "sex has no mechanism"),
        (lambda: hb.SampleOne(PEOPLE, age=hb.Rappor(TOWN, 1.0), sex=hb.Rappor(SEX, 1.0)), "over another domain"),
        (lambda: hb.Split(AGE, age=hb.Rappor(AGE, 1.0)), "not a product"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_in_python_are_told(build: Callable[[], object], message: str) -> None:
    with pytest.raises(hb.MechanismError, match=message) as caught:
        build()
    assert all([caught.value.where, caught.value.got, caught.value.expected, caught.value.remedy])


# -- the epsilon of reports among fakes --------------------------------------------------------------------------------


def worst_ratios(mechanism: hb.Mechanism) -> tuple[float, float]:
    """Return the largest log-ratio over all pairs of combinations, and over those that differ in one attribute."""
    matrix, labels = mechanism.matrix(), mechanism.domain.labels.tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix)
        apart = np.nan_to_num(logs[:, None, :] - logs[None, :, :], nan=0.0, posinf=np.inf).max(axis=2)
    one = [
        apart[i, j]
        for (i, x), (j, y) in itertools.product(enumerate(labels), repeat=2)
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    ]
    return float(apart.max()), float(max(one))


FAKES: dict[str, Any] = {
    "uniform": None,
    "uneven": {"age": [0.4, 0.3, 0.2, 0.1], "sex": [0.9, 0.1]},
    "zeros": {"age": [0.0, 0.5, 0.5, 0.0], "sex": [1.0, 0.0]},
}
LEAKY = hb.Matrix(SEX, ["u", "v", "w"], [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]])


@pytest.mark.parametrize("fakes", FAKES)
@pytest.mark.parametrize(
    "sex", [hb.RandomizedResponse(SEX, 1.0), hb.Warner(SEX, "2/3"), LEAKY], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("age", [hb.TruncatedGeometric, hb.RandomizedResponse, hb.Exponential])
def test_epsilon_is_that_of_the_whole_matrix(age: Any, sex: hb.Mechanism, fakes: str) -> None:
    one = hb.SampleOneWithFakes(
        age=age(AGE, epsilon=0.7), sex=sex, fakes=FAKES[fakes], probabilities={"age": 0.3, "sex": 0.7}
    )
    matrix = one.matrix()
    assert matrix.sum(axis=1) == pytest.approx(np.ones(len(one.domain)), abs=1e-12)
    assert (one.epsilon, one.epsilon_of_one) == pytest.approx(worst_ratios(one), rel=1e-9)


@pytest.mark.parametrize("fakes", [[0.25, 0.25, 0.5], [0.1, 0.2, 0.7], [0.0, 0.5, 0.5]])
@pytest.mark.parametrize("kind", [hb.Rappor, hb.OptimizedUnary, partial(hb.SubsetSelection, size=2)])
def test_epsilon_of_sets_of_values_is_that_of_all_of_them(kind: Any, fakes: list[float]) -> None:
    """Written out as a matrix over all subsets; the mechanism itself never lists them."""
    oracle = kind(TOWN, epsilon=1.0)
    bits = np.array(list(itertools.product([0, 1], repeat=3)), dtype=np.uint8)
    if isinstance(oracle, hb.SubsetSelection):
        bits = bits[bits.sum(axis=1) == 2]
    rows = np.exp(oracle.channel(np.packbits(bits, axis=1)).log_dense())
    written_out = hb.Matrix(TOWN, [f"s{place}" for place in range(len(bits))], rows)
    sex = hb.RandomizedResponse(SEX, epsilon=0.5)
    ours, theirs = (hb.SampleOneWithFakes(town=own, sex=sex, fakes={"town": fakes}) for own in (oracle, written_out))
    assert (ours.epsilon, ours.epsilon_of_one) == pytest.approx((theirs.epsilon, theirs.epsilon_of_one), rel=1e-12)
    assert (ours.epsilon, ours.epsilon_of_one) == pytest.approx(worst_ratios(theirs), rel=1e-9)


def test_epsilon_needs_no_list_of_outputs() -> None:
    many = hb.Categories([f"v{place}" for place in range(300)])
    wide = hb.SampleOneWithFakes(a=hb.Rappor(many, 1.0), b=hb.LocalHashing(many, 1.0), c=hb.SubsetSelection(many, 1.0))
    assert wide.epsilon == pytest.approx(1.0, rel=1e-12)
    assert wide.epsilon_of_one < 1.0
    line = hb.SampleOneWithFakes(a=hb.Geometric(AGE, 0.5), b=hb.RandomizedResponse(SEX, 1.5))
    assert line.epsilon == pytest.approx(1.5, rel=1e-12)  # 0.5 times the diameter of 3
    grid = hb.Grid(3, 3, cell=1.0)
    plane = hb.PlanarGeometric(grid, 1.0, truncated=False)
    assert hb.SampleOneWithFakes(a=plane, b=hb.RandomizedResponse(SEX, 1.0)).epsilon == grid.diameter  # a bound


def test_the_epsilon_of_the_literature_holds_for_one_attribute_of_equal_sizes() -> None:
    """Arcolezi and others, "Random sampling plus fake data" (2021): log(1 + (e^epsilon - 1) / d)."""
    attributes = {name: hb.RandomizedResponse(TOWN, epsilon=1.0) for name in "abc"}
    one = hb.SampleOneWithFakes(attributes)
    claimed = math.log(1 + (math.e - 1) / 3)
    assert one.epsilon == pytest.approx(1.0, rel=1e-12)  # of combinations that differ in all
    assert one.epsilon_of_one == pytest.approx(claimed, rel=1e-12)
    uneven = hb.SampleOneWithFakes(a=hb.RandomizedResponse(SEX, 1.0), b=hb.RandomizedResponse(hb.Integers(1, 50), 1.0))
    assert uneven.epsilon_of_one > math.log(1 + (math.e - 1) / 2) + 0.1


# -- draws -------------------------------------------------------------------------------------------------------------


class Words(RandomSource):
    """Words that are given, then the operating system's."""

    secure = True

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        given, self._words = self._words[:count], self._words[count:]
        fresh = SystemSource().words(count - len(given))
        return np.concatenate([np.array(given, dtype=np.uint64), fresh])


def test_a_table_of_fractions_compares_all_of_a_border() -> None:
    """A third has the first 64 bits 0x5555555555555555, and a third of the numbers that begin so are below it."""
    third = FractionTable([Fraction(1, 3), Fraction(2, 3)])
    border = 0x5555555555555555
    assert third.draw(2, Words(border - 1, border + 1)).tolist() == [0, 1]
    drawn = [int(third.draw(1, Words(border))[0]) for _ in range(3000)]
    assert chi_square({"0": drawn.count(0), "1": drawn.count(1)}, {"0": 1 / 3, "1": 2 / 3}) > LEVEL


def test_probabilities_with_huge_denominators_are_drawn() -> None:
    tiny = Fraction(1, 3**100)
    one = hb.SampleOne(
        age=hb.RandomizedResponse(AGE, 1.0),
        sex=hb.RandomizedResponse(SEX, 1.0),
        probabilities={"age": tiny, "sex": 1 - tiny},
    )
    assert all(age is None for age in one.privatize([(1, "f")] * 1000)["age"])
    check_writable(hb.Study(one.domain, {"one": one}))


def chi_square(counts: dict[str, int], law: dict[str, float]) -> float:
    """Return the probability of counts at least as far from a law; 0 where something impossible was drawn."""
    if any(law.get(output, 0.0) == 0.0 for output in counts):
        return 0.0
    total = sum(counts.values())
    used = {output: chance * total for output, chance in law.items() if chance > 0.0}
    statistic = math.fsum((counts.get(output, 0) - mean) ** 2 / mean for output, mean in used.items())
    return float(chi2.sf(statistic, len(used) - 1))


def law_of(mechanism: hb.Mechanism, value: tuple[Any, ...]) -> dict[str, float]:
    """Return the probabilities of outputs as reports write them."""
    outputs = mechanism.outputs
    assert outputs is not None
    row = mechanism.matrix()[mechanism.domain.index(value)]
    return {mechanism.output_space.write(output): float(chance) for output, chance in zip(outputs, row, strict=True)}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("device")
    study, tables = folder / "study.toml", folder / "tables.json"
    study.write_text(STUDY)
    hb.export_tables(study, tables)
    return study, tables


VALUE = (3, "m")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["both", "one", "fakes"])
def test_the_device_draws_by_the_law_of_the_library(name: str, files: tuple[Path, Path]) -> None:
    """Planted faults: the device draws for another value, and the others are the library's for another mechanism."""
    mechanism = study_of().mechanisms[name]
    device = Client(*files)
    drawn = Counter(device.privatize(VALUE, name) for _ in range(6000))
    assert chi_square(drawn, law_of(mechanism, VALUE)) > LEVEL
    assert chi_square(drawn, law_of(mechanism, (1, "f"))) < LEVEL
    outputs = mechanism.privatize([VALUE] * 20000)
    library = Counter(mechanism.output_space.write(output) for output in outputs)
    assert chi_square(library, law_of(mechanism, VALUE)) > LEVEL
    assert chi_square(library, law_of(mechanism, (1, "f"))) < LEVEL


def test_faults_in_the_choice_and_in_the_fakes_are_seen() -> None:
    """Attributes chosen equally often, and uniform fakes, where the study states others."""
    study = study_of()
    one, fakes = study.mechanisms["one"], study.mechanisms["fakes"]
    assert isinstance(one, hb.SampleOne)
    assert isinstance(fakes, hb.SampleOneWithFakes)
    for stated, planted in (
        (one, hb.SampleOne(one.domain, age=one.parts["age"], sex=one.parts["sex"])),
        (fakes, hb.SampleOneWithFakes(fakes.domain, age=fakes.parts["age"], sex=fakes.parts["sex"])),
    ):
        outputs = planted.privatize([VALUE] * 20000)
        drawn = Counter(planted.output_space.write(output) for output in outputs)
        assert chi_square(drawn, law_of(planted, VALUE)) > LEVEL > chi_square(drawn, law_of(stated, VALUE))


def test_the_device_takes_values_by_order_or_by_name(files: tuple[Path, Path]) -> None:
    device = Client(*files)
    value: Any
    for value in ((3, "m"), ["3", "m"], {"sex": "m", "age": 3}):
        assert set(json.loads(device.privatize(value, "both"))) == {"age", "sex"}
    for value, message, part in (
        ((3,), "one entry for each attribute", "1 entries"),
        (3, "one entry for each attribute", "one entry"),
        ({"age": 3}, "one entry for each attribute", "no entry for sex"),
        ({"age": 3, "sexx": "m"}, "one entry for each attribute", "no entry for sex"),
        ({"age": 3, "sex": "m", "id": 1}, "one entry for each attribute", "3 entries"),
        ((9, "m"), "not in the study's domain", "privatize(value), attribute age"),
        ({"age": 3, "sex": "x"}, "not in the study's domain", "privatize(value), attribute sex"),
        ((1, "m"), "calls this combination impossible", "privatize(value)"),
    ):
        with pytest.raises(ClientError, match=message) as caught:
            device.privatize(value, "both")
        assert part in (caught.value.got, caught.value.where)
        assert "'m'" not in str(caught.value)  # a message never shows the value


def test_the_device_needs_the_tables_of_parts(files: tuple[Path, Path]) -> None:
    with pytest.raises(ClientError, match="needs a file of tables"):
        Client(files[0]).privatize(VALUE, "fakes")
    assert list(json.loads(files[1].read_text())["tables"]) == ["fakes.age"]


def test_the_device_knows_which_epsilons_are_per_unit_of_distance() -> None:
    metric = {name for name, kind in MECHANISMS.items() if kind.metric}
    assert metric == set(client.METRIC_MECHANISMS)


@pytest.mark.parametrize(
    "attribute",
    [
        'kind = "bins"\nedges = [0.1, 0.3, 1.7, 2.9]',
        'kind = "grid"\ncolumns = 5\nrows = 4\ncell = [0.3, 0.7]',
        'kind = "grid"\ncolumns = 7\nrows = 5\ncell = [0.3, 0.7]\ncells = [2, 3, 9, 20, 33]',
        'kind = "grid"\nsouth = 37.7\nwest = -122.5\nnorth = 37.8\neast = -122.4\n'
        "columns = 9\nrows = 5\ncells = [2, 9, 44]",
    ],
)
def test_device_and_library_share_a_budget_alike(attribute: str, tmp_path: Path) -> None:
    """A diameter that differs in its last bit would be another law."""
    path = tmp_path / "study.toml"
    path.write_text(
        STUDY.replace('kind = "integers"\nlow = 1\nhigh = 4', attribute)
        .replace("[1, 2]", "2")
        .replace('"truncated-geometric"', '"exponential"')
        .replace("fakes = { age = [0.5, 0.25, 0.25, 0.0] }\n", "")
    )
    both = hb.read_study(path).mechanisms["both"]
    assert isinstance(both, hb.Split)
    assert Client(path)._mechanisms["both"].parts["age"].epsilon == both.parts["age"].epsilon


# -- files of reports --------------------------------------------------------------------------------------------------

VALUES = pd.DataFrame(
    {"sex": ["m", "f", "m"] * 40, "age": [3, 1, 4] * 40, "user": [f"u{place}" for place in range(120)]}
)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", ["both", "one"])
def test_files_have_a_column_for_each_attribute(name: str, ending: str, tmp_path: Path) -> None:
    study, path = study_of(), tmp_path / f"reports.{ending}"
    hb.privatize_file(VALUES, study, name, path, rng=7)
    readers: dict[str, Any] = {
        "csv": pd.read_csv,
        "jsonl": partial(pd.read_json, lines=True),
        "parquet": pd.read_parquet,
    }
    read = readers[ending](path)
    assert list(read.columns) == ["user", "mechanism", "output.age", "output.sex"]
    assert (read["user"] == VALUES["user"]).all()
    sent = read[["output.age", "output.sex"]].notna().sum(axis=1)
    assert (sent == (2 if name == "both" else 1)).all()
    outputs = pd.DataFrame({"age": read["output.age"], "sex": read["output.sex"]}).astype(object)
    same = study.mechanisms[name].privatize(VALUES[["age", "sex"]], rng=7)
    assert [age if pd.notna(age) else None for age in outputs["age"]] == same["age"].tolist()
    assert [sex if pd.notna(sex) else None for sex in outputs["sex"]] == same["sex"].tolist()


def test_rows_may_name_their_way_to_report(tmp_path: Path) -> None:
    study, path = study_of(), tmp_path / "reports.parquet"
    single = hb.Study(study.domain, {**study.mechanisms, "whole": hb.RandomizedResponse(study.domain, epsilon=1.0)})
    names = ["both", "one", "whole"] * 40
    hb.privatize_file(VALUES.assign(mechanism=names), single, None, path)
    read = pq.read_table(path).to_pandas()
    assert list(read.columns) == ["user", "mechanism", "output", "output.age", "output.sex"]
    assert read["output"].notna().tolist() == [name == "whole" for name in names]
    assert read["output.age"].notna().tolist() == [
        name == "both" or (name == "one" and not sent)
        for name, sent in zip(names, read["output.sex"].notna(), strict=True)
    ]
    space = single.mechanisms["whole"].output_space
    written = read["output"].dropna().tolist()
    codes = space.encode([space.parse(entry) for entry in written])
    assert [space.write(output) for output in space.decode(codes)] == written


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (VALUES.drop(columns="age"), "there is no column age"),
        (VALUES.rename(columns={"age": "ages"}), "rename 'ages' to 'age'"),
        (VALUES.rename(columns={"age": "output.age"}), "privatized already"),
        (VALUES.assign(age=[3, 9, 4] * 40), "row 2, column age"),
        (VALUES.assign(sex=["m", "", "f"] * 40), "a row has no value"),
        (VALUES.assign(age=[3, 1, 1] * 40), "row 3\n.*values of age and sex"),
        (VALUES.assign(Users="x").drop(columns="user"), "nearly user"),
    ],
)
def test_values_that_cannot_be_privatized_are_told(table: pd.DataFrame, message: str, tmp_path: Path) -> None:
    with pytest.raises(hb.HubbubError, match=message) as caught:
        hb.privatize_file(table, study_of(), "both", tmp_path / "reports.csv")
    assert all([caught.value.where, caught.value.got, caught.value.expected, caught.value.remedy])
    assert not list(tmp_path.iterdir())


def test_a_place_of_an_attribute_may_be_a_latitude_and_a_longitude(tmp_path: Path) -> None:
    grid = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=3, rows=2)
    product = hb.Product(place=grid, sex=SEX)
    study = hb.Study(product, {"both": hb.Split.with_budget(product, 900.0 / 2, hb.RandomizedResponse)})
    table = pd.DataFrame({"place.lat": [37.71, 37.79], "place.lon": [-122.42, -122.49], "sex": ["f", "m"]})
    hb.privatize_file(table, study, "both", tmp_path / "reports.csv")
    read = pd.read_csv(tmp_path / "reports.csv")
    assert read["output.place"].tolist() == grid.locate([37.71, 37.79], [-122.42, -122.49]).tolist()  # hardly any noise


# -- new studies -------------------------------------------------------------------------------------------------------


def test_a_new_study_of_several_attributes_runs(tmp_path: Path) -> None:
    path, values, reports = (tmp_path / name for name in ("study.toml", "values.csv", "reports.csv"))
    assert hubbub("new", "product", "-o", path, cwd=tmp_path).returncode == 0
    assert path.read_text() == template("product")
    values.write_text("age,smoker,region\n34,no,east\n71,yes,west\n")
    assert hubbub("privatize", path, values, "-o", reports, cwd=tmp_path).returncode == 0
    assert reports.read_text().splitlines()[0] == "output.age,output.smoker,output.region"
    refused = hubbub("new", "product", "-o", tmp_path / "other.toml", "--low", "3", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--low does not apply" in refused.stderr
