"""Stamps: reports that say which study they were made for, and whether their randomness was real.

Parquet and Arrow files hold the stamp in the metadata of their schema; beside a text lies a small JSON file with the
same entries. Reports without a stamp are taken as they are; reports with the stamp of another study are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.study import Study

ENDING = ".stamp.json"  # of the file beside a text
STUDY = "hubbub.study"
LARGEST = 1 << 16  # bytes of that file


@dataclass(frozen=True)
class Stamp:
    """What reports say about themselves."""

    fingerprint: str  # of the study
    randomness: str  # "secure" (the operating system's) or "seeded" (simulated)
    mechanism: str | None  # of all rows; None where each row names its own

    def entries(self) -> dict[str, str]:
        """Return the entries as files hold them."""
        found = {"hubbub.version": version("hubbub"), STUDY: self.fingerprint, "hubbub.randomness": self.randomness}
        return found if self.mechanism is None else {**found, "hubbub.mechanism": self.mechanism}

    def text(self) -> str:
        """Return the content of the file beside a text."""
        return json.dumps(self.entries(), ensure_ascii=False, indent=1) + "\n"


def neighbour(path: Path) -> Path:
    """Return where the stamp of a text lies."""
    return path.with_name(path.name + ENDING)


def from_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the entries of a stamp among the metadata of a schema."""
    texts = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (metadata or {}).items()}
    return {key: value for key, value in texts.items() if key.startswith("hubbub.")}


def read_neighbour(path: Path) -> dict[str, str] | None:
    """Return the stamp that lies beside a file; None where there is none."""
    stamp = neighbour(path)
    try:
        with stamp.open("rb") as file:
            content = file.read(LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        if not stamp.exists():  # too long a name, for one
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
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get(STUDY), str):
        raise refusal(
            "corrupt-file",
            "the stamp of the reports cannot be made out",
            where=str(stamp),
            got=shorten(content[:60]),
            expected=f'what hubbub privatize writes: an object with "{STUDY}"',
            remedy="copy it again together with its reports; remove it to read these without any check",
        )
    return {str(key): str(value) for key, value in found.items()}


def check_stamp(name: str, stamp: Mapping[str, str] | None, study: Study) -> None:
    """Refuse reports that were made for another study; reports that say nothing are taken."""
    if not stamp or STUDY not in stamp or stamp[STUDY] == study.fingerprint:
        return
    raise refusal(
        "other-stamp",
        "the reports were made for another study",
        where=name,
        got=f"reports stamped with the study {shorten(stamp[STUDY][:16])[1:-1]}…",
        expected=f"reports of this study, {study.fingerprint[:16]}…",
        remedy="name the study file with which they were privatized: under another one they would mean something else",
    )
