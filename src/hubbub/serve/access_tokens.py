"""Tokens of people who may send: issued, recognised and made nameless with one secret key, and stored nowhere.

A token is 16 random bytes and 16 bytes of HMAC-SHA-256 of them under the key and the study's fingerprint, so that the
collector recognises its own tokens without a list of them. What is stored with a report is another HMAC of the random
bytes, from which neither the token nor its owner can be found without the key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from contextlib import suppress
from pathlib import Path

from hubbub.core.files import NameTakenError, write_file
from hubbub.intake.counting.user_digests import UserDigests

HALF_BYTES = 16
KEY_BYTES = 32


class TokenKey:
    """The secret key of a study's tokens."""

    def __init__(self, key: bytes, fingerprint: str) -> None:
        self._recognition = hmac.new(key, f"hubbub token {fingerprint} ".encode(), hashlib.sha256)
        self._user = hmac.new(key, f"hubbub user {fingerprint} ".encode(), hashlib.sha256)

    @classmethod
    def read(cls, path: Path, fingerprint: str) -> TokenKey:
        """Return the key in a file."""
        return cls(UserDigests.read_key(path), fingerprint)

    @classmethod
    def read_or_make(cls, path: Path, fingerprint: str) -> TokenKey:
        """Return the key in a file, which is made if there is none; nobody but its owner can read it then."""
        with suppress(NameTakenError):
            write_file(path, (secrets.token_hex(KEY_BYTES) + "\n").encode(), replace=False, private=True)
        return cls.read(path, fingerprint)

    def issue(self) -> str:
        """Return a new token."""
        nonce = secrets.token_bytes(HALF_BYTES)
        return base64.urlsafe_b64encode(nonce + self._sign(nonce)).decode().rstrip("=")

    def user(self, token: str) -> str | None:
        """Return what is stored of the owner of a token; None if the token was not issued with this key."""
        try:
            content = base64.b64decode(token.encode("ascii") + b"=", altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return None
        nonce, signature = content[:HALF_BYTES], content[HALF_BYTES:]
        if len(content) != 2 * HALF_BYTES or not hmac.compare_digest(signature, self._sign(nonce)):
            return None
        code = self._user.copy()
        code.update(nonce)
        return code.hexdigest()[: 2 * HALF_BYTES]

    def _sign(self, nonce: bytes) -> bytes:
        code = self._recognition.copy()
        code.update(nonce)
        return code.digest()[:HALF_BYTES]
