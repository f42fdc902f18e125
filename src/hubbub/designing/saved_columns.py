"""Columns of a design that is under way, in a file, so that an interrupted one continues."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError
from hubbub.core.files import write_file

FORMAT = 1
ENTRIES = ("format", "key", "columns")


def load_columns(path: Path, key: str) -> Floats | None:
    """Return the columns that a file keeps for the design with this key; None if there is no file."""
    if not path.exists():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if sorted(names) != sorted(f"{name}.npy" for name in ENTRIES):
            raise _no_columns(path)
        with np.load(path, allow_pickle=False) as kept:
            version, kept_key, columns = int(kept["format"]), str(kept["key"]), np.asarray(kept["columns"], dtype=float)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, SettingError):
            raise
        raise _no_columns(path) from error
    if version != FORMAT or kept_key != key:
        raise _wrong_file(path, "columns of another design", "columns for the same domain, privacy, goal, prior and users")
    if columns.ndim != 2 or not (np.isfinite(columns) & (columns >= 0)).all():
        raise _no_columns(path)
    return columns


def save_columns(path: Path, key: str, columns: Floats) -> None:
    """Replace the file by these columns."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, format=FORMAT, key=key, columns=columns)
    write_file(path, buffer.getvalue())


def _no_columns(path: Path) -> SettingError:
    return _wrong_file(path, "no columns of a design, or a damaged file", "a file that hubbub.design wrote")


def _wrong_file(path: Path, got: str, expected: str) -> SettingError:
    return SettingError(
        "the file cannot be continued",
        where=f"design(path=), {path}",
        got=got,
        expected=expected,
        remedy="name a new file, or remove this one to begin again",
    )
