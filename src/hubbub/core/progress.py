"""How far a long computation has come: yielded by computations, shown by whoever runs them."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """So many of so many steps are done, and what is done now."""

    done: int
    total: int
    what: str
