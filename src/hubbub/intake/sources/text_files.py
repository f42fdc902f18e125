"""Text files as bytes: decompressed, without a byte order mark, in pieces; and lines that are not text at all."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import CAUSES, Fault, refusal, row_fault
from hubbub.intake.sources.file_source import COMPRESSIONS, file_errors

PIECE_BYTES = 1 << 25  # read at a time
MAX_LINE_BYTES = 1 << 21  # of a row: two million bits as text, or half a million values packed as hexadecimal digits
ENCODINGS = {  # by their byte order marks
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def read_pieces(path: Path, report: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    """Yield the bytes of a text a piece at a time; `report` is told how many bytes of the file were read."""
    with file_errors(path), _open_decompressed(path) as (content, file):
        first = _read_piece(content)
        for mark, encoding in ENCODINGS.items():
            if first.startswith(mark):
                raise refusal(
                    "wrong-encoding",
                    "the file is not in UTF-8",
                    where=str(path),
                    got=f"the byte order mark of {encoding}",
                    expected="a text in UTF-8",
                    remedy="save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8",
                )
        piece = first.removeprefix(b"\xef\xbb\xbf")
        while piece:
            report(file.tell())
            yield piece
            piece = _read_piece(content)


def with_last(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each piece, and whether it is the last."""
    following = next(pieces, None)
    while following is not None:
        piece, following = following, next(pieces, None)
        yield piece, following is None


@contextmanager
def _open_decompressed(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, decompressing it by its extension: yield the content, and the file as it is on the disk."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    with path.open("rb", buffering=0) as file:
        if compression == "gzip":
            with gzip.GzipFile(fileobj=file, mode="rb") as content:
                yield content, file  # type: ignore[misc]  # as good as one
        elif compression == "zstd":
            import pyarrow as pa

            with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as content:
                yield content, file
        else:
            yield file, file


def _read_piece(file: IO[bytes]) -> bytes:
    """Return a whole piece: decompressors return a little at a time."""
    # On damaged data Arrow's `read` leaks the piece that it has allocated; `read_buffer` does not.
    read: Callable[[int], bytes] = getattr(file, "read_buffer", file.read)
    parts, missing = [], PIECE_BYTES
    while missing > 0 and (part := bytes(read(missing))):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts) if len(parts) != 1 else parts[0]


def undecodable_fault(line: bytes) -> Fault | None:
    """Return what prevents a line from being text; None if nothing does."""
    if b"\0" in line:
        remedy = "check the program that wrote the file: it may be damaged, or not be text at all"
        return row_fault("nul-byte", CAUSES["nul-byte"], got=shorten(line), expected="text", remedy=remedy)
    try:
        line.decode()
    except UnicodeDecodeError as error:
        got = shorten(line[max(0, error.start - 20) : error.end + 20])
        remedy = "convert the file, for example: iconv -f ISO-8859-1 -t UTF-8"
        return row_fault("not-utf-8", CAUSES["not-utf-8"], got=got, expected="text in UTF-8", remedy=remedy)
    return None


def long_line_fault() -> Fault:
    """Return the fault of a line that is longer than any report."""
    code, limit = "line-too-long", f"{MAX_LINE_BYTES:,} bytes"
    remedy = "check the file's line breaks; write long outputs as hexadecimal digits"
    return row_fault(code, CAUSES[code], got=f"more than {limit}", expected=f"at most {limit}", remedy=remedy)
