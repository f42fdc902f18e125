"""Files of reports, written a block of rows at a time, in the format of their ending, with their stamp.

Outputs become whole numbers, packed bytes, or the texts that every reader of reports understands.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.arrow import csv, pa, parquet, pc
from hubbub.core.errors import IntakeError, SettingError
from hubbub.core.files import KeptOpen, NameTakenError, atomic_write, write_file
from hubbub.core.locks import exclusive_lock
from hubbub.core.paths import UNTOUCHED
from hubbub.intake.read_plan import refuse_overwriting
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.csv_header import DELIMITERS
from hubbub.intake.sources.json_lines import JSON_EXTENSIONS
from hubbub.intake.sources.parquet_arrow import ARROW_EXTENSIONS, PARQUET_EXTENSIONS
from hubbub.intake.sources.source_lookup import EXPECTED_EXTENSION, EXTENSIONS, extension_of
from hubbub.intake.stamps import Stamp, neighbour, read_neighbour
from hubbub.intake.tallies.tally import ENDING as TALLY
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import IntegerOutputs, OutputSpace, PairOutputs, ValueOutputs
from hubbub.mechanisms.packed_outputs import BitRowOutputs, HashedOutputs
from hubbub.mechanisms.several_attributes import SeveralAttributes

Write = Callable[["pa.Table"], object]
DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
DELIMITED_SPECIAL = r"[,\t\r\n\"]"  # in CSV and TSV
JSON_SPECIAL = r"[\x00-\x1f\"\\]"  # in JSON


def is_typed(path: Path) -> bool:
    """Whether a file has columns with types, rather than texts."""
    return extension_of(path) in (*PARQUET_EXTENSIONS, *ARROW_EXTENSIONS)


def check_reports_path(path: str | Path, inputs: Sequence[Path]) -> Path:
    """Return the path to write reports to; refuse an unknown ending and an existing file."""
    target = Path(path)
    if extension_of(target) not in EXTENSIONS or target.name.endswith(TALLY):
        raise SettingError(
            "the output file has an unsupported ending",
            where="privatize(path)",
            got=str(target),
            expected=EXPECTED_EXTENSION + f" (and not {TALLY}: that is counted reports)",
            remedy="end its name in one of these; the ending decides the format",
        )
    refuse_overwriting(target, inputs, "privatize(path)")
    if os.path.lexists(target):
        raise _taken(target)
    return target


def _taken(path: Path) -> IntakeError:
    return refusal(
        "not-written",
        "there is a file already",
        where=str(path),
        got="a file that would be overwritten",
        expected="a new path: a second output for each person spends their privacy again",
        remedy=f"choose another name, or remove the file first; {UNTOUCHED}",
    )


@contextmanager
def open_reports(path: Path, inputs: Sequence[Path], schema: pa.Schema, stamp: Stamp) -> Iterator[Write]:
    """Write reports that appear at `path` when all is done, and only then; yield a function that takes a block of rows.

    A text file's stamp is there before the text, so that reports are never without; it is removed if the text fails.
    """
    stamp_path = None if is_typed(path) else neighbour(path)
    with exclusive_lock(path):
        if stamp_path is not None:
            read_neighbour(path)  # a file that is there and is not a stamp is somebody's own, and refused
        stamped = False
        try:
            with atomic_write(path, replace=False) as file:
                with _opened(path, file, schema.with_metadata(stamp.entries())) as write:
                    yield write
                check_reports_path(path, inputs)  # once more, before the stamp: somebody may have put a file there
                if stamp_path is not None:
                    write_file(stamp_path, stamp.text().encode())
                    stamped = True
        except BaseException as error:
            taken = isinstance(error, NameTakenError)
            if stamped and stamp_path is not None and (taken or not os.path.lexists(path)):
                with suppress(OSError):
                    stamp_path.unlink()
            if taken:
                raise _taken(path) from None
            raise


@contextmanager
def _opened(path: Path, file: IO[bytes], schema: pa.Schema) -> Iterator[Write]:
    """Yield what writes rows to an open file."""
    ending = extension_of(path)
    if is_typed(path):
        if ending in PARQUET_EXTENSIONS:
            writer = parquet.ParquetWriter(KeptOpen(file), schema, compression="zstd")
        else:
            new = pa.ipc.new_stream if ending == ".arrows" else pa.ipc.new_file
            writer = new(KeptOpen(file), schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        with writer:
            yield lambda table: writer.write_table(table.cast(schema))
        return
    with _compressed(path, file) as sink:
        if ending in JSON_EXTENSIONS:
            yield lambda table: sink.write(memoryview(_json_lines(table)))
            return
        delimiter = DELIMITERS[ending]
        sink.write((delimiter.join(schema.names) + "\n").encode())
        yield lambda table: sink.write(memoryview(_delimited(table, delimiter)))


@contextmanager
def _compressed(path: Path, file: IO[bytes]) -> Iterator[Any]:
    """Yield what bytes are written to: the file itself, or a compressor in front of it."""
    if path.suffix.lower() == ".gz":
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            yield packed
    elif path.suffix.lower() == ".zst":
        with pa.CompressedOutputStream(KeptOpen(file), "zstd") as packed:
            yield packed
    else:
        yield file


def _delimited(table: pa.Table, delimiter: str) -> pa.Buffer:
    """Return rows as CSV or TSV, with quotes only if a text of the block needs them."""
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    special = any(pc.any(pc.match_substring_regex(column, DELIMITED_SPECIAL)).as_py() for column in texts)
    style = "needed" if special else "none"
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink, csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=style))
    return sink.getvalue()


def _json_lines(table: pa.Table) -> pa.Buffer:
    """Return rows as one object a line."""
    pieces: list[Any] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        pieces += [f'{", " if pieces else "{"}"{name}": ', _json_entries(column.combine_chunks())]
    return _strung(*pieces, "}\n").buffers()[2]


def _json_entries(column: pa.Array) -> pa.Array:
    """Return entries as JSON writes them."""
    if not pa.types.is_string(column.type):
        return pc.fill_null(column.cast(pa.large_string()), "null")
    if pc.any(pc.match_substring_regex(column, JSON_SPECIAL)).as_py():
        return pa.array([json.dumps(text, ensure_ascii=False) for text in column.to_pylist()], pa.large_string())
    return pc.fill_null(_strung('"', column.cast(pa.large_string()), '"'), "null")


def _strung(*pieces: str | pa.Array) -> pa.Array:
    """Return texts with others before, between and after them."""
    long = [pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*long, pa.scalar("", pa.large_string()))


class OutputColumn:
    """The column of outputs of one or several mechanisms: all rows of a file have one type.

    Whole numbers stay numbers and, in files with types, rows of bits stay packed. All else is written as text.
    """

    def __init__(self, mechanisms: Sequence[Mechanism], *, typed: bool) -> None:
        spaces = [mechanism.output_space for mechanism in mechanisms]
        widths = {space.width for space in spaces if isinstance(space, BitRowOutputs)}
        self._texts: dict[Mechanism, pa.Array] = {}
        self.type = pa.string()
        if all(_is_whole(space) for space in spaces):
            self.type = pa.int64()
        elif typed and len(widths) == 1 and all(isinstance(space, BitRowOutputs) for space in spaces):
            self.type = pa.binary(widths.pop())
        self.width = max(
            2 * space.width if isinstance(space, BitRowOutputs) else 32 for space in spaces
        )  # bytes of a row

    def array(self, drawn: Sequence[tuple[Mechanism, Positions, Codes]], rows: int) -> pa.Array:
        """Return the outputs of several mechanisms, each with the rows that they belong to."""
        arrays = [self._of_one(mechanism, codes) for mechanism, _, codes in drawn]
        if len(arrays) == 1 and len(arrays[0]) == rows:
            return arrays[0]
        if not arrays:
            return pa.nulls(rows, self.type)
        order = np.full(rows, -1, dtype=np.int64)
        places = np.concatenate([places for _, places, _ in drawn])
        order[places] = np.arange(places.size)
        return pa.concat_arrays(arrays).take(pa.array(order, mask=order < 0))

    def _of_one(self, mechanism: Mechanism, codes: Codes) -> pa.Array:
        if pa.types.is_integer(self.type):
            return pa.array(mechanism.output_space.decode(codes), self.type)
        if pa.types.is_fixed_size_binary(self.type):
            content = pa.py_buffer(np.ascontiguousarray(codes, dtype=np.uint8))
            return pa.FixedSizeBinaryArray.from_buffers(self.type, len(codes), [None, content])
        return self._text(mechanism, codes)

    def _text(self, mechanism: Mechanism, codes: Codes) -> pa.Array:
        space = mechanism.output_space
        if isinstance(space, BitRowOutputs):
            return _hexadecimal(codes)
        if isinstance(space, PairOutputs | HashedOutputs):
            return _joined(codes)
        if _is_whole(space):
            return pa.array(space.decode(codes)).cast(pa.string())
        if space.size is None:  # of a user-defined mechanism
            return pa.array([space.write(output) for output in space.decode(codes)], pa.string())
        if mechanism not in self._texts:
            listed = space.decode(np.arange(space.size))
            self._texts[mechanism] = pa.array([space.write(output) for output in listed], pa.string())
        return self._texts[mechanism].take(pa.array(codes))


class OutputColumns:
    """The columns of outputs: one, or one for each attribute, where an entry that was not sent is null."""

    def __init__(self, mechanisms: Sequence[Mechanism], *, typed: bool) -> None:
        single = [mechanism for mechanism in mechanisms if not isinstance(mechanism, SeveralAttributes)]
        parts: dict[str, list[Mechanism]] = {}
        for mechanism in mechanisms:
            if isinstance(mechanism, SeveralAttributes):
                for name, part in mechanism.parts.items():
                    parts.setdefault(f"output.{name}", []).append(part)
        self._columns = {"output": OutputColumn(single, typed=typed)} if single else {}
        self._columns |= {name: OutputColumn(own, typed=typed) for name, own in parts.items()}
        self.width = sum(column.width for column in self._columns.values())  # bytes of a row

    @property
    def types(self) -> list[tuple[str, pa.DataType]]:
        """The names and types of the columns."""
        return [(name, column.type) for name, column in self._columns.items()]

    def arrays(self, drawn: Sequence[tuple[Mechanism, Positions, Codes]], rows: int) -> dict[str, pa.Array]:
        """Return the columns of the outputs of several mechanisms, each with the rows that they belong to."""
        pieces: dict[str, list[tuple[Mechanism, Positions, Codes]]] = {name: [] for name in self._columns}
        for mechanism, places, codes in drawn:
            if not isinstance(mechanism, SeveralAttributes):
                pieces["output"].append((mechanism, places, codes))
                continue
            for place, (name, part) in enumerate(mechanism.parts.items()):
                own, sent = mechanism.output_space.entries(codes, place)
                if sent.any():
                    pieces[f"output.{name}"].append((part, places[sent], own))
        return {name: column.array(pieces[name], rows) for name, column in self._columns.items()}


def _is_whole(space: OutputSpace) -> bool:
    """Whether outputs are whole numbers, and so in every mechanism of this kind."""
    return (
        isinstance(space, ValueOutputs | IntegerOutputs) and space.decode(np.zeros(0, dtype=np.int64)).dtype.kind == "i"
    )


def _joined(codes: Codes) -> pa.Array:
    """Return pairs of numbers as texts with a colon between them."""
    first, second = (pa.array(np.ascontiguousarray(codes[:, place])).cast(pa.string()) for place in (0, 1))
    return pc.binary_join_element_wise(first, second, ":")


def _hexadecimal(codes: NDArray[np.uint8]) -> pa.Array:
    """Return packed rows as 0x and their digits: without the 0x, programs take some of them for numbers."""
    count, width = codes.shape
    letters = np.empty((count, 2 + 2 * width), dtype=np.uint8)
    letters[:, :2] = ord("0"), ord("x")
    letters[:, 2::2] = DIGITS[codes >> 4]
    letters[:, 3::2] = DIGITS[codes & 15]
    starts = np.arange(count + 1, dtype=np.int64) * letters.shape[1]
    long = pa.LargeStringArray.from_buffers(count, pa.py_buffer(starts), pa.py_buffer(letters))
    return long.cast(pa.string())
