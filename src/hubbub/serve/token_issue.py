"""New tokens for the people of a study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hubbub.core.errors import SettingError
from hubbub.intake.study import Study
from hubbub.serve.access_tokens import TokenKey

MAX_TOKENS = 10_000_000


def issue(study: Study, key: Path | None, count: int) -> Iterator[str]:
    """Return new tokens; the file of the key is made if there is none."""
    if (study.collector or {}).get("access") != "tokens" or key is None or not 1 <= count <= MAX_TOKENS:
        wants = (study.collector or {}).get("access") == "tokens"
        raise SettingError(
            "tokens cannot be issued",
            where="--issue-tokens",
            got="a study that takes no tokens" if not wants else f"{count:,}" if key is not None else "no --tokens-key",
            expected=f'a study with access = "tokens", a file for their key, and a number from 1 to {MAX_TOKENS:,}',
            remedy='write access = "tokens" in the study\'s [collector]'
            if not wants
            else "pass --tokens-key FILE; it is made if there is none",
        )
    tokens = TokenKey.read_or_make(key, study.fingerprint)
    return (tokens.issue() for _ in range(count))
