"""A claimed epsilon that holds and is larger than need be: what audits and plans say of it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from terminal import hubbub

COIN = hb.Categories(["yes", "no"])


@dataclass(frozen=True)
class Coin(hb.Mechanism):
    """The truth with probability 3/4, whose epsilon is log 3, under a claim of its own."""

    domain: hb.Domain
    epsilon: float

    @property
    def outputs(self) -> Any:
        return self.domain.labels

    def matrix(self) -> Any:
        return np.array([[0.75, 0.25], [0.25, 0.75]])


@dataclass(frozen=True)
class LeakingCoin(Coin):
    """A matrix with room to spare, and a sampler that sends the value itself."""

    def privatize(self, values: Any, *, rng: Any = None) -> Any:
        return np.asarray(values)


@pytest.mark.parametrize(
    ("claim", "loose", "verdict"),
    [
        (2.0, True, "proven"),
        (1.2, True, "proven"),
        (1.15, False, "proven"),  # 95.5% of it is realised
        (1.1, False, "proven"),  # what people round log 3 to
        (1.0, False, "refuted"),
    ],
)
def test_a_claim_is_loose_if_clearly_less_is_realised(claim: float, loose: bool, verdict: str) -> None:
    audit = hb.audit(Coin(COIN, claim), draws=1_000)
    assert (audit.verdict, audit.loose) == (verdict, loose)
    assert audit.realised_share == pytest.approx(math.log(3) / claim, rel=1e-12)
    said = [line for line in audit.sentences() if line.startswith("Loose: ")]
    assert len(said) == loose
    if loose:
        assert said[0].startswith(
            f"Loose: the realised epsilon is 1.099, {math.log(3) / claim:.0%} of the claimed {claim:g}"
        )
        assert said[0] in audit.explain()
    document = json.loads(audit.to_json())
    assert (document["loose"], document["realised_share"]) == (loose, audit.realised_share)
    assert ("Loose: " in document["text"]) == loose


def test_epsilon_per_unit_of_distance_may_be_loose_too() -> None:
    """Between categories all distances are 1, and exp(-epsilon d / 2) has the epsilon of k-RR at one half."""
    audit = hb.audit(hb.Exponential(hb.Categories(list("abc")), 2.0), draws=1_000)
    assert audit.realised_share == pytest.approx(0.5)
    assert "the realised epsilon per unit of distance is 1, 50% of the claimed 2" in audit.explain()


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.RandomizedResponse(COIN, 1.0),
        hb.Rappor(COIN, 1.0),
        hb.LongitudinalRappor(COIN, 2.0, first=1.0),
        hb.TruncatedGeometric(hb.Integers(0, 9), 0.5),
        hb.Matrix(COIN, [0, 1], [[0.75, 0.25], [0.25, 0.75]]),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_mechanisms_that_use_what_they_claim_are_not_loose(mechanism: hb.Mechanism) -> None:
    audit = hb.audit(mechanism, draws=1_000)
    assert audit.loose is False
    assert audit.realised_share == pytest.approx(1.0, rel=1e-9)


def test_nothing_is_said_without_a_proof_or_a_claim() -> None:
    sampler = hb.audit(lambda values: np.zeros(len(values)), domain=COIN, epsilon=1.0, draws=1_000)
    cloaking = hb.audit(hb.Cloaking(COIN, ["a", "b"]), draws=1_000)
    constant = hb.audit(hb.Matrix(COIN, ["only"], [[1.0], [1.0]]), draws=1_000)
    for audit in (sampler, cloaking, constant):
        assert audit.realised_share is None
        assert audit.loose is None
        assert json.loads(audit.to_json())["loose"] is None
        assert "Loose" not in audit.explain()


def test_a_claim_that_draws_refute_is_not_called_loose() -> None:
    audit = hb.audit(LeakingCoin(COIN, 2.0), draws=2_000)
    assert audit.verdict == "refuted"
    assert audit.loose is False
    assert "Loose" not in audit.explain()


def test_the_terminal_says_it(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 9\n'
        '[mechanisms.far]\nkind = "exponential"\nepsilon = 1.0\n'
        '[mechanisms.near]\nkind = "truncated-geometric"\nepsilon = 1.0\n'
    )
    shown = " ".join(hubbub("audit", "study.toml", "--draws", "500", cwd=tmp_path).stdout.split())
    assert shown.count("Loose: the realised epsilon per unit is 0.7118, 71% of the claimed 1:") == 1
    printed = json.loads(hubbub("audit", "study.toml", "--draws", "500", "--json", cwd=tmp_path).stdout)
    assert {name: audit["loose"] for name, audit in printed["mechanisms"].items()} == {"far": True, "near": False}
    planned = " ".join(hubbub("plan", "study.toml", "--difference", "10%", cwd=tmp_path).stdout.split())
    assert "far realises 71% of the epsilon that it claims" in planned


def test_plans_say_which_candidates_claim_too_much_or_too_little() -> None:
    plan = hb.plan({"loose": Coin(COIN, 2.0), "false": Coin(COIN, 1.0), "fair": Coin(COIN, 1.1)}, difference=0.1)
    assert plan.notes[:2] == (
        "false: users spend more epsilon than is claimed; an audit says how much.",
        "loose realises 55% of the epsilon that it claims: its reports have more noise than the claim allows, and "
        "candidates are compared by their claims.",
    )
    assert not any("fair" in note for note in plan.notes)
    expected = [math.log(3) / claim for claim in (2.0, 1.0, 1.1)]
    assert [need.realised_share for need in plan.needed] == pytest.approx(expected)
    assert plan.to_frame()["realised_share"].tolist() == pytest.approx(expected)
    assert [need["realised_share"] for need in json.loads(plan.to_json())["needed"]] == pytest.approx(expected)


def test_plans_of_every_kind_say_it() -> None:
    kinds = {"domain": hb.Integers(0, 4), "epsilon": [1.0, 4.0], "method": "inv-p", "runs": 20}
    errors = hb.plan("exponential", users=500, **kinds)  # type: ignore[arg-type]
    shares = [setting.realised_share for setting in errors.settings]
    lowest, highest = sorted(f"{share:.0%}" for share in shares if share is not None)
    assert f"exponential realises {lowest} to {highest} of the epsilon that it claims" in errors.explain()
    epsilon = hb.plan("exponential", users=100_000, target=0.1, **kinds)  # type: ignore[arg-type]
    assert epsilon.needed[0].value is not None
    assert 0.5 <= (epsilon.needed[0].realised_share or 0.0) < 0.95


def test_a_mixture_spends_what_its_most_costly_part_does() -> None:
    parts = [(Coin(COIN, 2.0), 0.5), (hb.RandomizedResponse(COIN, 1.0), 0.5)]
    assert hb.plan([parts], difference=0.1).needed[0].realised_share == pytest.approx(math.log(3) / 2.0)
    parts = [(Coin(COIN, 2.0), 0.5), (hb.RandomizedResponse(COIN, 2.0), 0.5)]
    assert hb.plan([parts], difference=0.1).needed[0].realised_share == pytest.approx(1.0)


def test_a_plan_does_not_prove_what_takes_long() -> None:
    large = hb.plan(hb.Exponential(hb.Integers(1, 65), 1.0), difference=0.1)
    assert large.needed[0].realised_share is None
    assert not any("realises" in note for note in large.notes)
