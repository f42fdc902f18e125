"""A console of Rich's that shows texts as they are; by itself, since help and version do without Rich."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console

from hubbub.core.redaction import redact


class PlainConsole(Console):
    """A console that shows texts as they are: labels are data, not markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, and hide passwords: the name of a file may be an address that was given by mistake."""
        super().print(*(redact(each) if isinstance(each, str) else each for each in objects), **options)

    def on_broken_pipe(self) -> None:
        """Leave in silence: the reader of our output has seen enough."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)
