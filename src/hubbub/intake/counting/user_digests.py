"""Users that a tally remembers: not who they are, only a keyed digest of each.

A digest is the first 16 bytes of HMAC-SHA-256 under a key that stays with the collector and is never written to the
tally: nobody who has the tally alone can try names. Two of a billion users share one with probability 1.5e-21.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.group_names import Group
from hubbub.intake.reject_causes import refusal

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST_BYTES = 16
MIN_KEY_BYTES = 16
MAKE_KEY = 'make one, and keep it: python -c "import secrets; print(secrets.token_hex())" > users.key'


class UserDigests:
    """The users that a tally has counted, and those that are new."""

    def __init__(self, key: bytes, known: NDArray[np.void] | None = None) -> None:
        self._key = key
        self._known = np.empty(0, dtype=f"V{DIGEST_BYTES}") if known is None else known
        self._lookup = set(self._known.tolist())
        self._new: list[bytes] = []

    @classmethod
    def read_key(cls, path: Path) -> bytes:
        """Return the key in a file."""
        try:
            key = path.read_bytes().strip()
        except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
            got = getattr(error, "strerror", None) or str(error)
            raise _wrong_key("the key cannot be read", str(path), got, "a file with a secret key") from None
        if len(key) < MIN_KEY_BYTES:
            expected = f"at least {MIN_KEY_BYTES} bytes that nobody can guess"
            raise _wrong_key("the key is too short", str(path), f"{len(key)} bytes", expected)
        return key

    @staticmethod
    def sign(key: bytes) -> str:
        """Return a sign by which keys can be compared, and which says nothing else about them."""
        return hmac.new(key, b"hubbub tally: which key is this?", hashlib.sha256).hexdigest()[:16]

    def seen(self, users: pa.ChunkedArray, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of some users were counted before; the others among `which` are remembered from now on."""
        before = np.zeros(which.size, dtype=bool)
        start = hmac.new(self._key, digestmod=hashlib.sha256)
        for place, user in enumerate(users.to_pylist()):
            if not which[place]:
                continue
            code = start.copy()
            code.update(str(user).encode())
            digest = code.digest()[:DIGEST_BYTES]
            if digest in self._lookup:
                before[place] = True
            else:
                self._new.append(digest)
        return before

    def digests(self) -> NDArray[np.void]:
        """Return the digests of all users, in order."""
        new = np.frombuffer(b"".join(self._new), dtype=f"V{DIGEST_BYTES}")
        everyone = np.concatenate([self._known, new])
        return everyone[np.argsort(everyone.view(f"S{DIGEST_BYTES}"), kind="stable")] if everyone.size else everyone


class DigestsByGroup:
    """The users that a tally remembers, each group by itself: a user of two groups is one in each."""

    def __init__(self, key: bytes, known: Mapping[Group, NDArray[np.void]] | None = None) -> None:
        self._key = key
        self._groups = {group: UserDigests(key, digests) for group, digests in (known or {}).items()}

    def of(self, group: Group) -> UserDigests:
        """Return the users of a group."""
        return self._groups.setdefault(group, UserDigests(self._key))

    def digests(self) -> dict[Group, NDArray[np.void]]:
        """Return the digests of all users of each group, in order."""
        return {group: users.digests() for group, users in self._groups.items()}


def other_key(where: str, expected: str, got: str) -> IntakeError:
    """Return the error for a key that is not the tally's."""
    return _wrong_key(
        "the key is not the one this tally was made with",
        where,
        f"a key that signs as {shorten(got)}",
        f"the key that signs as {shorten(expected)}",
        remedy="name the file that was given when the tally was made",
    )


def _wrong_key(what: str, where: str, got: str, expected: str, remedy: str = MAKE_KEY) -> IntakeError:
    return refusal("wrong-key", what, where=where, got=got, expected=expected, remedy=remedy)
