"""Study files to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hubbub.core.errors import StudyError, shorten
from hubbub.core.files import NameTakenError, write_file
from hubbub.intake.study import DOMAINS


def template(kind: str) -> str:
    """Return a commented study file for a kind of domain."""
    if kind not in DOMAINS:
        raise StudyError(
            "no such kind of domain",
            where="hubbub new KIND",
            got=shorten(kind),
            expected=", ".join(DOMAINS),
            remedy="choose one of these",
        )
    return files("hubbub.intake").joinpath("templates", f"{kind}.toml").read_text(encoding="utf-8")


def write_template(kind: str, path: Path) -> None:
    """Write a commented study file; one that is there already is never overwritten."""
    try:
        write_file(path, template(kind).encode(), replace=False)
    except NameTakenError:
        raise StudyError(
            "there is a file already",
            where=str(path),
            got="a file that would be overwritten",
            expected="a new path",
            remedy="choose another name with -o, or remove the file first",
        ) from None
