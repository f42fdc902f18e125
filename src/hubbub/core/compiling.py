"""Loops compiled by Numba, with the settings that it needs before it is loaded."""

from __future__ import annotations

import os

# Before Numba starts its threads: threads that wait by spinning keep the processor from those with work. On a busy
# machine of two cores that made loops a hundred times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function, and cache the result on disk where that is possible."""
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # a package that cannot be written to, and no folder for a cache either
        return njit(**options)(function)
