"""Sweeps over many cases of one kind: the gate takes a sample of them, and the slow tests have the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Return all cases as parameters of a test; the gate takes the first of every `one_in`, and the others are slow."""
    parameters = []
    for place, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        parameters.append(pytest.param(*values, marks=[pytest.mark.slow] if place % one_in else []))
    return parameters
