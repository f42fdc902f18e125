"""Tallies damaged at random: whatever their bytes, descriptions and rows are, only a HubbubError comes out.

Run by itself, ``python tests/test_fuzz_tallies.py EXAMPLES SEED`` goes on for as long as one likes, with little memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import hubbub as hb
from damaging import NAMES, answering, parts_of_tally, seal, small_tally, write_forged
from hubbub.core.errors import HubbubError
from hubbub.intake.study import parse_study
from hubbub.intake.tallies.tally_summary import without_nulls

MEMORY = 3 << 30  # bytes of address space for the long run
EXAMPLES = 40  # of each kind in a short run

# -- bytes -----------------------------------------------------------------------------------------------------------


@st.composite
def _mutation(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Draw one change of some bytes, at places given as shares of their length."""
    kind = draw(st.sampled_from(["flip", "set", "cut", "drop", "insert", "copy", "swap"]))
    first, second = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    size = draw(st.integers(1, 64))
    new = draw(st.binary(min_size=1, max_size=16))
    bit = draw(st.integers(0, 7))

    def change(content: bytes) -> bytes:
        place, other = int(first * (len(content) - 1)), int(second * (len(content) - 1))
        if kind == "flip":
            return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]
        if kind == "set":
            return content[:place] + new + content[place + len(new) :]
        if kind == "cut":
            return content[:place]
        if kind == "drop":
            return content[:place] + content[place + size :]
        if kind == "insert":
            return content[:place] + new + content[place:]
        if kind == "copy":
            return content[:place] + content[other : other + size] + content[place + size :]
        return content[:place] + content[other:] + content[place:other]

    return lambda content: change(content) if content else content


def fuzz_bytes(folder: Path, **options: Any) -> None:
    """Damage the bytes of tallies: each is refused, or says what it said before."""
    contents = {name: small_tally(name, folder).read_bytes() for name in NAMES}
    target = folder / "damaged.tally.parquet"

    @_options(**options)
    @given(st.sampled_from(NAMES), st.lists(_mutation(), min_size=1, max_size=4))
    def damage(name: str, mutations: list[Callable[[bytes], bytes]]) -> None:
        content = contents[name]
        for mutate in mutations:
            content = mutate(content)
        target.write_bytes(content)
        try:
            found = answer(target)
        except HubbubError:
            return
        assert found == expected[name]

    with answering() as answer:
        expected = {name: answer(folder / f"{name}.tally.parquet") for name in NAMES}
        damage()


# -- descriptions ----------------------------------------------------------------------------------------------------

ODD = st.one_of(
    st.sampled_from(
        [None, True, False, 0, -1, 1, 2, 2**31, 2**53, 2**53 + 1, 2**63, -(2**63), 10**30, 10**400, 0.0, -0.5, 1e-320,
         1e300, 1e400, -1e400, float("nan"), "", "0", "tea", "\0", "\ud800", "x" * 10_000, "f" * 64, [], {}, [[]], [{}],
         [None], {"": None}, {"kind": "integers", "low": 0, "high": 10**12}, {"kind": "matrix"}]
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=6,
    ),
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all entries of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, entry in inner for place in _places(entry, (*path, key))]


def _changed(document: Any, path: tuple[Any, ...], how: str, odd: Any) -> Any:
    """Return a document with one entry replaced, removed, renamed or repeated."""
    whole = json.loads(json.dumps(document))
    owner = whole
    for key in path[:-1]:
        owner = owner[key]
    last = path[-1]
    if how == "remove":
        del owner[last]
    elif how == "rename" and isinstance(owner, dict):
        owner[str(odd)[:20]] = owner.pop(last)
    elif how == "repeat" and isinstance(owner, list):
        owner.append(owner[last])
    else:
        owner[last] = odd
    return whole


def _with_fingerprint(document: Any) -> Any:
    """Return a description whose study has the fingerprint beside it, where it is a study at all."""
    try:
        study = parse_study({"name": document["name"], **without_nulls(document["study"])}, "study")
        return {**document, "fingerprint": study.fingerprint}
    except Exception:  # whatever it is: then it is written as it is
        return document


def fuzz_descriptions(folder: Path, **options: Any) -> None:
    """Change the descriptions of tallies and seal them again, so that what they say is looked at."""
    known = {name: parts_of_tally(small_tally(name, folder)) for name in NAMES}
    target = folder / "described.tally.parquet"

    @_options(**options)
    @given(st.data())
    def describe(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(NAMES))
        rows, document = known[name]
        for _ in range(data.draw(st.integers(1, 2))):
            places = _places(document)
            if not places:
                break
            how = data.draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "repeat"]))
            document = _changed(document, data.draw(st.sampled_from(places)), how, data.draw(ODD))
        if data.draw(st.booleans()):
            document = _with_fingerprint(document)
        if data.draw(st.integers(0, 3)):
            document = seal(document, rows)
        _read(write_forged(target, rows, document), answer)

    with answering() as answer:
        describe()


# -- rows ------------------------------------------------------------------------------------------------------------

ENTRIES = {
    "kind": st.sampled_from(["single", "joint", "person", "double", "", None]),
    "pattern": st.sampled_from([None, -1, 0, 1, 2, 3, 2**62, -(2**63)]),
    "mechanism": st.sampled_from(["noise", "bits", "hash", "", "none", None]),
    "output": st.sampled_from(["0", "1", "2", "5", "6", "-1", "x", "", "+1", "01", "9" * 400, "\0", None]),
    "packed": st.sampled_from([b"", b"\0", b"\xc0", b"\xff", b"\x20", b"\0" * 12, b"\xff" * 12, b"\1" * 16, None]),
    "times": st.sampled_from([-1, 0, 1, 2, 3, 1000, 2**24, 2**24 + 1, 2**31 - 1, -(2**31), None]),
    "users": st.sampled_from([-1, 0, 1, 2, 3, 2**40, 2**53, 2**62, 2**63 - 1, -(2**63), None]),
}
TYPES = [pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.string(), pa.large_string(), pa.binary(), pa.bool_(),
         pa.list_(pa.int64()), pa.null(), pa.dictionary(pa.int8(), pa.string())]  # fmt: skip


def _plain(rows: pa.Table) -> pa.Table:
    """Return rows without dictionaries, in which any entry may be null."""
    arrays = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in rows.columns
    ]
    return pa.table(arrays, names=rows.column_names)


@st.composite
def _change_of_rows(draw: st.DrawFn) -> Callable[[pa.Table], pa.Table]:
    """Draw one change of some rows."""
    how = draw(st.sampled_from(["entry", "entry", "entry", "entry", "take", "column", "type"]))
    name = draw(st.sampled_from(list(ENTRIES)))
    entry, place = draw(ENTRIES[name]), draw(st.integers(0, 20))
    order = draw(st.lists(st.integers(0, 20), max_size=14))
    column, kind = draw(st.sampled_from(["drop", "add", "rename", "repeat", "move"])), draw(st.sampled_from(TYPES))

    def change(rows: pa.Table) -> pa.Table:
        if name not in rows.column_names or len(set(rows.column_names)) < rows.num_columns:
            return rows
        at = rows.column_names.index(name)
        if how == "take":
            places = [number % rows.num_rows for number in order] if rows.num_rows else []
            return rows.take(pa.array(places, pa.int64()))
        if how == "column":
            if column == "drop":
                return rows.drop_columns(name)
            if column == "move":
                return rows.select([*rows.column_names[at:], *rows.column_names[:at]])
            if column == "rename":
                return rows.rename_columns([f"{one}s" if one == name else one for one in rows.column_names])
            return rows.append_column(name if column == "repeat" else "more", rows[name])
        try:
            if how == "type":
                return rows.set_column(at, name, rows[name].cast(kind))
            entries = rows[name].to_pylist()
            if entries:
                entries[place % len(entries)] = entry
            return rows.set_column(at, name, pa.chunked_array([pa.array(entries, rows.schema.field(at).type)]))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return rows  # what does not fit into such a column

    return change


def fuzz_rows(folder: Path, **options: Any) -> None:
    """Change the rows of tallies and seal them again, some with a description that allows for more."""
    known = {name: parts_of_tally(small_tally(name, folder)) for name in NAMES}
    target = folder / "rewritten.tally.parquet"

    @_options(**options)
    @given(
        st.sampled_from(NAMES),
        st.lists(_change_of_rows(), min_size=1, max_size=4),
        st.sampled_from([0, 5, 2**40, 2**52]),
    )
    def rewrite(name: str, changes: list[Callable[[pa.Table], pa.Table]], more: int) -> None:
        rows, document = known[name]
        rows = _plain(rows)
        for change in changes:
            rows = change(rows)
        if more:
            sources = [{**document["sources"][0], "rows": document["rows"] + more}]
            document = {**document, "rows": document["rows"] + more, "sources": sources}
        _read(write_forged(target, rows, seal(document, rows)), answer)

    with answering() as answer:
        rewrite()


def _read(path: Path, answer: Callable[[Path], tuple[object, ...]]) -> None:
    """Read a forged tally: it is refused, or all that it says adds up."""
    refused = None
    try:
        found = answer(path)
    except HubbubError as error:
        refused = error
    if refused is not None:
        assert all((refused.what, refused.where, refused.got, refused.expected, refused.remedy))
        assert len(str(refused)) < 2000
        return
    tally, reports = hb.read_tally(path), found[-1]
    assert isinstance(reports, hb.Reports)
    assert reports.users == tally.users > 0


def _options(examples: int = EXAMPLES, number: int | None = None) -> Callable[[Any], Any]:
    """Return how many examples are drawn: always the same ones, or those of a seed."""
    checks = list(HealthCheck)
    phases = [Phase.generate, Phase.shrink]
    common = settings(
        max_examples=examples, deadline=None, derandomize=number is None, database=None, phases=phases,
        suppress_health_check=checks,
    )  # fmt: skip
    return common if number is None else lambda test: common(seed(number)(test))


FUZZERS = {"bytes": fuzz_bytes, "descriptions": fuzz_descriptions, "rows": fuzz_rows}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FUZZERS)
def test_only_a_message_comes_out_of_a_damaged_tally(name: str, tmp_path: Path) -> None:
    FUZZERS[name](tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_only_a_message_comes_out_of_thousands_of_damaged_tallies(name: str) -> None:
    """In a process that cannot have much memory: what claims to be huge is refused, not believed."""
    command = [sys.executable, __file__, name, "4000", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3000)  # noqa: S603
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split() == [name, "held"]


def main(name: str, examples: str, number: str) -> None:
    """Fuzz with little memory."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        FUZZERS[name](Path(folder), examples=int(examples), number=int(number))
    print(name, "held")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
