"""Values that can be sent between processes, and keys that are the same in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Portable:
    """A value that is pickled without its caches, and whose arrays stay read-only."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes that are not caches."""
        kind = type(self)
        held = vars(self).items()
        return {name: value for name, value in held if not isinstance(getattr(kind, name, None), cached_property)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes, and freeze their arrays: a pickle gives back writable ones."""
        _freeze(state.values())
        vars(self).update(state)

    def defining_state(self) -> dict[str, Any]:
        """Return the attributes that make two values different: all that are pickled, unless a class says otherwise."""
        return self.__getstate__()

    @cached_property
    def content_key(self) -> str:
        """A digest of the defining attributes: equal for equal values, in every process and installation."""
        return hashlib.sha256(_content(self).encode()).hexdigest()


def _freeze(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        elif isinstance(value, tuple):
            _freeze(value)


def _class_name(kind: type) -> str:
    """Return the name of a class in keys: within hubbub without its module, so that files can move.

    Keys decide the order of blocks and the seeds of plans: if they named modules, moving a file would change numbers.
    """
    if kind.__module__.partition(".")[0] == "hubbub":
        return f"hubbub.{kind.__qualname__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def _content(value: Any) -> str:
    if isinstance(value, Portable):
        inner = ",".join(f"{name}={_content(part)}" for name, part in sorted(value.defining_state().items()))
        return f"{_class_name(type(value))}({inner})"
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return f"array({_content(tuple(value.ravel().tolist()))})"
        return f"array({value.dtype},{value.shape},{hashlib.sha256(value.tobytes()).hexdigest()})"
    if isinstance(value, tuple | list):
        return f"({','.join(map(_content, value))})"
    if hasattr(value, "indptr"):  # a sparse table, by its arrays; the width of its indices does not matter
        parts = (value.indptr.astype(np.int64), value.indices.astype(np.int64), value.data)
        return f"sparse({','.join(map(_content, parts))})"
    return repr(value.item() if isinstance(value, np.generic) else value)


class ReadOnly(Mapping[str, T]):
    """A mapping that cannot be changed, and can be pickled and hashed."""

    def __init__(self, items: Mapping[str, T]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)
