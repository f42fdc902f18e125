"""Columns of a design that is under way, in a file, so that an interrupted one continues."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError
from hubbub.core.files import write_file
from hubbub.designing.privacy_policy import PrivacyPolicy

FORMAT = 1
DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error)  # other bytes, or a part


def load_columns(path: Path, key: str, policy: PrivacyPolicy) -> Floats | None:
    """Return the columns that a file keeps for the design with this key; None if there is no file.

    They are checked: a file that somebody else wrote must not weaken the privacy.
    """
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
            version, kept_key, columns = int(kept["format"]), str(kept["key"]), np.asarray(kept["columns"], dtype=float)
    except DAMAGED as error:
        raise _no_columns(path) from error
    if version != FORMAT or kept_key != key:
        raise _wrong_file(
            path, "columns of another design", "columns for the same domain, privacy, goal, prior and users"
        )
    is_table = columns.ndim == 2 and columns.shape[1] == len(policy.domain) and bool(np.isfinite(columns).all())
    if not is_table or not (columns > 0).all() or not policy.contains(columns):
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
