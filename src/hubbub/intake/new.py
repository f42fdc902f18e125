"""Study files to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hubbub.errors import StudyError, shorten
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
    text = template(kind)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StudyError(
            "there is a file already",
            where=str(path),
            got="a file that would be overwritten",
            expected="a new path",
            remedy="choose another name with -o, or remove the file first",
        ) from None
    except OSError as error:
        raise StudyError(
            "the study file cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            expected="a path in a folder that exists",
            remedy="check the folder and its permissions",
        ) from None
