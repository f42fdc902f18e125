"""What a benchmark compares: ways to report, ways to estimate, and the settings under which they meet.

Everything has a name that people read, and keys that say what it is. Seeds go by a digest of a mechanism's fields and
of a truth's shares, so that another row changes nothing. Runs that are kept go by the code that is not hubbub's, too:
an estimator that was edited is a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hubbub.benchmarking.code_identity import UnidentifiedError, identity_of
from hubbub.core.errors import HubbubError, SettingError
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
    key: str = ""  # of its code where runs are kept, else a number


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

    mechanism: str  # the keys: of the code where runs are kept, else numbers
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


def drawn_key(candidate: Candidate) -> str:
    """Return what the draws of a way to report are seeded by: its mechanisms with their shares."""
    return digest("mechanism", *(f"{share!r} {part.content_key} " for part, share in candidate.parts))


def mechanism_key(candidate: Candidate) -> str:
    """Return what a way to report is: its draws, and all code of its mechanisms that is not hubbub's."""
    with _told_apart(f"the mechanism {candidate.name}"):
        return digest(drawn_key(candidate), *(identity_of(part) for part, _ in candidate.parts))


def method_key(choice: MethodChoice) -> str:
    """Return what a way to estimate is, whatever it is called: its keywords, and its code if that is not hubbub's."""
    with _told_apart(f"the method {choice.name}"):
        code = "" if choice.method in METHODS else identity_of(registered(choice.method))
        return digest("method", choice.method, identity_of(choice.keywords), code)


def truth_key(truth: AssumedTruth) -> str:
    """Return what a truth is, whatever it is called."""
    return digest("truth", hashlib.sha256(truth.probabilities.tobytes()).hexdigest())


@contextmanager
def _told_apart(what: str) -> Iterator[None]:
    """Refuse to keep runs of what may have changed when a later call looks for them."""
    try:
        yield
    except UnidentifiedError as error:
        raise SettingError(
            "runs of this code cannot be kept: a later call could not tell whether it has changed",
            where="benchmark(path=)",
            got=f"{what}: {error}",
            expected="functions, classes and values that pickle can write",
            remedy="make what differs a plain value or a keyword, or leave path out",
        ) from None


def digest(*parts: str) -> str:
    """Return a short digest of texts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def message_of(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, HubbubError):
        return f"{error.what}: {error.got}; {error.remedy}"
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
