"""Tables of reports: one row for each output.

Columns are `mechanism` (may be left out when the study names one), `output`, and `user` (may be left out when
each row is one user). Other columns are ignored. Every row is used, or the reading stops with its number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hubbub.arrays import Array, Codes, Positions
from hubbub.errors import HubbubError, IntakeError, shorten
from hubbub.intake.study import Study
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.outputs import encode_each
from hubbub.reports import Reports
from hubbub.reports.gather import no_reports
from hubbub.reports.reports import assemble

if TYPE_CHECKING:
    import pyarrow as pa  # at run time it is imported where used: it takes a while

Source = str | Path
NEARLY = {
    **dict.fromkeys(("user", "users", "userid", "username", "userids"), "user"),
    **dict.fromkeys(("mechanism", "mechanisms", "mechanismname"), "mechanism"),
    **dict.fromkeys(("output", "outputs"), "output"),
}


def read_reports(source: Source | Iterable[Source], study: Study) -> Reports:
    """Read reports from one or several CSV or Parquet files.

    A user whose rows stand in several of the files is still one user.
    """
    if not isinstance(study, Study):
        raise IntakeError(
            "the second argument is not a study",
            where="read_reports(source, study)",
            got=shorten(study),
            expected="a Study",
            remedy="read it with hubbub.read_study('study.toml')",
        )
    paths = _paths(source)
    if not paths:
        raise no_reports("read_reports(source)")
    tables = [_Table(path, study) for path in paths]
    if len({table.users is None for table in tables}) > 1:
        without = next(table.where for table in tables if table.users is None)
        raise IntakeError(
            "some files say who sent each row and some do not",
            where=without,
            got="no column user",
            expected="the column user in all files, or in none",
            remedy="add the column, or read the files apart",
        )
    return _merge(tables, study)


def _paths(source: object) -> list[Path]:
    """Return the paths; a table is iterable too, but no list of them."""
    several = isinstance(source, Sequence | Iterator) and not isinstance(source, str | bytes)
    listed: list[object] = list(source) if several else [source]  # type: ignore[call-overload]
    paths = [Path(path) for path in listed if isinstance(path, str | Path)]
    if len(paths) < len(listed):
        raise IntakeError(
            "not the path of a file",
            where="read_reports(source)",
            got=shorten(next(path for path in listed if not isinstance(path, str | Path))),
            expected="the path of a CSV or Parquet file, or a list of paths",
            remedy="pass a path; for outputs in memory there is hubbub.Reports.from_outputs(mechanism, outputs)",
        )
    for file, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise IntakeError(
                "a file is named several times",
                where=", ".join(dict.fromkeys(str(path) for path in paths if path.resolve() == file)),
                got=f"{times} times",
                expected="each file once: its rows would count again and again",
                remedy="name it once",
            )
    return paths


class _Table:
    """One file's rows: mechanisms, outputs and users as dictionary-encoded columns."""

    def __init__(self, path: Path, study: Study) -> None:
        import pyarrow as pa

        self.where = str(path)
        table = _load(path)
        if table.num_rows == 0:
            raise no_reports(self.where)
        self._check_names(table.column_names)
        self.rows = table.num_rows
        self.outputs = self._column(table, "output")
        self.users = self._column(table, "user") if "user" in table.column_names else None
        if "mechanism" in table.column_names:
            self.mechanisms = self._column(table, "mechanism")
        elif len(study.mechanisms) == 1:
            only = pa.array([next(iter(study.mechanisms))])
            self.mechanisms = pa.DictionaryArray.from_arrays(pa.array(np.zeros(self.rows, dtype=np.int32)), only)
        else:
            raise IntakeError(
                "rows do not say which mechanism was used",
                where=self.where,
                got=f"columns {', '.join(table.column_names)}",
                expected=f"a column mechanism with one of {', '.join(study.mechanisms)}",
                remedy="add the column; it may be left out only when the study names a single mechanism",
            )

    def _check_names(self, names: list[str]) -> None:
        """Refuse a column that is nearly one of ours: read as another column, its rows would mean something else."""
        for name in names:
            meant = NEARLY.get(re.sub("[^a-z]", "", name.lower()))
            if meant is not None and name != meant and meant not in names:
                raise IntakeError(
                    "a column's name is nearly one that means something",
                    where=self.where,
                    got=shorten(name),
                    expected=f"{meant}, or another name altogether",
                    remedy=f"rename the column {meant} if it says that, otherwise give it another name",
                )

    def _column(self, table: pa.Table, name: str) -> pa.DictionaryArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        if table.column_names.count(name) != 1:
            raise IntakeError(
                f"there is no column {name}" if name not in table.column_names else f"there are several columns {name}",
                where=self.where,
                got=f"columns {shorten(table.column_names)}",
                expected=f"one column {name}, and commas between columns",
                remedy=f"name one column {name} in the first line",
            )
        column = table[name].combine_chunks()
        if pa.types.is_nested(column.type):
            raise IntakeError(
                "a column holds lists or tables",
                where=f"{self.where}, column {name}",
                got=str(column.type),
                expected="one number, one text or one packed row of bits in every row",
                remedy="write outputs as texts, as column:row, as seed:bucket or as a text of 0 and 1",
            )
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        empty = pc.is_null(column, nan_is_null=True)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            empty = pc.or_(pc.fill_null(pc.equal(column, ""), True), empty)
        if pc.any(empty).as_py():
            row = pc.index(empty, True).as_py()
            raise IntakeError(
                f"a row has no {name}",
                where=f"{self.where}, row {row + 1} below the header",
                got="nothing",
                expected=f"the column {name} filled in every row",
                remedy="complete the row, or leave it out on purpose",
            )
        return column.dictionary_encode()

    def row_of(self, mechanism: str, output: int) -> int:
        """Return the first row with this mechanism and this entry of the outputs' dictionary."""
        names = np.array(self.mechanisms.dictionary.to_pylist(), dtype=object)
        same = (names[_indices(self.mechanisms)] == mechanism) & (_indices(self.outputs) == output)
        return int(np.argmax(same)) + 1


def _load(path: Path) -> pa.Table:
    import pyarrow as pa

    if not path.is_file():
        raise IntakeError(
            "there is no such file of reports",
            where=str(path),
            got="a folder" if path.is_dir() else "nothing at that path",
            expected="a CSV or Parquet file",
            remedy="check the path; the files of a folder are named one by one",
        )
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            import pyarrow.parquet as pq

            return pq.ParquetFile(path).read()
        if path.suffix.lower() == ".csv":
            return _load_csv(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise IntakeError(
            "the file cannot be read",
            where=str(path),
            got=str(error).splitlines()[0],
            expected="what its ending says: a CSV table with a header, in UTF-8, or a Parquet file",
            remedy="write the file again, and check how it was saved and copied",
        ) from None
    raise IntakeError(
        "the file's ending is not known",
        where=str(path),
        got=path.suffix or "no ending",
        expected=".csv or .parquet",
        remedy="rename the file, or convert it",
    )


def _load_csv(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    if path.stat().st_size == 0:
        raise no_reports(str(path), "an empty file")
    ragged: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    try:
        parsing = csv.ParseOptions(invalid_row_handler=refuse, newlines_in_values=True)
        names = csv.open_csv(path, parse_options=parsing).schema.names
        parsing.ignore_empty_lines = len(names) > 1  # in a single column an empty line is an empty entry
        # All texts: 007 and 1e3 must reach the checks as they were written.
        texts = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        return csv.read_csv(path, parse_options=parsing, convert_options=texts)
    except pa.ArrowInvalid:
        if not ragged:
            raise
        raise IntakeError(
            "a row has too many or too few fields",
            where=str(path),
            got=f"{ragged[0].actual_columns} in the row {shorten(ragged[0].text)}",
            expected=f"{ragged[0].expected_columns}, as in the first line",
            remedy="correct the row; a text with a comma needs quotes",
        ) from None


def _merge(tables: list[_Table], study: Study) -> Reports:
    encoded: dict[Mechanism, list[Codes]] = {}
    senders: dict[Mechanism, list[Positions]] = {}
    people: dict[object, int] = {}
    count = 0
    for table in tables:
        if table.users is None:
            users = count + np.arange(table.rows)
            count += table.rows
        else:
            names = [people.setdefault(_person(name), len(people)) for name in table.users.dictionary.to_pylist()]
            users = np.array(names, dtype=np.int64)[_indices(table.users)]
            count = len(people)
        for label, rows in _by_mechanism(table, study):
            mechanism = study.mechanisms[label]
            encoded.setdefault(mechanism, []).append(_encode(table, label, mechanism, rows))
            senders.setdefault(mechanism, []).append(users[rows])
    _check_limit(senders, count, study, people)
    return assemble(
        study.domain,
        {mechanism: np.concatenate(parts) for mechanism, parts in encoded.items()},
        {mechanism: np.concatenate(parts) for mechanism, parts in senders.items()},
        count,
    )


def _person(name: object) -> str:
    """Return a user's name as text: 7, 7.0 and "7" are the same person in files of different kinds."""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _by_mechanism(table: _Table, study: Study) -> Iterable[tuple[str, Positions]]:
    which = _indices(table.mechanisms)
    for place, label in enumerate(table.mechanisms.dictionary.to_pylist()):
        rows = np.flatnonzero(which == place)
        if rows.size == 0:
            continue
        if label not in study.mechanisms:
            raise IntakeError(
                "a row names a mechanism that the study does not",
                where=f"{table.where}, row {rows[0] + 1} below the header",
                got=f"{shorten(label)} ({rows.size} row{'s' * (rows.size != 1)})",
                expected=f"one of {', '.join(study.mechanisms)}",
                remedy="add it to the study, or correct the rows",
            )
        yield label, rows


def _encode(table: _Table, label: str, mechanism: Mechanism, rows: Positions) -> Codes:
    """Encode each distinct text once; a bad one is told with its first row and how often it occurs."""
    import pyarrow as pa

    space = mechanism.output_space
    used, back = np.unique(_indices(table.outputs)[rows], return_inverse=True)
    found = table.outputs.dictionary.take(pa.array(used)).to_pylist()

    def tell(place: int, error: HubbubError) -> IntakeError:
        times = int(np.count_nonzero(back == place))
        return IntakeError(
            error.what,
            where=f"{table.where}, row {table.row_of(label, int(used[place]))} below the header, mechanism {label}",
            got=f"{error.got} ({times} row{'s' * (times != 1)})",
            expected=error.expected,
            remedy=error.remedy,
        )

    return encode_each(space, found, tell, read=space.read)[back.ravel()]


def _check_limit(
    senders: dict[Mechanism, list[Positions]], count: int, study: Study, people: dict[object, int]
) -> None:
    limit = study.max_reports_per_user
    if limit is None:
        return
    sent = np.zeros(count, dtype=np.int64)
    for parts in senders.values():
        for users in parts:
            sent += np.bincount(users, minlength=count)
    if sent.max() > limit:
        name = next((name for name, number in people.items() if number == int(np.argmax(sent))), "?")
        raise IntakeError(
            "a user sent more than the study allows",
            where=f"user {shorten(name)}",
            got=f"{int(sent.max())} outputs",
            expected=f"at most {limit} (max_reports_per_user)",
            remedy="every output spends privacy: leave the extra rows out on purpose, or raise the limit",
        )


def _indices(column: pa.DictionaryArray) -> Array:
    return np.asarray(column.indices)
