"""Study files on disk: parsed by `hubbub.client`, messages with the line they are about; new ones from templates."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path

from hubbub.client import ClientError, study_bytes, study_document, study_text
from hubbub.core import validation
from hubbub.core.errors import StudyError, restated, shorten, warn_caller
from hubbub.core.files import NameTakenError, write_file
from hubbub.intake.study import Study, check_study, parse_study
from hubbub.intake.study_entries import DOMAINS

TABLE = re.compile(r"\[(?P<table>[^\[\]]+)\]")
MAX_LINE_LETTERS = 200  # at the start of a line that are looked at: headings and names of entries are short


def read_study(path: str | Path, *, allow_code: bool = False) -> Study:
    """Read and check a study file.

    Parameters
    ----------
    path : path
        The path of a TOML file.
    allow_code : bool, default False
        Import the classes of mechanisms that the file names as ``kind = "module:Class"``. This runs code that a file
        chooses: allow it for files that you trust. What was allowed is known in this process from then on.

    Returns
    -------
    Study
        The domain, the mechanisms and the limits that the file describes.

    Raises
    ------
    StudyError
        If the file cannot be read or does not describe a study, or names a class and that is not allowed; the message
        names the line.
    SettingError
        If `allow_code` is neither True nor False.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> text = '''
    ... version = 1
    ... name = "a survey"
    ... [domain]
    ... kind = "categories"
    ... labels = ["yes", "no"]
    ... [mechanisms.answer]
    ... kind = "randomized-response"
    ... epsilon = 1.0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "study.toml"
    ...     _ = path.write_text(text)
    ...     study = hb.read_study(path)
    >>> study.name, study.domain, study.mechanisms["answer"].epsilon
    ('a survey', Categories(['yes', 'no']), 1.0)
    """
    if not isinstance(path, str | Path):
        raise StudyError(
            "path must be the path of a study file",
            where="read_study(path)",
            got=shorten(path),
            expected="the path of a TOML file",
            remedy="pass the path as a string",
        )
    validation.boolean(allow_code, "allow_code", "read_study")
    where = str(path)
    try:
        text = study_text(study_bytes(path), where)
        document = study_document(text, where)
    except ClientError as error:
        raise restated(error, StudyError) from None
    try:
        return parse_study(document, where, allow_code=allow_code)
    except StudyError as error:
        line = line_of(text, error.where, error.got)
        if line is None:
            raise
        raise restated(error, StudyError, where=f"{where}, line {line}{error.where.removeprefix(where)}") from None


def write_study(study: Study, path: str | Path) -> None:
    """Write a study to a new file, from which `read_study` reads the same study.

    Parameters
    ----------
    study : Study
        The study. Tables of probabilities are written with all digits.
    path : path
        The TOML file to write; an existing one is never overwritten.

    Raises
    ------
    StudyError
        If there is a file already, or no study file can hold the study.
    IntakeError
        If the first argument is no study, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> from hubbub.intake.study_files import write_study
    >>> values = hb.Categories(["yes", "no"])
    >>> study = hb.Study(values, {"answer": hb.RandomizedResponse(values, epsilon=1.0)}, name="a survey")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_study(study, Path(folder) / "study.toml")
    ...     print(hb.read_study(Path(folder) / "study.toml") == study)
    True
    """
    check_study(study, "write_study(study)")
    if not isinstance(path, str | Path):
        raise StudyError(
            "path must be the path of a study file",
            where="write_study(path)",
            got=shorten(path),
            expected="the path of a TOML file that does not exist yet",
            remedy="pass the path as a string",
        )
    write_new_study(study.to_toml(), Path(path))


def study_and_source(study: object, source: object, call: str) -> tuple[Study, object]:
    """Return the study and the source of a call; warn if they were given in the wrong order.

    A study is a `Study` or the path of a TOML file, which no source is; `call` shows the right order.
    """
    if _is_study(source) and not _is_study(study):
        warn_caller([f"the study and the source were passed in the wrong order and have been swapped; write {call}"])
        study, source = source, study
    if isinstance(study, str | Path) and _is_study(study):
        study = read_study(study)
    return check_study(study, call), source


def _is_study(argument: object) -> bool:
    if isinstance(argument, str | Path):
        return Path(argument).suffix.lower() == ".toml"
    return isinstance(argument, Study)


def line_of(text: str, where: str, got: str) -> int | None:
    """Return the line of what a message names: an entry, or the heading of its table; None where unknown.

    `where` is that of the message, such as "study.toml, [domain]: Integers(low=)"; `got` holds the name of an entry
    that is not known.
    """
    match = TABLE.search(where)
    table = match["table"] if match else ""
    rest = where[match.end() :] if match else where.rpartition(",")[2]
    names = [*re.findall(r"\w+", rest)[::-1], got.strip("'\"")]
    headings, entries = _index(text)
    for name in names:
        if (table, name) in entries:
            return entries[table, name]
    around = table
    while around:  # a table without a heading is an entry of one that has, or was forgotten there
        outer, _, inner = around.rpartition(".")
        line = headings.get(around) or entries.get((outer, inner))
        if line is not None:
            return line
        around = outer
    return entries.get(("", table))


def _index(text: str) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return the first line of each table, and of each entry of a table."""
    headings: dict[str, int] = {}
    entries: dict[tuple[str, str], int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        start = line[:MAX_LINE_LETTERS].strip()
        name, bracket, comment = start.removeprefix("[").partition("]")
        if start.startswith("[") and bracket and "[" not in name and comment.strip()[:1] in ("", "#"):
            table = _unquoted(name)
            headings.setdefault(table, number)
            continue
        name, equals, _ = start.partition("=")
        if equals and name.strip() and not set("#[]") & set(name):
            entries.setdefault((table, _unquoted(name)), number)
    return headings, entries


def _unquoted(name: str) -> str:
    """Return a name without the quotes and blanks that TOML allows around its parts."""
    return ".".join(part.strip().strip("'\"") for part in name.split("."))


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
    """Write a commented study file; an existing file is never overwritten."""
    write_new_study(template(kind), path)


def write_new_study(text: str, path: Path) -> None:
    """Write the text of a study to a new file; an existing file is never overwritten."""
    try:
        write_file(path, text.encode(), replace=False)
    except NameTakenError:
        raise _taken(path) from None


def check_new_study(path: Path) -> None:
    """Refuse a study over an existing file, before what it is to hold takes minutes to compute."""
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: Path) -> StudyError:
    return StudyError(
        "there is a file already",
        where=str(path),
        got="a file that would be overwritten",
        expected="a new path",
        remedy="choose another name with -o, or remove the file first",
    )
