"""Text files as bytes: decompressed, without a byte order mark, in pieces; and lines that are not text at all."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.reject_causes import CAUSES, Fault, refusal, row_fault
from hubbub.intake.sources.file_source import COMPRESSIONS, file_errors

PIECE_BYTES = 1 << 25  # read at a time
MAX_LINE_BYTES = 1 << 21  # of a row: two million bits as text, or half a million values packed as hexadecimal digits
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks
UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


def read_pieces(path: Path, report: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    """Yield the bytes of a text a piece at a time; `report` is told how many bytes of the file were read."""
    with file_errors(path), _open_decompressed(path) as (content, file):
        piece = _read_piece(content)
        if piece.startswith(UTF32_MARKS):
            raise _wrong_encoding(path, "the byte order mark of UTF-32")
        as_utf8 = _utf16_converter(path) if piece.startswith(UTF16_MARKS) else None
        piece = piece.removeprefix(b"\xef\xbb\xbf")
        while piece:
            report(file.tell())
            if text := piece if as_utf8 is None else as_utf8(piece, False):
                yield text
            piece = _read_piece(content)
        if as_utf8 is not None:
            as_utf8(b"", True)


def _utf16_converter(path: Path) -> Callable[[bytes, bool], bytes]:
    """Return a function from the next piece of a text in UTF-16, and whether it is the last, to UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")()

    def convert(piece: bytes, final: bool) -> bytes:
        try:
            return decoder.decode(piece, final).encode()
        except UnicodeDecodeError as error:
            raise _wrong_encoding(
                path, f"the byte order mark of UTF-16, and bytes that are not: {error.reason}"
            ) from None

    return convert


def _wrong_encoding(path: Path, got: str) -> IntakeError:
    return refusal(
        "wrong-encoding",
        "the file is not in UTF-8",
        where=str(path),
        got=got,
        expected="a text in UTF-8, or in UTF-16 with its byte order mark",
        remedy="save it as UTF-8, for example: iconv -f UTF-32 -t UTF-8",
    )


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
