"""What mechanisms are called in study files: hubbub's kinds, those that people register, and classes by their place.

A kind is one of hubbub's own; a registered one; one that an installed package offers as an entry point; or the place of
a class, ``module:Class``. A place is code that a file names: it is imported only where somebody allowed it, and known
from then on. Classes of mechanisms that a program puts into a study itself are known as well, also in a process that
the study is sent to. Every class has one name, which does not depend on what was read before.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from hubbub import mechanisms
from hubbub.client import SHORT_NAMES, short_name
from hubbub.core.entry_points import load, offered
from hubbub.core.errors import HubbubError, MechanismError, StudyError, shorten
from hubbub.core.registered_names import check_name, is_same_definition
from hubbub.core.text import kebab
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.several_attributes import SeveralAttributes

GROUP = "hubbub.mechanisms"
WHERE = "register_mechanism"
PLACE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
NOT_ALLOWED, UNKNOWN = "code-not-allowed", "unknown-kind"  # codes of errors

Kind = type[Mechanism]

KINDS: dict[str, Kind] = {kebab(name): getattr(mechanisms, name) for name in mechanisms.__all__ if name != "Mechanism"}
EVERY = "all"  # where plans and benchmarks take kinds, this stands for every one of them
TAKEN = frozenset({*KINDS, *SHORT_NAMES, EVERY})
_registered: dict[str, Kind] = {}
_known_places: dict[str, Kind] = {}  # classes that somebody decided to run


def register_mechanism(kind: str, mechanism: Kind) -> None:
    """Register a class of mechanisms of your own, in this process: study files, tallies and plans then know its kind.

    An installed package needs no call: its entry points of the group ``hubbub.mechanisms`` are found by their names,
    also at the terminal. In a study file the fields of a mechanism's table are the keywords of the class.

    Parameters
    ----------
    kind : str
        What study files call it: lower-case words with hyphens, none of hubbub's own.
    mechanism : type
        A subclass of `Mechanism`, whose first argument is the domain. Register it under another kind when its
        probabilities change: a fingerprint knows the kind and the fields, not the code.

    Raises
    ------
    MechanismError
        If the kind is taken or has another form, or the class is none of mechanisms.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import hubbub as hb
    >>> @dataclass(frozen=True)
    ... class Lazy(hb.Mechanism):
    ...     domain: hb.Domain
    ...     epsilon: float
    ...
    ...     @property
    ...     def outputs(self):
    ...         return self.domain.labels
    ...
    ...     def matrix(self):
    ...         weights = np.where(np.eye(len(self.domain)), np.exp(self.epsilon), 1.0)
    ...         return weights / weights.sum(axis=1, keepdims=True)
    >>> hb.register_mechanism("lazy", Lazy)
    >>> plan = hb.plan("lazy", domain=hb.Integers(0, 3), epsilon=1.0, users=1_000, method="inv-p", runs=20)
    >>> plan.settings[0].candidate
    'lazy'
    """
    if kind == EVERY:
        raise MechanismError(
            f"{EVERY!r} stands for all kinds",
            where=f"{WHERE}(kind)",
            got=shorten(kind),
            expected="the name of one kind",
            remedy="choose another name",
        )
    checked = check_name(short_name(kind) or kind, TAKEN, WHERE, MechanismError, kind="kind", argument="kind")
    checked_class = _checked(mechanism, f"{WHERE}(mechanism)", MechanismError)
    before = _registered.get(checked)
    if before is not None and not is_same_definition(before, checked_class):
        raise MechanismError(
            f"there is a kind {checked!r} already",
            where=f"{WHERE}(kind)",
            got=shorten(before),
            expected="a new kind",
            remedy="choose another kind",
        )
    name = _own_name(checked_class)
    if name not in (None, checked):
        raise MechanismError(
            "the class has a kind already",
            where=f"{WHERE}(kind)",
            got=f"{checked!r} for a class that is {name!r}",
            expected="one kind for each class",
            remedy=f"use {name!r}, or register a subclass",
        )
    _registered[checked] = checked_class


def kind_of(mechanism: Kind) -> str:
    """Return what study files call a class: its kind, or its place."""
    return _own_name(mechanism) or place_of(mechanism)


def place_of(mechanism: Kind) -> str:
    """Return the module and the name of a class."""
    return f"{mechanism.__module__}:{mechanism.__qualname__}"


def _own_name(mechanism: Kind) -> str | None:
    """Return the kind of a class: hubbub's, a registered one, or that of an installed package; None if it has none."""
    if KINDS.get(kebab(mechanism.__name__)) is mechanism:
        return kebab(mechanism.__name__)
    for kind, known in _registered.items():
        if known is mechanism:
            return kind
    package = mechanism.__module__.partition(".")[0]
    for point in offered(GROUP, TAKEN, StudyError).values():
        # The package is imported already; it may offer the class from another module than the one that defines it.
        if point.module.partition(".")[0] == package and load(point, StudyError) is mechanism:
            return point.name
    return None


def find_kind(kind: str, where: str, *, allow_code: bool = False) -> Kind | None:
    """Return the class of a kind, None if there is none; refuse the place of a class that nobody allowed."""
    known = KINDS.get(kind) or _registered.get(kind) or _known_places.get(kind)
    if known is not None:
        return known
    if ":" in kind:
        return _at_place(kind, where, allow_code=allow_code)
    point = offered(GROUP, TAKEN, StudyError).get(kind)
    if point is None:
        return None
    _registered[kind] = _checked(load(point, StudyError), f"entry points {GROUP}, {kind}", StudyError)
    return _registered[kind]


def own_kinds() -> list[str]:
    """Return the kinds that are not hubbub's: registered ones, and those of installed packages."""
    return sorted({*_registered, *offered(GROUP, TAKEN, StudyError)})


def know(mechanism: Mechanism) -> None:
    """Remember the class of a mechanism that this process was given: a study may name its place."""
    for kind in _kinds(mechanism):
        if kind.__module__.partition(".")[0] != "hubbub" and _can_be_imported(place_of(kind)):
            _known_places[place_of(kind)] = kind


def names_code(mechanism: Mechanism) -> bool:
    """Whether a study file with this mechanism names the place of a class."""
    return any(":" in kind_of(kind) for kind in _kinds(mechanism))


def unreachable(mechanism: Mechanism) -> str | None:
    """Return the place of a class that no other process could import: of a notebook, a script or a function."""
    places = (kind_of(kind) for kind in _kinds(mechanism))
    return next((place for place in places if ":" in place and not _can_be_imported(place)), None)


def _kinds(mechanism: Mechanism) -> list[Kind]:
    """Return the class of a mechanism, or those of its parts."""
    parts = mechanism.parts.values() if isinstance(mechanism, SeveralAttributes) else (mechanism,)
    return [type(part) for part in parts]


def _can_be_imported(place: str) -> bool:
    return PLACE.fullmatch(place) is not None and not place.startswith("__main__:")


def _at_place(kind: str, where: str, *, allow_code: bool) -> Kind:
    """Import the class at a place, if that is allowed."""
    if not PLACE.fullmatch(kind):
        raise StudyError(
            "this is not the place of a class",
            where=where,
            got=shorten(kind),
            expected="module:Class, such as my_waves:SquareWave",
            remedy="correct it, or name a kind",
        )
    if not allow_code:
        raise StudyError(
            "the study names code, which is not run unless you allow it",
            where=where,
            got=shorten(kind),
            expected="a kind of hubbub's own, or of an installed package",
            remedy="if you trust this code, allow it: --allow-code at the terminal, hubbub.read_study(path, "
            "allow_code=True) in Python",
            code=NOT_ALLOWED,
        )
    module, _, name = kind.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as cause:  # whatever the module's own code raises
        raise StudyError(
            "the code that the study names cannot be loaded",
            where=where,
            got=f"{type(cause).__name__}: {cause}",
            expected=f"a class {name} in an importable module {module}",
            remedy="install the module, or put its folder on PYTHONPATH",
        ) from cause
    mechanism = _checked(found, where, StudyError)
    if (own := _own_name(mechanism)) is not None:
        raise StudyError(
            "the class has a kind, and so two spellings",
            where=where,
            got=shorten(kind),
            expected=f"kind = {own!r}",
            remedy="write the kind: studies with two spellings would have two fingerprints",
        )
    _known_places[kind] = _known_places[place_of(mechanism)] = mechanism
    return mechanism


def _checked(found: object, where: str, error: type[HubbubError]) -> Kind:
    """Return a class of mechanisms; refuse anything else."""
    if isinstance(found, type) and issubclass(found, Mechanism) and not getattr(found, "__abstractmethods__", None):
        return found
    missing = ", ".join(sorted(getattr(found, "__abstractmethods__", None) or ()))
    raise error(
        "this is not a class of mechanisms",
        where=where,
        got=f"{shorten(found)}, which lacks {missing}" if missing else shorten(found),
        expected="a subclass of hubbub.Mechanism that defines outputs and matrix",
        remedy="pass the class itself, not an object of it",
    )
