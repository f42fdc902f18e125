"""Bounds for pairs of values: proven by whole numbers, and compared with fractions."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from exactly import rows_of
from hubbub.auditing.pair_bounds import prove_pair_bounds
from strategies import examples, matrices

ANSWERS = hb.Categories(["yes", "no", "refused"])
TABLE = hb.Matrix(ANSWERS, ["A", "B"], [[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]])


def largest_log(matrix: hb.Mechanism, value: int, other: int) -> arb | None:
    """Return the largest log-ratio of the numbers that are drawn, by the definition; None if it is infinite."""
    rows = rows_of(matrix.law, len(matrix.domain))
    largest = arb(0)
    for first, second in zip(rows[value], rows[other], strict=True):
        if not first and not second:
            continue
        if not first or not second:
            return None
        ratio = max(first / second, second / first)
        largest = largest.max((arb(ratio.numerator) / arb(ratio.denominator)).log())
    return largest


@examples(60)
@given(matrices(), st.data())
def test_pairs_are_enclosed_and_judged_as_fractions_say(matrix: hb.Matrix, data: st.DataObject) -> None:
    size = len(matrix.domain)
    value, other = data.draw(st.permutations(range(size)))[:2]
    bound = data.draw(st.floats(0, 5))
    pair = (matrix.domain.labels[value], matrix.domain.labels[other])
    found = prove_pair_bounds(matrix, {pair: bound}).worst
    with ctx.workprec(400):
        exact = largest_log(matrix, value, other)
        if exact is None:
            assert (found.low, found.high, found.holds) == (Decimal("inf"), Decimal("inf"), False)
            return
        assert arb(str(found.low)) <= exact + arb("1e-100")
        assert exact <= arb(str(found.high)) + arb("1e-100")
        assert found.holds == bool(exact <= arb(bound))
    assert float(found.high) <= float(found.low) * (1 + 1e-15) + 1e-15


def test_a_bound_counts_in_both_directions_and_the_worst_pair_is_named() -> None:
    for pair in (("yes", "refused"), ("refused", "yes")):
        audit = hb.audit(TABLE, pairs={("yes", "no"): 0.5, pair: 0.2}, draws=200)
        assert audit.pairs is not None
        worst = audit.pairs.worst
        assert (worst.value, worst.other, worst.output, worst.holds) == (*pair, "B", False)
        assert float(worst.high) == pytest.approx(math.log(1.25), rel=1e-14)
        assert (audit.holds, audit.verdict) == (False, "refuted")
        assert audit.exact is not None
        assert audit.exact.holds  # the claim is true, and the policy is not kept
        text = audit.pairs.text()
        assert text.startswith("Refuted: 1 of 2 pairs of values has a larger log-ratio than allowed. The worst pair")
        assert f"compares {pair[0]!r} with {pair[1]!r}" in text
        assert text in audit.explain()


def test_the_largest_ratio_may_be_in_either_direction() -> None:
    """Downwards the factor is 10, upwards 1.1: the bound of log 2 is broken whichever value comes first."""
    rows = [[0.9, 0.1], [0.99, 0.01]]
    lopsided = hb.Matrix(hb.Categories(["a", "b"]), ["x", "y"], rows)
    for pair in (("a", "b"), ("b", "a")):
        assert not prove_pair_bounds(lopsided, {pair: math.log(2)}).holds
        assert prove_pair_bounds(lopsided, {pair: math.log(10) + 1e-12}).holds


def test_a_bound_is_kept_to_the_last_digit() -> None:
    exact = math.log(1.5)
    above, below = math.nextafter(exact, 1), math.nextafter(exact, 0)
    realised = prove_pair_bounds(TABLE, {("yes", "no"): 1.0}).worst
    for bound in (below, exact, above):
        kept = prove_pair_bounds(TABLE, {("yes", "no"): bound}).holds
        assert kept == (Decimal(bound) >= realised.high)
    assert prove_pair_bounds(TABLE, {("yes", "no"): float(realised.high) + 1e-15}).holds
    assert not prove_pair_bounds(TABLE, {("yes", "no"): float(realised.low) - 1e-15}).holds


def test_equal_rows_keep_a_bound_of_0_and_others_none_where_an_output_is_impossible() -> None:
    rows = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]]
    matrix = hb.Matrix(ANSWERS, ["x", "y", "z"], rows)
    equal = prove_pair_bounds(matrix, {("yes", "no"): 0})
    assert equal.holds
    assert equal.worst.low == equal.worst.high == 0
    unlike = prove_pair_bounds(matrix, {("yes", "no"): 0, ("yes", "refused"): 700})
    assert (unlike.holds, unlike.worst.output) == (False, "z")
    assert "the output z is possible for only one of them, and 700.0 is allowed" in unlike.text()
    free = prove_pair_bounds(matrix, {("yes", "refused"): math.inf})
    assert free.holds
    assert free.text().endswith("No bound is finite.")
    # There is no epsilon, and the policy is proven all the same.
    audit = hb.audit(matrix, pairs={("yes", "no"): 0, ("yes", "refused"): math.inf}, draws=200)
    assert (audit.claim, audit.verdict) == (math.inf, "proven")


def test_a_pair_in_both_orders_is_one_pair() -> None:
    both = prove_pair_bounds(TABLE, {("yes", "no"): 1, ("no", "yes"): 1.0})
    assert [(pair.value, pair.other, pair.bound) for pair in both.pairs] == [("yes", "no", 1.0)]
    with pytest.raises(hb.SettingError, match="listed twice, with two bounds"):
        prove_pair_bounds(TABLE, {("yes", "no"): 1, ("no", "yes"): 2})


def test_clamped_noise_and_values_that_are_tuples_have_tables_too() -> None:
    line = hb.TruncatedGeometric(hb.Integers(0, 9), 0.5)
    assert prove_pair_bounds(line, {(0, 1): 0.5, (0, 4): 2.0}).holds
    assert not prove_pair_bounds(line, {(0, 1): 0.4}).holds
    both = hb.Product(a=hb.Integers(0, 1), b=hb.Categories(["x", "y"]))
    matrix = hb.Matrix(both, ["u", "v"], [[0.5, 0.5], [0.4, 0.6], [0.6, 0.4], [0.5, 0.5]])
    found = prove_pair_bounds(matrix, {((0, "x"), (1, "y")): 0.0, ((0, "x"), (0, "y")): 0.3})
    assert found.holds
    assert found.document()["worst"]["value"] == {"a": 0, "b": "x"} or found.document()["worst"]["value"] == [0, "x"]


def test_many_pairs_are_proven_at_once() -> None:
    rows = np.random.default_rng(5).dirichlet(np.full(40, 5.0), size=12)
    matrix = hb.Matrix(hb.Integers(0, 11), list(range(40)), rows)
    logs = np.log(matrix.probabilities)
    apart = {
        (here, there): float(np.abs(logs[here] - logs[there]).max()) for here in range(12) for there in range(here)
    }
    assert prove_pair_bounds(matrix, {pair: bound + 1e-12 for pair, bound in apart.items()}).holds
    found = prove_pair_bounds(matrix, {pair: bound - 1e-12 for pair, bound in apart.items()})
    assert not any(pair.holds for pair in found.pairs)
    for pair in found.pairs:
        assert float(pair.high) == pytest.approx(apart[pair.value, pair.other], rel=1e-13)  # type: ignore[index]


def test_the_answer_is_in_the_json_document() -> None:
    audit = hb.audit(TABLE, pairs={("yes", "no"): 0.5, ("yes", "refused"): math.inf}, draws=200)
    document: dict[str, Any] = json.loads(audit.to_json())["pairs"]
    assert document["holds"] is True
    assert list(document["worst"]) == ["value", "other", "bound", "holds", "epsilon", "output"]
    assert [(pair["value"], pair["other"], pair["bound"]) for pair in document["pairs"]] == [
        ("yes", "no", 0.5),
        ("yes", "refused", None),
    ]
    assert Decimal(document["worst"]["epsilon"]["low"]) <= Decimal(document["worst"]["epsilon"]["high"]) < 0.5
    assert json.loads(hb.audit(TABLE, draws=200).to_json())["pairs"] is None
