"""What was computed for an object, remembered as long as the object is in use: by identity, whatever equality means."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import ref

Result = TypeVar("Result")


class Remembered(Generic[Result]):
    """Results by the objects that they were computed for."""

    def __init__(self) -> None:
        self._results: dict[int, tuple[ref[object], Result]] = {}

    def get(self, owner: object) -> Result | None:
        """Return what was put for this object, if anything."""
        known = self._results.get(id(owner))
        return None if known is None or known[0]() is not owner else known[1]

    def put(self, owner: object, result: Result) -> Result:
        """Remember the result until the object is no longer in use."""
        key = id(owner)
        self._results[key] = ref(owner, lambda _: self._results.pop(key, None)), result
        return result
