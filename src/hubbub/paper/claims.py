"""The paper's claims as data: read and checked.

Every claim names the check that judges it; what the check needs to know stands beside it in `claims.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hubbub.core.errors import SettingError, shorten

COMMON_FIELDS = ("id", "figure", "where", "says", "check")


@dataclass(frozen=True)
class Parameters:
    """What a claim tells its check: some things every check may be told, the others those of `FIELDS_OF_CHECKS`."""

    # Which settings, and how sure the check has to be.
    truths: tuple[str, ...] = ()  # names of truths; all of them, if none is given. The same for the next two.
    mechanisms: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    level: float = 0.01  # of all tests behind one verdict together
    delta: float = 0.1  # where "em" stops: what the paper's may have been, it does not say
    tie: float = 0.01  # relative: a difference this small, in the median, is none
    # Methods compared at each setting.
    tests: tuple[str, ...] = ()  # "em < inv-n in tv", "em < 0.5 inv-n in tv", "em ~ inv-p in emd"
    margin: float = 0.1  # relative: what "~" allows
    floor: float = 0.0  # absolute: what "~" allows at least, where distances are small
    published: tuple[str, ...] = ()  # the paper's own numbers on this, in words
    # Settings compared with each other, by these methods and distances.
    methods: tuple[str, ...] = ()
    distances: tuple[str, ...] = ("tv",)
    along: str = "epsilon"  # the distance falls from setting to setting, along "epsilon" or "users"
    pairs: tuple[tuple[str, str], ...] = ()  # mechanisms: at equal epsilon, the first comes nearer to the truth
    small: float = 1.0  # epsilons below this are small: EM's lead is larger there than at the others...
    over: tuple[str, ...] = ()  # ...over these methods
    # Single numbers.
    method: str = ""  # the method that a number of the paper belongs to
    value: float = 0.0  # that number
    distance: str = "tv"
    within: float | None = None  # how near our median has to be; if not given, the number must be in our range
    numbers: tuple[
        tuple[str, str, str], ...
    ] = ()  # of EM: figure, name of the truth, distance; one delta fits them all
    share: float = 0.1  # of the cells, at least, have less than half a person
    gap: float = 1e-6  # nats per user: no certified gap is larger
    rise: float = 0.1  # the share of EM's smallest error by which it rises again, at least
    limit: float = 0.0  # what the share of wrong guesses tends to


COMMON_PARAMETERS = ("truths", "mechanisms", "epsilons", "level", "delta", "tie")
FIELDS_OF_CHECKS: Mapping[str, tuple[str, ...]] = {
    "compare": ("tests", "margin", "floor", "published"),
    "along": ("along", "methods", "distances"),
    "between": ("pairs", "methods", "distances"),
    "lead": ("small", "over", "distances"),
    "published": ("method", "value", "distance", "within"),
    "one-delta": ("numbers",),
    "empty": ("share",),
    "holes": (),
    "certified": ("gap",),
    "turning": ("rise",),
    "errors-vanish": ("limit",),
    "errors-stay": ("limit",),
    "ridge": (),
    "ideal": (),
    "only-maximum": (),
    "derivatives": (),
    "border": (),
}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or one of ours, and how it is judged."""

    id: str
    figure: str  # the name of the figure that shows it
    where: str  # labels of the paper's source; "beyond the paper" where it is our own
    says: str
    check: str
    parameters: Parameters

    @property
    def ours(self) -> bool:
        """Whether it goes beyond the paper."""
        return self.where.startswith("beyond the paper")


def read_claims() -> tuple[Claim, ...]:
    """Return all claims, in order."""
    text = files("hubbub.paper").joinpath("claims.toml").read_text(encoding="utf-8")
    return parse_claims(tomllib.loads(text))


def parse_claims(document: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Return the claims that a file holds; nothing in it may be unknown."""
    if set(document) != {"claim"}:
        raise _mistake("claims.toml", ", ".join(sorted(document)), "tables [[claim]], and nothing else")
    claims = tuple(_claim(entry) for entry in document["claim"])
    names = [claim.id for claim in claims]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _mistake("claims.toml", ", ".join(twice), "every id once")
    return claims


def _claim(entry: Mapping[str, Any]) -> Claim:
    where = f"claims.toml, {entry.get('id', 'a claim without an id')}"
    missing = [name for name in COMMON_FIELDS if not isinstance(entry.get(name), str)]
    if missing:
        raise _mistake(where, f"no text in {', '.join(missing)}", f"texts in {', '.join(COMMON_FIELDS)}")
    if entry["check"] not in FIELDS_OF_CHECKS:
        raise _mistake(where, f"check {entry['check']}", f"a check among {', '.join(FIELDS_OF_CHECKS)}")
    allowed = {*COMMON_PARAMETERS, *FIELDS_OF_CHECKS[entry["check"]]}
    own = {name: value for name, value in entry.items() if name not in COMMON_FIELDS}
    unknown = sorted(set(own) - allowed)
    if unknown:
        raise _mistake(where, ", ".join(unknown), f"for this check, fields among {', '.join(sorted(allowed))}")
    for name, value in own.items():
        default = getattr(Parameters, name)
        if not _same_type(value, default):
            raise _mistake(where, f"{name} = {shorten(value)}", f"something like {default!r}")
    parameters = Parameters(**{name: _frozen(value) for name, value in own.items()})
    return Claim(**{name: entry[name] for name in COMMON_FIELDS}, parameters=parameters)


def _same_type(value: object, default: object) -> bool:
    """Return whether a value has its default's type; None stands for a number that is not given."""
    if isinstance(default, tuple):
        return isinstance(value, list)
    if isinstance(default, str):
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


def _mistake(where: str, got: str, expected: str) -> SettingError:
    return SettingError("claims.toml is not valid", where=where, got=got, expected=expected, remedy="correct the file")
