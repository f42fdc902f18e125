"""Who may see the live results: whoever has the token, by a header or by a session of the browser that ends with it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from hubbub.core.errors import SettingError

VARIABLE = "HUBBUB_RESULTS_TOKEN"
MIN_TOKEN_LETTERS, MAX_TOKEN_LETTERS = 16, 1000
SESSION_SECONDS = 12 * 3600
MAX_SESSIONS = 1000


def read_results_token(path: Path | None) -> str | None:
    """Return the token in a file, or in the environment; None if there is neither, and no results are shown."""
    where = f"environment, {VARIABLE}" if path is None else str(path)
    try:
        token = os.environ.get(VARIABLE) if path is None else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(where, getattr(error, "strerror", None) or "something that is not text") from None
    if token is None:
        return None
    token = token.strip()
    if not MIN_TOKEN_LETTERS <= len(token) <= MAX_TOKEN_LETTERS or not token.isascii() or not token.isprintable():
        raise _unusable(where, f"a text of {len(token):,} letters")
    return token


def _unusable(where: str, got: str) -> SettingError:
    return SettingError(
        "the token for the results cannot be used",
        where=where,
        got=got,
        expected=f"{MIN_TOKEN_LETTERS} to {MAX_TOKEN_LETTERS:,} letters and digits in one line",
        remedy="write a random one: python -c 'import secrets; print(secrets.token_urlsafe())' > FILE",
    )


class ResultsAccess:
    """The token of the results, and the sessions of browsers whose owner has shown it; both in memory alone."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._digest, self._clock = _digest(token), clock
        self._sessions: dict[bytes, float] = {}  # digests of what browsers hold, and until when they count

    def is_token(self, given: str) -> bool:
        """Whether this is the token; it takes the same time whatever is given."""
        return hmac.compare_digest(_digest(given), self._digest)

    def begin_session(self) -> str:
        """Return what a browser that has shown the token may show instead."""
        now = self._clock()
        self._sessions = {key: end for key, end in self._sessions.items() if end > now}
        if len(self._sessions) >= MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        session = secrets.token_urlsafe(32)
        self._sessions[_digest(session)] = now + SESSION_SECONDS
        return session

    def is_session(self, given: str) -> bool:
        """Whether this was given to a browser that had shown the token, not too long ago."""
        return self._sessions.get(_digest(given), 0.0) > self._clock()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
