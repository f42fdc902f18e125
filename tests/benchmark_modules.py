"""Modules of benchmarks/, which import each other by bare names that some helpers of the tests have, too."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "benchmarks"
_NAMES = frozenset(path.stem for path in FOLDER.glob("*.py"))
_loaded: dict[str, Any] = {}


def benchmark(name: str) -> Any:
    """Return a module of benchmarks/, and leave what is imported by the same names elsewhere as it is."""
    if name not in _loaded:
        others = {own: sys.modules.pop(own) for own in _NAMES if own in sys.modules}
        sys.modules.update(_loaded)
        sys.path.insert(0, str(FOLDER))
        try:
            importlib.import_module(name)
        finally:
            sys.path.remove(str(FOLDER))
            _loaded.update({own: sys.modules.pop(own) for own in _NAMES if own in sys.modules})
            sys.modules.update(others)
    return _loaded[name]
