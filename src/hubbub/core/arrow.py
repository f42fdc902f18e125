"""Arrow, which is loaded when it is first used: that takes longer than everything else that hubbub imports."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["csv", "pa", "parquet", "pc"]


class _LazyModule(ModuleType):
    """A module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv, parquet
else:
    pa, pc = _LazyModule("pyarrow"), _LazyModule("pyarrow.compute")
    csv, parquet = _LazyModule("pyarrow.csv"), _LazyModule("pyarrow.parquet")
