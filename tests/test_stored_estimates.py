"""A dozen small studies come out as they always did (`stored_estimates.py` made the numbers)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stored_estimates import FILE, PROBLEMS, answers

KEPT = json.loads(Path(FILE).read_text(encoding="utf-8"))


def test_every_study_is_kept() -> None:
    assert set(KEPT) == set(PROBLEMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_study_comes_out_as_it_always_did(name: str) -> None:
    now, kept = answers(PROBLEMS[name]()), KEPT[name]
    assert set(now) == set(kept)
    for key, answer in kept.items():
        assert same(now[key], answer), f"{key}: {now[key]} instead of {answer}"


def same(now: Any, kept: Any) -> bool:
    """Whether two answers agree up to what another processor's rounding does, which iterative answers magnify."""
    if isinstance(kept, str):
        return bool(now == kept)
    if isinstance(kept, dict):
        return bool(
            np.allclose(now["probabilities"], kept["probabilities"], rtol=0, atol=1e-7)
            and np.isclose(now["log_likelihood"], kept["log_likelihood"], rtol=1e-10, atol=0)
        )
    return bool(np.allclose(now, kept, rtol=1e-6, atol=1e-6, equal_nan=True))
