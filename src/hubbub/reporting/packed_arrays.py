"""Arrays as texts in the page's block of data: floats to the last bit, little-endian, in base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from hubbub.core.arrays import Floats


def packed_floats(values: Floats | None) -> str | None:
    """Return float64 numbers; None if none of them is known."""
    if values is None or (values.size > 0 and bool(np.isnan(values).all())):
        return None
    return base64_text(np.asarray(values, dtype="<f8"))


def base64_text(values: npt.NDArray[Any]) -> str:
    """Return the bytes of an array as text."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
