"""Stamps: reports that say which study they were made for, and whether their randomness was real.

Parquet and Arrow files hold the stamp in the metadata of their schema; a text file has a small JSON file beside it with
the same entries. Reports without a stamp are accepted; reports with the stamp of another study are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.study import Study

ENDING = ".stamp.json"  # of the file beside a text file
STUDY_KEY = "hubbub.study"
MAX_STAMP_BYTES = 1 << 16


@dataclass(frozen=True)
class Stamp:
    """What reports say about themselves."""

    fingerprint: str  # of the study
    randomness: str  # "secure" (the operating system's) or "seeded" (simulated)
    mechanism: str | None  # of all rows; None where each row names its own

    def entries(self) -> dict[str, str]:
        """Return the entries as files hold them."""
        entries = {
            "hubbub.version": version("hubbub"),
            STUDY_KEY: self.fingerprint,
            "hubbub.randomness": self.randomness,
        }
        return entries if self.mechanism is None else {**entries, "hubbub.mechanism": self.mechanism}

    def text(self) -> str:
        """Return the content of the file beside a text file."""
        return json.dumps(self.entries(), ensure_ascii=False, indent=1) + "\n"


def neighbour(path: Path) -> Path:
    """Return the path of the stamp of a text file."""
    return path.with_name(path.name + ENDING)


def from_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the entries of a stamp among the metadata of a schema."""
    texts = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (metadata or {}).items()}
    return {key: value for key, value in texts.items() if key.startswith("hubbub.")}


def read_neighbour(path: Path) -> dict[str, str] | None:
    """Return the stamp beside a file; None if there is none."""
    stamp = neighbour(path)
    try:
        with stamp.open("rb") as file:
            content = file.read(MAX_STAMP_BYTES)
    except OSError as error:
        if not os.path.exists(stamp):  # noqa: PTH110  # Path.exists raises if the name is too long
            return None
        raise refusal(
            "not-readable",
            "the stamp of the reports cannot be read",
            where=str(stamp),
            got=error.strerror or str(error),
            expected="a file that this program may read",
            remedy="check its permissions and the disk",
        ) from None
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict) or not isinstance(entries.get(STUDY_KEY), str):
        raise refusal(
            "corrupt-file",
            "the stamp file of the reports is malformed",
            where=str(stamp),
            got=shorten(content[:60]),
            expected=f'what hubbub privatize writes: an object with "{STUDY_KEY}"',
            remedy="copy it again together with its reports; remove it to read these without any check",
        )
    return {str(key): str(value) for key, value in entries.items()}


def check_stamp(name: str, stamp: Mapping[str, str] | None, study: Study) -> None:
    """Refuse reports that were made for another study; reports without a stamp are accepted."""
    if not stamp or STUDY_KEY not in stamp or stamp[STUDY_KEY] == study.fingerprint:
        return
    raise refusal(
        "other-stamp",
        "the reports were made for another study",
        where=name,
        got=f"reports stamped with the study {shorten(stamp[STUDY_KEY][:16])[1:-1]}…",
        expected=f"reports of this study, {study.fingerprint[:16]}…",
        remedy="name the study file with which they were privatized: under another one they would mean something else",
    )
