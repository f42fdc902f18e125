"""The paper's claims as data: read and checked.

Every claim names the check that judges it; what the check needs to know stands beside it in `claims.toml`, and is
one of the classes of parameters here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib.resources import files
from typing import Any

from hubbub.core.errors import SettingError, shorten

COMMON_FIELDS = ("id", "figure", "where", "says", "check")


@dataclass(frozen=True)
class Parameters:
    """What every check may be told: which settings, and how sure it has to be."""

    truths: tuple[str, ...] = ()  # names of truths; all of them, if none is given. The same for the next two.
    mechanisms: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    level: float = 0.01  # of all tests behind one verdict together
    delta: float = 0.1  # where "em" stops: what the paper's may have been, it does not say
    tie: float = 0.01  # relative: a difference this small, in the median, is none


@dataclass(frozen=True)
class Compare(Parameters):
    """Compare methods at each setting: "em < inv-n in tv", "em < 0.5 inv-n in tv", "em ~ inv-p in emd"."""

    tests: tuple[str, ...] = ()
    margin: float = 0.1  # relative: what "~" allows
    floor: float = 0.0  # absolute: what "~" allows at least, where distances are small
    published: tuple[str, ...] = ()  # the paper's own numbers on this, in words


@dataclass(frozen=True)
class Along(Parameters):
    """The distance falls from setting to setting, along "epsilon" or "users"."""

    along: str = "epsilon"
    methods: tuple[str, ...] = ()
    distances: tuple[str, ...] = ("tv",)


@dataclass(frozen=True)
class Between(Parameters):
    """The distance is smaller in one setting than in another: pairs of mechanisms, compared at equal epsilon."""

    pairs: tuple[tuple[str, str], ...] = ()
    methods: tuple[str, ...] = ()
    distances: tuple[str, ...] = ("tv",)


@dataclass(frozen=True)
class Lead(Parameters):
    """The lead of EM over inversion is larger at small epsilons than at the others."""

    small: float = 1.0  # epsilons below this are small
    over: tuple[str, ...] = ()
    distances: tuple[str, ...] = ("tv",)


@dataclass(frozen=True)
class Published(Parameters):
    """A number of the paper, and the method it belongs to."""

    method: str = ""
    value: float = 0.0
    distance: str = "tv"
    within: float | None = None  # how near our median has to be; if not given, the number must be in our range


@dataclass(frozen=True)
class OneDelta(Parameters):
    """Numbers that the paper has of EM, each as figure, name of the truth, and distance: one delta fits them all."""

    numbers: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Empty(Parameters):
    """EM leaves many cells empty: at least this share of them with less than half a person."""

    share: float = 0.1


@dataclass(frozen=True)
class Certified(Parameters):
    """The maximum was found: no certified gap is larger than this, in nats per user."""

    gap: float = 1e-6


@dataclass(frozen=True)
class Turning(Parameters):
    """The error rises again after EM's best iterate, by at least this share of it."""

    rise: float = 0.1


@dataclass(frozen=True)
class Guessing(Parameters):
    """Guesses of one person's value: these mechanisms' errors fall to this."""

    limit: float = 0.0


PARAMETERS_OF_CHECKS: Mapping[str, type[Parameters]] = {
    "compare": Compare,
    "along": Along,
    "between": Between,
    "lead": Lead,
    "published": Published,
    "one-delta": OneDelta,
    "empty": Empty,
    "holes": Parameters,
    "certified": Certified,
    "turning": Turning,
    "errors-vanish": Guessing,
    "errors-stay": Guessing,
    "ridge": Parameters,
    "ideal": Parameters,
    "only-maximum": Parameters,
    "derivatives": Parameters,
    "border": Parameters,
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
    if entry["check"] not in PARAMETERS_OF_CHECKS:
        raise _mistake(where, f"check {entry['check']}", f"a check among {', '.join(PARAMETERS_OF_CHECKS)}")
    kind = PARAMETERS_OF_CHECKS[entry["check"]]
    known = {field.name: field for field in fields(kind)}
    own = {name: value for name, value in entry.items() if name not in COMMON_FIELDS}
    unknown = sorted(set(own) - set(known))
    if unknown:
        raise _mistake(where, ", ".join(unknown), f"for this check, fields among {', '.join(sorted(known))}")
    for name, value in own.items():
        default = known[name].default
        if default is not MISSING and not _same_type(value, default):
            raise _mistake(where, f"{name} = {shorten(value)}", f"something like {default!r}")
    parameters = kind(**{name: _frozen(value) for name, value in own.items()})
    return Claim(entry["id"], entry["figure"], entry["where"], entry["says"], entry["check"], parameters)


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
