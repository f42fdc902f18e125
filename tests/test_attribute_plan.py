"""Plans for several attributes: errors against whole simulated studies, the order of ways, and wrong calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.intake.value_counts import read_counts
from hubbub.planning.attribute_ways import ways_at
from hubbub.planning.truths import truths_from

SEX, TOWN, AGE = hb.Categories(["f", "m"]), hb.Categories(["a", "b", "c", "d"]), hb.Integers(1, 6)
PEOPLE = hb.Product(sex=SEX, town=TOWN, age=AGE)
USERS = 10_000
NAMES = ("town", "age")


def simulated(mechanism: hb.Mechanism, truth: NDArray[np.float64], names: Sequence[str], studies: int) -> list[float]:
    """Return the median error of each marginal of whole studies, by maximum likelihood."""
    rng, product, errors = np.random.default_rng(5), mechanism.domain.product, []
    assert product is not None
    for _ in range(studies):
        values = product.labels[rng.choice(len(product), USERS, p=truth)]
        reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
        found = hb.estimate(reports, "mle")
        exact = [product.margin((name,)).sums(truth) for name in names]
        shares = [found.marginal(name).probabilities for name in names]
        errors.append([hb.total_variation(one, other) for one, other in zip(shares, exact, strict=True)])
    return [float(median) for median in np.median(errors, axis=0)]


def bells() -> NDArray[np.float64]:
    truth = np.ones(1)
    for domain in PEOPLE.attributes.values():
        truth = np.asarray(np.kron(truth, truths_from("bell", domain)[0].probabilities))
    return truth


@pytest.mark.slow  # simulates whole studies
def test_errors_are_those_of_whole_studies() -> None:
    """Medians of 13 studies vary by a quarter or so; the plan's are within a half of them, and in the same order."""
    plan, truth = hb.plan_attributes(PEOPLE, epsilon=2.0, users=USERS, truth="bell"), bells()
    planned = {(error.way, error.attributes): error.median for error in plan.errors}
    seen = {}
    for way, mechanism in ways_at(PEOPLE, 2.0).items():
        for name, error in zip(NAMES, simulated(mechanism, truth, NAMES, 13), strict=True):
            seen[way, name] = error
            assert planned[way, (name,)] == pytest.approx(error, rel=0.5)
    assert seen["sample-one", "age"] < seen["split", "age"]
    assert plan.best(1) == "sample-one"


def test_pairs_are_told_by_split_alone() -> None:
    plan = hb.plan_attributes(PEOPLE, epsilon=4.0, users=USERS)
    assert plan.best(2) == "split"
    assert plan.mean_error("sample-one", 2) is None
    assert "sample-one and sample-one-with-fakes do not tell how attributes go together" in plan.explain()
    assert "not told" in str(plan)
    frame = plan.to_frame()
    assert len(frame) == 3 * (3 + 3)
    assert frame["median"].notna().sum() == 6 + 3 + 3
    assert json.loads(plan.to_json())["best"] == {"attributes": plan.best(1), "pairs": "split"}


def test_the_ways_protect_equally() -> None:
    for mechanism in ways_at(PEOPLE, 1.5).values():
        assert mechanism.epsilon == pytest.approx(1.5, rel=1e-9)
    plan = hb.plan_attributes(
        {
            "a": hb.Split(sex=hb.RandomizedResponse(SEX, epsilon=1.0), age=hb.Laplace(AGE, epsilon=0.2)),
            "b": hb.SampleOne(sex=hb.RandomizedResponse(SEX, epsilon=1.0), age=hb.Laplace(AGE, epsilon=0.2)),
        },
        users=500,
        runs=20,
    )
    assert "do not protect equally: between any two combinations, epsilon is a 2 and b 1" in plan.explain()


def test_the_truth_is_a_table_of_counts(tmp_path: Path) -> None:
    """In Python by combinations; in a file with a column for each attribute, as estimates are written."""
    shares = np.random.default_rng(2).dirichlet(np.ones(len(PEOPLE)))
    counts = {tuple(label): 1000.0 * share for label, share in zip(PEOPLE.labels.tolist(), shares, strict=True)}
    plan = hb.plan_attributes(PEOPLE, epsilon=2.0, users=500, truth=counts)
    assert plan.errors == hb.plan_attributes(PEOPLE, epsilon=2.0, users=500, truth=shares).errors
    assert "Assumed: 500 users, the given counts; medians" in plan.explain()
    lines = [",".join(map(str, (*label, count))) for label, count in counts.items()]
    (tmp_path / "truth.csv").write_text("\n".join(["sex,town,age,count", *lines]) + "\n")
    study = hb.Study(domain=PEOPLE, mechanisms={"both": ways_at(PEOPLE, 2.0)["split"]})
    read = read_counts(tmp_path / "truth.csv", study)
    assert read == pytest.approx(counts)
    (tmp_path / "truth.csv").write_text("sex,town,count\nf,a,3\n")
    with pytest.raises(hb.IntakeError) as caught:
        read_counts(tmp_path / "truth.csv", study)
    assert caught.value.expected == "one of sex,town,age,count"


def test_more_users_err_less_and_the_same_seed_errs_the_same() -> None:
    few, many = (hb.plan_attributes(PEOPLE, epsilon=2.0, users=users) for users in (1_000, 100_000))
    assert all(b.median is None or (a.median or 0.0) > b.median for a, b in zip(few.errors, many.errors, strict=True))
    assert hb.plan_attributes(PEOPLE, epsilon=2.0, users=1_000).errors == few.errors
    assert few.errors != hb.plan_attributes(PEOPLE, epsilon=2.0, users=1_000, rng=3).errors


def test_mechanisms_of_any_kind_are_planned() -> None:
    grid = hb.Grid(3, 2)
    ways = [
        hb.Split(age=hb.TruncatedGeometric(AGE, epsilon=0.5), place=hb.OptimizedUnary(grid, epsilon=2.0)),
        hb.Split(age=hb.RandomizedResponse(AGE, epsilon=2.0), place=hb.LocalHashing(grid, epsilon=2.0)),
        hb.SampleOneWithFakes(
            {"age": hb.RandomizedResponse(AGE, epsilon=2.0), "place": hb.RandomizedResponse(grid, epsilon=2.0)},
            fakes={"age": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]},
        ),
        hb.Split(age=hb.Geometric(AGE, epsilon=0.5), place=hb.PlanarGeometric(grid, epsilon=1.0)),
    ]
    plan = hb.plan_attributes(ways, users=2_000, runs=20)
    assert list(plan.ways) == ["split", "split 2", "sample-one-with-fakes", "split 3"]
    told = {(error.way, error.attributes): error.median is not None for error in plan.errors}
    assert told["split", ("age", "place")]
    assert told["split 3", ("place",)]
    assert not told["split 3", ("age",)]  # an endless line of outputs
    assert "not simulated" in str(plan)


BOTH = hb.Split(sex=hb.RandomizedResponse(SEX, epsilon=1.0), town=hb.RandomizedResponse(TOWN, epsilon=1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hb.plan_attributes(PEOPLE, users=100), "epsilon"),
        (lambda: hb.plan_attributes(PEOPLE, epsilon=-1.0, users=100), "epsilon"),
        (lambda: hb.plan_attributes(BOTH, epsilon=1.0, users=100), "bring their own epsilon"),
        (lambda: hb.plan_attributes(SEX, epsilon=1.0, users=100), "not a product"),
        (lambda: hb.plan_attributes(7, users=100), "not ways to report"),
        (lambda: hb.plan_attributes([], users=100), "nothing to compare"),
        (lambda: hb.plan_attributes([hb.RandomizedResponse(SEX, epsilon=1.0)], users=100), "no way to report several"),
        (lambda: hb.plan_attributes(hb.RandomizedResponse(PEOPLE, epsilon=1.0), users=100), "no way to report several"),
        (
            lambda: hb.plan_attributes([BOTH, hb.Split(ways_at(PEOPLE, 1.0)["split"].parts)], users=100),
            "another domain",
        ),
        (lambda: hb.plan_attributes(BOTH, users=0), "users"),
        (lambda: hb.plan_attributes(BOTH, users=10, runs=1), "runs"),
        (lambda: hb.plan_attributes(BOTH, users=10, truth="worst"), "several shapes"),
        (lambda: hb.plan_attributes(BOTH, users=10, truth="bel"), "no such shape"),
        (lambda: hb.plan_attributes(BOTH, users=10, truth=[0.5, 0.5]), "truth"),
    ],
)
def test_wrong_calls_are_told(call: Callable[[], object], message: str) -> None:
    with pytest.raises(hb.SettingError) as caught:
        call()
    error = caught.value
    assert message in f"{error.what} {error.where}"
    assert all([error.where, error.got, error.expected, error.remedy])
