"""Text files as bytes: decompressed, without a byte order mark, in pieces that end where a line ends."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal

PIECE = 1 << 25  # bytes read at a time
LONGEST = 1 << 21  # bytes of one row: two million bits as text, or half a million values packed as hexadecimal
MOST_LINES = 100  # of one row: a comment, but not half a file between two stray quotes
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def check_file(path: Path) -> os.stat_result:
    """Refuse what is not a plain file that can be read."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise refusal(
            "no-such-file" if missing else "not-readable",
            "there is no such file of reports" if missing else "the file cannot be read",
            where=str(path),
            got="nothing at that path" if missing else getattr(error, "strerror", None) or str(error),
            expected="a file of reports, a folder of such files, or a pattern such as 'day-*.csv'",
            remedy="check the path and its permissions",
        ) from None
    if not stat.S_ISREG(found.st_mode):
        raise refusal(
            "not-a-file",
            "not a plain file",
            where=str(path),
            got="a folder" if stat.S_ISDIR(found.st_mode) else "a device, a pipe or a socket",
            expected="a file of reports",
            remedy="write the rows to a file first: it is read twice, once to know whether it was counted before",
        )
    return found


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Tell what goes wrong while a file is read in five parts."""
    try:
        yield
    except IntakeError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _broken(path, str(error)) from None
    except OSError as error:
        if path.suffix.lower() in COMPRESSED and error.errno is None:  # the decompressor's, not the system's
            raise _broken(path, str(error).splitlines()[0]) from None
        raise refusal(
            "not-readable",
            "the file cannot be read",
            where=str(path),
            got=error.strerror or str(error),
            expected="a file that this program may read",
            remedy="check its permissions and the disk",
        ) from None


def _broken(path: Path, got: str) -> IntakeError:
    return refusal(
        "corrupt-compression",
        "the compressed file is damaged or cut short",
        where=str(path),
        got=got,
        expected=f"a whole {COMPRESSED[path.suffix.lower()]} file" if path.suffix.lower() in COMPRESSED else "a file",
        remedy="copy it again, and compare its size with the original's",
    )


@contextmanager
def open_bytes(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, decompressing it by its ending: what to read, and the file as it lies on the disk."""
    kind = COMPRESSED.get(path.suffix.lower())
    with path.open("rb", buffering=0) as file:
        if kind == "gzip":
            with gzip.GzipFile(fileobj=file, mode="rb") as content:
                yield content, file  # type: ignore[misc]  # as good as one
        elif kind == "zstd":
            import pyarrow as pa

            with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as content:
                yield content, file
        else:
            yield file, file


def pieces(path: Path, tell: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    """Yield the bytes of a text, a piece at a time, without the byte order mark; `tell` how far the file was read."""
    with reading(path), open_bytes(path) as (content, file):
        first = _filled(content)
        for mark, name in MARKS.items():
            if first.startswith(mark):
                raise refusal(
                    "wrong-encoding",
                    "the file is not in UTF-8",
                    where=str(path),
                    got=f"the byte order mark of {name}",
                    expected="a text in UTF-8",
                    remedy="save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8",
                )
        piece = first.removeprefix(b"\xef\xbb\xbf")
        while piece:
            tell(file.tell())
            yield piece
            piece = _filled(content)


def _filled(file: IO[bytes]) -> bytes:
    """Return a whole piece: decompressors hand out a little at a time."""
    # Arrow's `read` loses the whole piece that it has reserved when what it reads is damaged; `read_buffer` does not.
    read: Callable[[int], bytes] = getattr(file, "read_buffer", file.read)
    parts, missing = [], PIECE
    while missing > 0 and (part := bytes(read(missing))):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts) if len(parts) != 1 else parts[0]
