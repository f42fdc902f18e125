"""What a benchmark compares: ways to report, ways to estimate, and the settings under which they meet.

Everything has a name that people read, and a key that says what it is: a digest of the mechanism's fields, of a
method with its keywords, of a truth's shares, and of the source of code that is not hubbub's. Seeds and stored runs
go by keys, so that another row changes nothing, and an estimator that was edited is a new one.
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass

from hubbub.core.serialization import Portable
from hubbub.estimators.api import METHODS
from hubbub.estimators.own_estimators import registered
from hubbub.planning.candidates import Candidate
from hubbub.planning.truths import AssumedTruth

Keywords = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class MethodChoice(Portable):
    """A method of `estimate` with its keywords, and what it is called here."""

    name: str
    method: str
    keywords: Keywords = ()

    @property
    def key(self) -> str:
        """What it is, whatever it is called."""
        code = "" if self.method in METHODS else source_of(registered(self.method))
        return digest("method", MethodChoice("", self.method, self.keywords).content_key, code)


@dataclass(frozen=True, eq=False)
class Setup(Portable):
    """Some users with values from a truth, and how they report."""

    candidate: Candidate
    truth: AssumedTruth
    users: int

    @property
    def description(self) -> str:
        """In words."""
        return f"{self.candidate.description}, {self.truth.name}, {self.users:,} users"


@dataclass(frozen=True)
class RunRow:
    """One run: the errors of one estimate and what it took, or why there is none."""

    mechanism: str  # the keys
    method: str
    truth: str
    users: int
    run: int
    tv: float | None = None
    emd: float | None = None
    seconds: float | None = None
    failure: str = ""

    @property
    def place(self) -> tuple[str, str, str, int, int]:
        """Which run this is."""
        return self.mechanism, self.method, self.truth, self.users, self.run


def mechanism_key(candidate: Candidate) -> str:
    """Return what a way to report is: its mechanisms with their shares, and the source of those that are not ours."""
    parts = [f"{share!r} {part.content_key} {source_of(type(part))}" for part, share in candidate.parts]
    return digest("mechanism", *parts)


def truth_key(truth: AssumedTruth) -> str:
    """Return what a truth is, whatever it is called."""
    return digest("truth", hashlib.sha256(truth.probabilities.tobytes()).hexdigest())


def source_of(code: object) -> str:
    """Return the source of a class or function that is not hubbub's; empty where there is none to read."""
    if str(getattr(code, "__module__", "")).partition(".")[0] == "hubbub":
        return ""
    try:
        return inspect.getsource(code)  # type: ignore[arg-type]  # whatever it is not is a TypeError
    except (OSError, TypeError):
        return ""


def digest(*parts: str) -> str:
    """Return a short digest of texts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
