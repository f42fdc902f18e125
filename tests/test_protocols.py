"""The benchmark of the same protocols in other tools: what is paired, and what is measured of epsilon."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from benchmark_modules import benchmark

PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"


def names_in(runner: str) -> list[str]:
    """The protocols of a runner, which imports what is not installed here."""
    for node in ast.parse((PEERS / runner).read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PROTOCOLS":
            assert isinstance(node.value, ast.Dict)
            return [str(ast.literal_eval(key)) for key in node.value.keys if key is not None]
    raise AssertionError(runner)


def test_each_protocol_that_a_runner_knows_is_paired() -> None:
    pairs = benchmark("protocol_pairs")
    protocols = benchmark("protocols")
    for tool, runner in protocols.RUNNER_OF.items():
        assert names_in(runner) == [pair.protocol for pair in pairs.PAIRS if pair.tool == tool]


def test_each_mechanism_that_is_here_spends_what_is_claimed() -> None:
    pairs = benchmark("protocol_pairs").PAIRS
    built = {pair.name: pair.build(hb, hb.Integers(0, 9), 2.0, 1.0) for pair in pairs if hasattr(hb, pair.needs)}
    assert len(built) >= 19
    for pair in pairs:
        if pair.name in built:
            spent = built[pair.name].spent(1)
            claim = 1.0 if pair.has_memory else 2.0
            assert spent <= claim * (1 + 1e-12)
            assert spent > 0.5 * claim, pair.name


def drawn(share: float, other: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Reports of two values: a key 3 with these probabilities, otherwise 1 or 2."""
    return tuple(np.where(rng.random(20_000) < p, 3, rng.integers(1, 3, 20_000)) for p in (share, other))  # type: ignore[return-value]


def test_an_epsilon_is_measured_from_below() -> None:
    bound = benchmark("protocols").bound_of_keys
    rng = np.random.default_rng(5)
    for share, other in ((0.5, 0.125), (0.125, 0.5)):
        low = bound(*drawn(share, other, rng))
        assert math.log(4) - 0.2 < low < math.log(4)
    assert bound(*drawn(0.5, 0.5, rng)) < 0.05
    assert bound(*drawn(0.5, 0.0, rng)) > 5.0  # a key that the other value never sends


def test_errors_are_those_to_the_people_who_took_part() -> None:
    errors = benchmark("protocol_pairs").errors(
        np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]), np.array([0, 1, 1, 2]), 3
    )
    assert errors["squares"] == pytest.approx([2 * 0.25**2 / 3, 0.0])
    assert errors["variations"] == pytest.approx([0.25, 0.0])


def test_the_page_has_the_table_and_the_sentence_that_were_measured() -> None:
    table = benchmark("table")
    figures = dict.fromkeys(table.FIGURES, "x") | {"faster": "40", "tool": "tool"}
    rows = [
        {"problem": "a", "measured": "microseconds", "holds": True, "figures": figures},
        {"problem": "a", "measured": "mean squared error by inv", "holds": True},
        {"problem": "a", "measured": "epsilon of one report, claimed 2", "holds": False},
    ]
    page = table.PEERS.read_text()
    written = table.with_protocols(page, rows)
    assert "Of 1 protocols, hubbub is 40 to 40 times as fast, at least 20 times in 1;" in written
    assert "in 1 of 1; its epsilon is proven in 0 of 1." in written
    assert "| tool | x | x | 40 | x | x | x |" in written
    assert table.with_protocols(written, rows) == written
    assert table.with_protocols(page, []) == page
