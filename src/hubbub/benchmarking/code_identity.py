"""What code of one's own is, in a digest: equal as long as it would compute the same, in every process.

The walk starts at an object and writes down all that decides what it computes: of a function its instructions, default
arguments and closure, and each global that it names; of a class what it and its bases define; of any other object what
pickle would write. It follows what is yours: what is neither hubbub's, nor Python's, nor of another installed package.
Of these the name and the version count. Line numbers, names of files and comments do not.

What has no such description (a lock, an open file) is refused, because nobody could tell whether it has changed.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import hashlib
import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from hubbub.mechanisms import Mechanism

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
READS_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
WRAPPED = ("__wrapped__", "py_func")  # functions behind what caches or compiles them
INSTALLED = frozenset({"site-packages", "dist-packages"})
DECIDES = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags",
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable")  # fmt: skip


class UnidentifiedError(Exception):
    """Something has no description that another process would repeat; the text says what and where."""


def identity_of(thing: object) -> str:
    """Return a digest of what decides the behaviour of an object; raise `UnidentifiedError` where nothing can tell."""
    try:
        return hashlib.sha256(_Walk(thing).described(thing).encode(errors="backslashreplace")).hexdigest()
    except RecursionError:
        raise UnidentifiedError("it is nested too deeply") from None


class _Walk:
    """One walk, which describes each thing once: a thing that comes again is named by its number."""

    def __init__(self, start: object) -> None:
        self._homes = {_home(start)} - {""}
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # so that no number is given to two things
        self._trail: list[str] = []

    def described(self, value: Any) -> str:
        if type(value) in PLAIN:
            return f"{type(value).__name__} {value!r}"
        if type(value) is tuple:
            return self._each("tuple", value)
        if type(value) in (set, frozenset):
            return f"{type(value).__name__}({','.join(sorted(map(self._apart, value)))})"
        if isinstance(value, CodeType):
            return self._code(value, {})
        if id(value) in self._numbers:
            return f"#{self._numbers[id(value)]}"
        self._numbers[id(value)] = len(self._kept)
        self._kept.append(value)
        return self._new(value)

    def _new(self, value: Any) -> str:
        """Describe what was not met before."""
        if type(value) is list:
            return self._each("list", value)
        if type(value) in (dict, MappingProxyType):
            return self._each("dict", [part for item in value.items() for part in item])
        if type(value) is np.ndarray and not value.dtype.hasobject:
            return f"array {value.dtype.descr} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, ModuleType):
            return _place(value.__name__)
        if isinstance(value, GetSetDescriptorType | MemberDescriptorType):
            return f"slot {value.__name__}"
        if isinstance(value, FunctionType):
            return self._function(value) if self._is_own(value) else _place(value.__module__, value.__qualname__)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, property):
            return self._each("property", (value.fget, value.fset, value.fdel))
        if isinstance(value, staticmethod | classmethod):
            return self._each(type(value).__name__, (value.__func__,))
        if isinstance(value, cached_property):
            return self._each("cached_property", (value.func,))
        for name in WRAPPED:
            if callable(inner := getattr(value, name, None)):
                return self._each(f"{type(value).__name__} around", (inner,))
        return self._object(value)

    def _each(self, kind: str, values: Any) -> str:
        return f"{kind}({','.join(map(self.described, values))})"

    def _named(self, kind: str, values: Mapping[str, Any]) -> str:
        found = []
        for name in sorted(values):
            with self._at(f"{kind} {name}"):
                found.append(f"{name}={self.described(values[name])}")
        return f"{kind}s({','.join(found)})"

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        """Remember where the walk is, for messages."""
        self._trail.append(name)
        yield
        self._trail.pop()

    def _apart(self, value: Any) -> str:
        """Describe a member of a set as if nothing was met in it: sets come in another order in each process."""
        numbers, kept = dict(self._numbers), list(self._kept)
        try:
            return self.described(value)
        finally:
            self._numbers, self._kept = numbers, kept

    # -- code --------------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> str:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        return "".join(
            [
                self._code(function.__code__, function.__globals__),
                self._each("defaults", (function.__defaults__, function.__kwdefaults__)),
                self._named("closure variable", {name: _content(cell) for name, cell in cells}),
                self._named("attribute", vars(function)),
            ]
        )

    def _code(self, code: CodeType, namespace: Mapping[str, Any]) -> str:
        """Describe instructions with what they name; code inside sees the same globals."""
        inner = [
            self._code(each, namespace) if isinstance(each, CodeType) else self.described(each)
            for each in code.co_consts
        ]
        numbers = [repr(getattr(code, name)) for name in DECIDES]
        steps = list(dis.get_instructions(code))
        read = sorted({step.argval for step in steps if step.opname in READS_GLOBALS})
        found = {name: namespace[name] for name in read if name in namespace}
        found |= {f"import of {name}": module for name, module in _imports(steps, namespace)}
        found |= self._attributes(found, code.co_names)
        return f"code({','.join(numbers + inner)}){self._named('global', found)}"

    def _attributes(self, found: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        """Return what code may take from modules of one's own, and from modules in these, by the names that it uses."""
        taken: dict[str, Any] = {}
        waiting, met = list(found.items()), set()
        while waiting:
            place, module = waiting.pop()
            if self._is_own_module(module) and id(module) not in met:
                met.add(id(module))
                inside = {f"{place}.{name}": getattr(module, name) for name in names if hasattr(module, name)}
                taken |= inside
                waiting += inside.items()
        return taken

    def _class(self, kind: type) -> str:
        """Describe a class by what it and its bases define, as far as they are one's own."""
        if issubclass(kind, Mechanism):
            self._homes.add(_home(kind))
        if not self._is_own(kind):
            return _place(kind.__module__, kind.__qualname__)
        bases = self._each("bases", kind.__mro__[1:])
        return f"class {bases}{self._named(f'{kind.__qualname__}, member', _members(kind))}"

    def _object(self, value: Any) -> str:
        """Describe any other object by what pickle would write."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            written = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:  # a class of one's own may refuse in its own way
            raise UnidentifiedError(", ".join([*self._trail, f"a {type(value).__qualname__}"])) from None
        if isinstance(written, str):
            return _place(str(getattr(value, "__module__", "")), written)
        builder, arguments, *rest = written
        rest = [list(part) if isinstance(part, Iterator) else part for part in rest]
        return self._each("object", (builder, arguments, *rest))

    # -- what is one's own -------------------------------------------------------------------------------------

    def _is_own(self, code: FunctionType | type) -> bool:
        """Whether a function or class is to be looked into."""
        module = code.__module__
        if module == "builtins":  # what has no module is said to be there, too
            return getattr(builtins, code.__name__, None) is not code
        return module is None or self._is_own_place(module)

    def _is_own_module(self, value: object) -> bool:
        return isinstance(value, ModuleType) and self._is_own_place(value.__name__)

    def _is_own_place(self, module: str) -> bool:
        package = module.partition(".")[0]
        if package == "__main__" or package in self._homes:
            return True
        if package in ("", "hubbub") or package in sys.stdlib_module_names:
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        return file is None or INSTALLED.isdisjoint(Path(file).parts)


def _home(start: Any) -> str:
    """Return the package that an object comes from, which is one's own even if it is installed."""
    while isinstance(start, partial | MethodType):
        start = start.func if isinstance(start, partial) else start.__func__
    code = start if isinstance(start, type | FunctionType) else type(start)
    package = str(code.__module__).partition(".")[0]
    return "" if package == "hubbub" or package in sys.stdlib_module_names else package


def _place(module: str, name: str = "") -> str:
    """Return the name of something that is not one's own, with the version of its package."""
    version = getattr(sys.modules.get(str(module).partition(".")[0]), "__version__", "")
    return f"{module}:{name} {version}"


def _content(cell: Any) -> object:
    """Return what a variable of a closure holds; a sign where it holds nothing yet."""
    with suppress(ValueError):
        return cell.cell_contents
    return "nothing yet"


def _imports(steps: list[dis.Instruction], namespace: Mapping[str, Any]) -> Iterator[tuple[str, ModuleType]]:
    """Return the modules that a function imports when it runs."""
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[place - 2].argval  # how many dots
            dots = "." * level if isinstance(level, int) else ""
            with suppress(Exception):  # whatever the module raises, the function will meet it, too
                yield step.argval, importlib.import_module(f"{dots}{step.argval}", namespace.get("__package__"))


def _members(kind: type) -> dict[str, Any]:
    """Return what a class defines: all but notes on it, such as its docstring and its annotations."""
    return {
        name: value
        for name, value in vars(kind).items()
        if isinstance(value, FunctionType | property | staticmethod | classmethod)
        or not (name.startswith("__") or name == "_abc_impl")
    }
