"""A tally that was damaged, by a single bit or by somebody who knows how it is made, is refused, or says the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from damaging import NAMES, answering, parts_of_tally, seal, small_tally, write_forged
from hubbub.client import digest_of
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.tallies import tally_writing as writing
from hubbub.intake.tallies.tally import RowsDigest, digest_of_rows
from hubbub.intake.tallies.tally_summary import read_summary

REFERENCE = Path(__file__).parent / "reference"


def flip_all(name: str, folder: Path, step: int) -> tuple[int, int]:
    """Flip every so many-th bit of a tally; return how many flips were refused, and how many changed nothing."""
    content = small_tally(name, folder).read_bytes()
    target = folder / "flipped.tally.parquet"
    refused = harmless = 0
    with answering() as answer:
        expected = answer(folder / f"{name}.tally.parquet")
        for bit in range(0, 8 * len(content), step):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            target.write_bytes(flipped)
            try:
                assert answer(target) == expected, f"bit {bit} of {name} changes the answer"
                harmless += 1
            except hb.HubbubError:
                refused += 1
    return refused, harmless


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_never_changes_the_answer(name: str, tmp_path: Path) -> None:
    refused, harmless = flip_all(name, tmp_path, 89)  # a prime: all bits of a byte, and all bytes of a word, in turn
    assert refused > 120
    assert harmless > 20  # statistics, what wrote it


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_flipped_bit_changes_the_answer(name: str, tmp_path: Path) -> None:
    refused, harmless = flip_all(name, tmp_path, 1)
    assert refused > 10_000
    assert harmless > 2_000


def unordered(rows: Any) -> list[str]:
    """Rows in an order of our own: outputs of one pattern stood in another order once."""
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("name", NAMES)
def test_tallies_from_before_there_were_digests_are_read(name: str, tmp_path: Path) -> None:
    """They were written by hubbub 0.1.0 before it wrote digests, from the reports that small_tally collects."""
    old, new = REFERENCE / f"undigested-{name}.tally.parquet", small_tally(name, tmp_path)
    rows, document = parts_of_tally(old)
    assert not {"digest", "row_groups"} & document.keys()
    with answering() as answer:
        assert answer(old)[:3] == answer(new)[:3]
        assert answer(old)[3:5] + answer(old)[6:] == answer(new)[3:5] + answer(new)[6:]
    assert hb.read_tally(old).summary.row_groups is None
    merged = hb.merge([old], tmp_path / "merged.tally.parquet", users_complete=True)
    new_rows, _ = parts_of_tally(merged.path)
    assert unordered(new_rows) == unordered(rows)
    assert hb.read_tally(merged.path).summary.row_groups == (digest_of_rows(new_rows),)
    assert merged.reports == hb.read_tally(new).reports


@pytest.mark.parametrize("name", NAMES)
def test_an_older_hubbub_finds_what_it_knows(name: str, tmp_path: Path) -> None:
    """The digests are entries more: without them, the description is that of version 1 as it always was."""
    rows, document = parts_of_tally(small_tally(name, tmp_path))
    old_rows, old = parts_of_tally(REFERENCE / f"undigested-{name}.tally.parquet")
    del document["digest"], document["row_groups"]
    del document["sources"][0]["place"]
    for described in (document, old):
        described["sources"][0].pop("name")
    assert document == old
    assert list(document) == list(old)
    assert unordered(rows) == unordered(old_rows)


def test_one_entry_without_the_other_is_refused(tmp_path: Path) -> None:
    rows, document = parts_of_tally(small_tally("singles", tmp_path))
    for name in ("digest", "row_groups"):
        less = {key: value for key, value in document.items() if key != name}
        if name == "row_groups":
            less["digest"] = digest_of(less)
        with pytest.raises(hb.IntakeError, match=f"no {name}"):
            hb.read_tally(write_forged(tmp_path / "less.tally.parquet", rows, less))


def test_what_the_digest_of_rows_sees() -> None:
    """Not how the rows are stored or cut, and any change of what they say."""
    rows = pa.table({"text": ["a", None, "bc", ""], "bytes": [b"\0", b"", None, b"\0\0"], "number": [1, None, 3, 0]})
    expected = digest_of_rows(rows)
    for first in range(5):
        cut = RowsDigest(3)
        cut.update(rows.slice(0, first))
        cut.update(rows.slice(first))
        assert cut.hexdigest() == expected
    assert digest_of_rows(rows.set_column(0, "text", rows["text"].dictionary_encode())) == expected
    assert digest_of_rows(pa.concat_tables([rows.slice(0, 1), rows.slice(1)])) == expected
    changed: list[dict[str, list[Any]]] = [
        {"text": ["a", "", "bc", ""]}, {"text": ["ab", None, "c", ""]}, {"text": [None, "a", "bc", ""]},
        {"bytes": [b"\0", b"\0", None, b"\0"]}, {"bytes": [b"\0", None, b"", b"\0\0"]}, {"number": [1, 0, 3, None]},
        {"number": [1, None, 0, 3]}, {"number": [1, 3, None, 0]},
    ]  # fmt: skip
    found = {expected}
    for columns in changed:
        found.add(digest_of_rows(pa.table({name: columns.get(name, rows[name]) for name in rows.column_names})))
    found.add(digest_of_rows(rows.slice(1)))
    found.add(digest_of_rows(rows.select(["bytes", "text", "number"])))
    assert len(found) == len(changed) + 3


@pytest.mark.parametrize("name", NAMES)
def test_the_digest_of_rows_is_the_one_that_the_documentation_describes(name: str, tmp_path: Path) -> None:
    rows, document = parts_of_tally(small_tally(name, tmp_path))
    assert rows.column_names == ["kind", "pattern", "mechanism", "output", "packed", "times", "users"]
    digests = b""
    for column in rows.column_names:
        entries = rows[column].to_pylist()
        there = [entry for entry in entries if entry is not None]
        streams = [bytes(entry is not None for entry in entries)]
        if column in ("pattern", "times", "users"):
            streams += [b"".join(entry.to_bytes(4 if column == "times" else 8, "little") for entry in there), b""]
        else:
            texts = [entry if isinstance(entry, bytes) else entry.encode("utf-8") for entry in there]
            streams += [b"".join(len(text).to_bytes(4, "little") for text in texts), b"".join(texts)]
        digests += b"".join(hashlib.sha256(stream).digest() for stream in streams)
    assert document["row_groups"] == [hashlib.sha256(digests).hexdigest()]
    own = document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert own == hashlib.sha256(text.encode("ascii")).hexdigest()


def test_each_row_group_has_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ROW_GROUP_ROWS", 3)
    path = small_tally("packed", tmp_path)
    file = pq.ParquetFile(path)
    assert file.num_row_groups == 4
    found = json.loads(file.metadata.metadata[b"hubbub"])["row_groups"]
    assert found == [digest_of_rows(file.read_row_group(group)) for group in range(4)]
    assert len(set(found)) == 4
    with answering() as answer:
        expected = answer(path)
        assert small_tally("packed", tmp_path) == path
        assert answer(path) == expected
    rows, document = parts_of_tally(path)
    groups = {"three": 3, "five": 5, "one": 100}
    for name, size in groups.items():
        forged = write_forged(tmp_path / f"{name}.tally.parquet", rows, document, row_group_size=size)
        if size == 3:
            assert hb.read_tally(forged).reports == hb.read_tally(path).reports
        else:
            with pytest.raises(hb.IntakeError, match=r"row group|changed since"):
                _ = hb.read_tally(forged).reports


def test_a_tally_that_was_replaced_meanwhile_is_not_called_damaged(tmp_path: Path) -> None:
    tally = hb.read_tally(small_tally("singles", tmp_path))
    (tmp_path / "more.csv").write_text("output\n4\n")
    hb.collect(tally.study, tmp_path / "more.csv", tally.path)
    with pytest.raises(hb.IntakeError, match="replaced while it was read") as caught:
        _ = tally.reports
    assert caught.value.code == "changed-meanwhile"
    assert hb.read_tally(tally.path).reports.users == tally.users + 1


def test_a_tally_that_does_not_fit_in_memory_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: object) -> None:
        raise MemoryError("Unable to allocate 12 TiB")

    tally = hb.read_tally(small_tally("joint", tmp_path))
    monkeypatch.setattr(RowCounter, "add_patterns", too_much)
    for call in (lambda: tally.reports, lambda: hb.merge([tally.path], tmp_path / "m.tally.parquet")):
        with pytest.raises(hb.IntakeError, match="do not fit in memory") as caught:
            call()
        assert caught.value.code == "out-of-space"


def test_pages_have_checksums(tmp_path: Path) -> None:
    """So that damage is seen where it is, and by other programs, too."""
    path = small_tally("singles", tmp_path)
    content = path.read_bytes()
    refused = 0
    for place in range(4, pq.read_metadata(path).row_group(0).column(6).data_page_offset):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        (tmp_path / "d.parquet").write_bytes(damaged)
        try:
            pq.read_table(tmp_path / "d.parquet", page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            refused += "CRC" in str(error)
    assert refused > 50


@pytest.mark.parametrize(
    ("name", "column", "values", "told"),
    [
        ("singles", "output", ["1", "0", "2", "3", "5"], "not in order"),
        ("singles", "output", ["0", "0", "2", "3", "5"], "twice the same"),
        ("joint", "pattern", [None, None, 0, 0, 1, 3, 3], "not in order"),
        ("joint", "pattern", [None, None, 1, 1, 2, 3, 3], "not in order"),
        ("joint", "pattern", [0, None, 0, 0, 1, 2, 2], "must be empty"),
        ("joint", "output", ["2", "5", "0", "0", "1", "0", "3"], "lists an output twice"),
        ("joint", "kind", ["single", "joint", "joint", "joint", "joint", "joint", "joint"], "missing"),
        ("joint", "kind", ["joint", "single", "joint", "joint", "joint", "joint", "joint"], "rows that are not"),
    ],
)  # fmt: skip
def test_rows_out_of_order_are_refused(name: str, column: str, values: list[object], told: str, tmp_path: Path) -> None:
    rows, document = parts_of_tally(small_tally(name, tmp_path))
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(place)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    rows = rows.set_column(place, pa.field(column, kind), [pa.array(values, kind)])
    forged = write_forged(tmp_path / "forged.tally.parquet", rows, seal(document, rows))
    with pytest.raises(hb.IntakeError, match=told) as caught:
        _ = hb.read_tally(forged).reports
    assert caught.value.code == "damaged-tally"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.take([0, 0, 2, 3, 4, 5, 6, 7, 8, 9]), "twice the same"),
        (lambda rows: rows.take([1, 0, 2, 3, 4, 5, 6, 7, 8, 9]), "not in order"),
        (lambda rows: rows.take([0, 1, 2, 3, 4, 5, 5, 7, 8, 9]), "twice the same"),
        (lambda rows: rows.take([0, 1, 2, 3, 4, 6, 5, 7, 8, 9]), "not in order"),
        (lambda rows: rows.slice(0, 9), "4 digests of 5 users"),
        (lambda rows: rows.slice(0, 5), "0 digests of 5 users"),
    ],
)
def test_packed_outputs_and_digests_out_of_order_are_refused(change: object, told: str, tmp_path: Path) -> None:
    assert callable(change)
    rows, document = parts_of_tally(small_tally("packed", tmp_path))
    rows = change(rows)
    forged = write_forged(tmp_path / "forged.tally.parquet", rows, seal(document, rows))
    with pytest.raises(hb.IntakeError, match=told) as caught:
        _ = hb.read_tally(forged).reports
    assert caught.value.code == "damaged-tally"


def test_descriptions_of_any_depth_are_told() -> None:
    """Just below the depth at which the parser gives up, everything else has to hold out, too."""
    _, document = parts_of_tally(REFERENCE / "undigested-singles.tally.parquet")
    document["digest"] = "0" * 64
    for key in ("study", "sources", "more"):
        text = json.dumps({**document, key: 0, "row_groups": ["0" * 64]}).encode()
        for depth in range(10, 1500, 20):
            for left, right in ((b"[", b"]"), (b'{"a":', b"}")):
                nested = left * depth + b"0" + right * depth
                with pytest.raises(hb.IntakeError):
                    read_summary(text.replace(f'"{key}": 0'.encode(), f'"{key}": '.encode() + nested), "t")


DESCRIPTIONS = {
    "no fingerprint": b'"fingerprint":', "Infinity": b'"rows":Infinity', "-Infinity": b'"rows":-Infinity',
    "NaN": b'"users":NaN', "1e400": b'"rows":1e400', "400 digits": b'"rows":' + b"9" * 400,
    "5000 digits": b'"rows":' + b"9" * 5000, "true for a number": b'"rows":true', "negative": b'"rows":-9',
    "a fraction": b'"rows":9.0', "bytes that are not UTF-8": b'"name":"\xff\xfe"', "half a JSON": b'"rows":9',
    "a key twice": b'"rows":9,"rows":9', "nested deeply": b'"study":' + b"[" * 100_000,
    "a number for a list": b'"sources":1e400', "null": b'"spent":null', "named by a number": b'"named":1',
    "a version that is true": b'"version":true', "a version that is a fraction": b'"version":1.0',
}  # fmt: skip


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions_that_are_none_are_told(name: str, tmp_path: Path) -> None:
    rows, document = parts_of_tally(REFERENCE / "undigested-singles.tally.parquet")
    entry = DESCRIPTIONS[name]
    key = json.loads(entry.split(b":")[0])
    text = json.dumps({one: value for one, value in document.items() if one != key}).encode()
    if name == "half a JSON":
        text = text[:-40]
    elif name != "no fingerprint":
        text = text[:-1] + b"," + entry + (b"}" if b"[[" not in entry else b"")
    forged = write_forged(tmp_path / "forged.tally.parquet", rows, text)
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_tally(forged)
    assert caught.value.code == "damaged-tally"
    assert all((caught.value.what, caught.value.where, caught.value.got, caught.value.expected, caught.value.remedy))
