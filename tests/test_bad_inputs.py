"""Bad inputs, one line each: what is wrong, the code of the cause, and which rows are rejected.

Each case is read as it is: the run must stop with the code of the cause and a message in five parts. If single rows are
at fault, it is read again with all of them allowed: the listed rows must be exactly the bad ones, in their places, and
accepted and listed rows together must be all rows that another program counts.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import json
import os
import socket
import sqlite3
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from damaging import parts_of_tally, seal, write_forged
from hubbub.core.locks import exclusive_lock
from hubbub.core.progress import finish
from hubbub.intake import reject_causes as causes
from hubbub.intake.counting import continued_source
from hubbub.intake.in_memory_reading import read, read_groups
from hubbub.intake.privatizing.api import privatize_file
from hubbub.intake.read_plan import plan_reading
from hubbub.intake.sources import csv_reader
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.intake.tallies.tally_summary import Summary
from studies import LIGHT_TOML
from terminal import hubbub

DIGITS = hb.Integers(0, 9)
COLOURS = hb.Categories(["red", "green", "blue"])
CITY = hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=4, rows=3)
SEX = hb.Categories(["f", "m"])
PEOPLE = {"age": hb.TruncatedGeometric(DIGITS, 0.5), "sex": hb.RandomizedResponse(SEX, 1.0)}
STUDIES = {
    "people": hb.Study(hb.Product(age=DIGITS, sex=SEX), {"all": hb.Split(PEOPLE)}),
    "one of two": hb.Study(hb.Product(age=DIGITS, sex=SEX), {"one": hb.SampleOne(PEOPLE)}),
    "fakes": hb.Study(hb.Product(age=DIGITS, sex=SEX), {"fakes": hb.SampleOneWithFakes(PEOPLE)}),
    "people and bits": hb.Study(
        hb.Product(age=DIGITS, sex=SEX), {"all": hb.Split(age=hb.Rappor(DIGITS, 1.0), sex=PEOPLE["sex"])}
    ),
    "two ways": (
        lambda product: hb.Study(
            product, {"all": hb.Split(PEOPLE), "own": hb.Matrix(product, ["u", "v"], [[0.5, 0.5]] * 20)}
        )
    )(hb.Product(age=DIGITS, sex=SEX)),
    "people on a map": hb.Study(
        hb.Product(place=CITY, sex=SEX), {"all": hb.Split(place=hb.PlanarLaplace(CITY, 1.0), sex=PEOPLE["sex"])}
    ),
    "people in regions": (
        lambda product: hb.Study(
            product,
            {
                "all": hb.Split(
                    product, age=hb.Cloaking(DIGITS, ["young"] * 5 + ["old"] * 5), sex=hb.Cloaking(SEX, ["x", "y"])
                )
            },
        )
    )(hb.Product(age=DIGITS, sex=SEX, impossible=[{"age": [5, 6, 7, 8, 9], "sex": "m"}])),
    "many": hb.Study(
        DIGITS,
        {
            "light": hb.TruncatedGeometric(DIGITS, 0.5),
            "far": hb.Geometric(DIGITS, 0.5),
            "bits": hb.Rappor(DIGITS, 1.0),
            "hash": hb.LocalHashing(DIGITS, 1.0),
            "subset": hb.SubsetSelection(DIGITS, 1.0),
        },
    ),
    "one": hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5)}),
    "bits": hb.Study(DIGITS, {"bits": hb.Rappor(DIGITS, 1.0)}),
    "sketch": hb.Study(COLOURS, {"sketch": hb.CountMeanSketch(COLOURS, 1.0, hashes=4, width=12)}),
    "page": hb.Study(COLOURS, {"page": hb.BloomRappor(COLOURS, 4, 12, 2, epsilon=1.0)}),
    "colours": hb.Study(COLOURS, {"colour": hb.RandomizedResponse(COLOURS, 1.0)}),
    "map": (lambda grid: hb.Study(grid, {"map": hb.PlanarGeometric(grid, 1.0, truncated=False)}))(hb.Grid(4, 3)),
    "odd": hb.Study(COLOURS, {"odd": hb.Matrix(COLOURS, ["u", "v", "never"], [[0.5, 0.5, 0]] * 2 + [[0.25, 0.75, 0]])}),
    "regions": hb.Study(COLOURS, {"region": hb.Cloaking(COLOURS, ["a", "b", "b"])}),
    "city": hb.Study(
        CITY,
        {
            "near": hb.PlanarLaplace(CITY, 1.0),
            "far": hb.PlanarGeometric(CITY, 1.0, truncated=False),
            "any": hb.RandomizedResponse(CITY, 1.0),
            "bits": hb.Rappor(CITY, 1.0),
        },
    ),
    "streets": hb.Study(CITY, {"near": hb.PlanarLaplace(CITY, 1.0)}),
    "field": (lambda grid: hb.Study(grid, {"near": hb.PlanarLaplace(grid, 1.0)}))(hb.Grid(4, 3)),
    "limited": hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5)}, max_reports_per_user=2),
}
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Bad:
    """A source of reports with something wrong: the code, and (if rows are at fault) which rows are rejected."""

    name: str
    make: Callable[[Path], object]
    code: str  # with which the run stops
    study: str = "many"
    rejected: Mapping[int, str] = field(default_factory=dict)  # by place
    accepted: int = 0
    rows: int | None = None  # counted by hand, if no other program reads the source as we do
    error: type[hb.HubbubError] = hb.IntakeError


# -- texts ------------------------------------------------------------------------------------------------------


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        content = gzip.compress(content)
    if name.endswith(".zst"):
        content = bytes(pa.compress(content, "zstd", asbytes=True))
    path.write_bytes(content)
    return path


def line(
    name: str, bad: str | bytes, code: str, ending: str = ".csv", study: str = "many", good: str = "", head: str = ""
) -> Bad:
    """Return a file in which the second of three rows is bad."""
    separator = "\t" if ".tsv" in ending else ","
    head = head or ("mechanism,output" if study == "many" else "output").replace(",", separator)
    good = good or ("light,3" if study == "many" else "3").replace(",", separator)
    raw = bad if isinstance(bad, bytes) else bad.encode()
    content = b"\n".join([head.encode(), good.encode(), raw, good.encode(), b""])
    return Bad(f"{ending[1:]}: {name}", lambda folder: write(folder, f"r{ending}", content), code, study, {3: code}, 2)


def lines(name: str, content: str | bytes, rejected: Mapping[int, str], accepted: int, **more: Any) -> Bad:
    """Return a file in which some lines are bad."""
    ending = more.pop("ending", ".csv")
    raw = content if isinstance(content, bytes) else content.encode()
    code = next(iter(rejected.values())) if len(set(rejected.values())) == 1 else "rejected-rows"
    make = lambda folder: write(folder, f"r{ending}", raw)  # noqa: E731
    return Bad(f"{ending[1:]}: {name}", make, code, rejected=rejected, accepted=accepted, **more)


def whole(name: str, content: str | bytes, code: str, ending: str = ".csv", **more: Any) -> Bad:
    """Return a file that is not taken at all."""
    raw = content if isinstance(content, bytes) else content.encode()
    return Bad(f"{ending[1:]}: {name}", lambda folder: write(folder, f"r{ending}", raw), code, **more)


def raw(name: str, content: bytes, code: str, ending: str, **more: Any) -> Bad:
    """Return a file with exactly these bytes, whatever its ending says."""

    def make(folder: Path) -> Path:
        (folder / f"r{ending}").write_bytes(content)
        return folder / f"r{ending}"

    return Bad(f"{ending[1:]}: {name}", make, code, **more)


def place(name: str, bad: str, code: str, mechanism: str = "near", **more: Any) -> Bad:
    """Return a file in which the second of three places is bad."""
    head = "mechanism,lat,lon"
    return line(name, f"{mechanism},{bad}", code, study="city", head=head, good="near,37.75,-122.45", **more)


def places(name: str, lat: object, lon: object, study: str = "streets", columns: str = "lat,lon") -> Bad:
    """Return a file whose places are not where the study is."""
    content = f"{columns}\n" + f"{lat},{lon}\n" * 3
    return whole(name, content, "wrong-coordinates", study=study)


HEAD = "mechanism,output\n"
GOOD = "light,3\n"
PLAIN = (HEAD + GOOD * 50).encode()
LONG = b"light," + b"3" * 3_000_000  # a line may have 2 MiB
ZIPPED = gzip.compress(PLAIN)
FRAME = bytes(pa.compress(PLAIN, "zstd", asbytes=True))

TEXTS = [
    line("exponent", "light,1e3", "not-a-number"),
    line("decimal places", "light,3.00", "not-a-number"),
    line("a fraction", "light,3.5", "not-a-number"),
    line("a float beyond whole numbers", "light,9007199254740992.0", "rounded-number"),
    line("space before", "light, 3", "not-a-number"),
    line("space after", "light,3 ", "not-a-number"),
    line("full-width digit", "light,３", "not-a-number"),
    line("hexadecimal", "light,0x1", "not-a-number"),
    line("25 digits", "light," + "1" * 25, "not-a-number"),
    line("a number beyond 64 bits", "far,9999999999999999999", "bad-output"),
    line("a number below 64 bits", "far,-9999999999999999999", "bad-output"),
    line("below the domain", "light,-1", "out-of-domain"),
    line("above the domain", "light,10", "out-of-domain"),
    line("NaN", "light,NaN", "not-a-number"),
    line("inf", "light,inf", "not-a-number"),
    line("null", "light,null", "not-a-number"),
    line("NA", "light,NA", "not-a-number"),
    line("two signs", "light,--3", "not-a-number"),
    line("a sign alone", "light,-", "not-a-number"),
    line("underscore", "light,1_0", "not-a-number"),
    line("no output", "light,", "no-output"),
    line("quoted nothing", 'light,""', "no-output"),
    line("no mechanism", ",3", "no-mechanism"),
    line("nothing but a comma", ",", "no-mechanism"),
    line("unknown mechanism", "dark,3", "unknown-mechanism"),
    line("capital", "Light,3", "unknown-mechanism"),
    line("space after mechanism", "light ,3", "unknown-mechanism"),
    line("space before mechanism", " light,3", "unknown-mechanism"),
    line("header again", "mechanism,output", "unknown-mechanism"),
    line("quote within", 'li"ght,3', "unknown-mechanism"),
    line("mark of byte order within", "\ufefflight,3", "unknown-mechanism"),
    line("too few bits", "bits,01", "wrong-bits"),
    line("too many bits", "bits," + "0" * 11, "wrong-bits"),
    line("a bit of 2", "bits,0102000000", "wrong-bits"),
    line("three hexadecimal digits", "bits,804", "wrong-bits"),
    line("one byte after 0x", "bits,0x80", "wrong-bits"),
    line("no hexadecimal digits", "bits,zz40", "wrong-bits"),
    line("spare bits", "bits,8041", "spare-bits"),
    line("subset too small", "subset,1100000000", "subset-size"),
    line("subset too large", "subset,f000", "subset-size"),
    line("empty subset", "subset,0000000000", "subset-size"),
    line("seed beyond 64 bits", "hash,18446744073709551616:1", "not-hashed"),
    line("negative seed", "hash,-1:1", "not-hashed"),
    line("bucket too large", "hash,1:4", "no-such-bucket"),
    line("huge bucket", "hash,1:99999999999", "no-such-bucket"),
    line("seed alone", "hash,1", "not-hashed"),
    line("three parts", "hash,1:2:3", "not-hashed"),
    line("space in a pair", "hash, 1:1", "not-hashed"),
    line("a hash beyond the last", "4:0x0180", "no-such-hash", study="sketch", good="3:0x0180"),
    line("bits of a sketch alone", "0180", "not-a-hash", study="sketch", good="3:0x0180"),
    line("a sketch of three bits", "3:010", "wrong-bits", study="sketch", good="3:010000000001"),
    line("spare bits of a sketch", "3:0x0181", "spare-bits", study="sketch", good="3:0x0180"),
    line("a cohort beyond the last", "4:0x0180", "no-such-cohort", study="page", good="3:0180"),
    line("a huge cohort", "99999999999:0x0180", "not-a-cohort", study="page", good="3:0x0180"),
    line("a negative cohort", "-1:0x0180", "not-a-cohort", study="page", good="3:0x0180"),
    line("pair with a comma", "map", "not-a-pair", study="map", good="1:2"),
    line("half a pair", "1:", "not-a-pair", study="map", good="1:2"),
    line("pair of fractions", "1.5:2", "not-a-pair", study="map", good="1:2"),
    line("pair in brackets", "(1:2)", "not-a-pair", study="map", good="1:2"),
    line("another label", "Red", "out-of-domain", study="colours", good="red"),
    line("label with a space", "red ", "out-of-domain", study="colours", good="red"),
    line("no such output", "w", "not-an-output", study="odd", good="u"),
    line("an output that nobody can send", "never", "impossible-output", study="odd", good="u"),
    line("blank line in one column", "", "no-output", study="one"),
    line("too few fields", "light", "too-few-fields"),
    line("too many fields", "light,3,4", "too-many-fields"),
    line("semicolon", "light;3", "too-few-fields"),
    line("spaces only", "   ", "too-few-fields"),
    line("quotes and nothing else", '""', "too-few-fields"),
    line("unclosed quote", '"light,3', "unclosed-quote"),
    line("text after a quote", '"li"ght,3', "bad-quotes"),
    line("space after a quote", 'light,"3" ', "bad-quotes"),
    line("NUL", b"light,\x003", "nul-byte"),
    line("latin-1", b"light,\xe9", "not-utf-8"),
    line("half a character", b"light,\xc3", "not-utf-8"),
    line(
        "latin-1 in a column that nobody reads",
        b"light,3,\xe9",
        "not-utf-8",
        good="light,3,a",
        head="mechanism,output,c",
    ),
    line("3 MB", LONG, "line-too-long"),
    line("3 MB", LONG, "line-too-long", ".csv.gz"),
    line("exponent", "light\t1e3", "not-a-number", ".tsv"),
    line("comma", "light,3", "too-few-fields", ".tsv"),
    line("unclosed quote", 'light\t"3', "unclosed-quote", ".tsv"),
    line("NUL", b"light,\x00", "nul-byte", ".csv.gz"),
    line("too many fields", "light,3,4", "too-many-fields", ".csv.zst"),
    lines("3 MB at the start", HEAD.encode() + LONG + b"\n" + GOOD.encode(), {2: "line-too-long"}, 1),
    lines("3 MB at the end", HEAD.encode() + GOOD.encode() + LONG, {3: "line-too-long"}, 1),
    lines("no final newline", HEAD + GOOD + "light,x", {3: "not-a-number"}, 1),
    lines("CR alone", "mechanism,output\rlight,3\rlight,x\rlight,4\r", {3: "not-a-number"}, 2),
    lines("CRLF", "mechanism,output\r\nlight,3\r\nlight,x\r\nlight,4\r\n", {3: "not-a-number"}, 2),
    lines(
        "all newlines",
        "mechanism,output\rlight,3\r\n\nlight,x\nlight,4\rlight\r\n",
        {4: "not-a-number", 6: "too-few-fields"},
        2,
    ),
    lines("CR within a line", "mechanism,output\nlight,3\rx\nlight,4\n", {3: "too-few-fields"}, 2),
    lines("blank lines", "\n\nmechanism,output\n\nlight,x\n\n\nlight,4\n\n", {5: "not-a-number"}, 1),
    lines(
        "a field of three lines", 'mechanism,output,c\nlight,3,"a\nb\nc"\nlight,x,d\n', {5: "not-a-number"}, 1, rows=2
    ),
    lines(
        "latin-1 in the second of two lines",
        b'mechanism,output,c\nlight,3,"a\n\xe9"\nlight,4,d\n',
        {2: "not-utf-8"},
        1,
        rows=2,
    ),
    lines(
        "unclosed quote before many rows", HEAD + GOOD + 'light,"3\n' + GOOD * 300_000, {3: "unclosed-quote"}, 300_001
    ),
    lines(
        "unclosed quotes on every other line",
        HEAD + 'light,"3\nlight,4\n' * 3,
        {2: "bad-quotes", 4: "bad-quotes", 6: "unclosed-quote"},
        3,
    ),
    lines("no weight", "output,weight\n3,1\n4,\n", {3: "no-weight"}, 1, study="one"),
    lines("a weight of 0", "output,weight\n3,1\n4,0\n", {3: "not-a-weight"}, 1, study="one"),
    lines("a negative weight", "output,weight\n3,1\n4,-2\n", {3: "not-a-weight"}, 1, study="one"),
    lines("a weight with a comma", 'output,weight\n3,1\n4,"1,5"\n', {3: "not-a-weight"}, 1, study="one"),
    lines(
        "two weights of a user",
        "user,output,weight\na,3,1\nb,4,1\na,5,2\n",
        {2: "two-weights", 4: "two-weights"},
        1,
        study="one",
    ),
    lines("no user", "user,output\nann,3\n,4\n", {3: "no-user"}, 1, study="one"),
    lines(
        "users above the limit",
        "user,output\nann,3\nbob,1\nann,4\nann,5\n",
        {2: "too-many-reports", 4: "too-many-reports", 5: "too-many-reports"},
        1,
        study="limited",
    ),
    lines(
        "outputs that exclude each other",
        "user,output\nann,a\nbob,a\nann,b\neve,b\neve,b\n",
        {2: "impossible-report", 4: "impossible-report"},
        3,
        study="regions",
    ),
    lines(
        "stray quotes with rows between them",
        HEAD + 'light,"3\n' + GOOD * 200 + '",3\n' + GOOD,
        {2: "unclosed-quote", 203: "unclosed-quote"},
        201,
    ),
    lines("several causes", HEAD + "light,x\nlight,3\ndark,3\n", {2: "not-a-number", 4: "unknown-mechanism"}, 1),
    place("no latitude", ",-122.45", "no-place"),
    place("no longitude", "37.75,", "no-place"),
    place("no place", ",", "no-place", "far"),
    place("NaN for a latitude", "NaN,-122.45", "not-a-coordinate"),
    place("an infinite longitude", "37.75,-inf", "not-a-coordinate"),
    place("1e999 for a latitude", "1e999,-122.45", "not-a-coordinate"),
    place("letters for a latitude", "north,-122.45", "not-a-coordinate"),
    place("a decimal comma in a latitude", '"37,75",-122.45', "not-a-coordinate"),
    place("underscore in a latitude", "3_7.75,-122.45", "not-a-coordinate"),
    place("degrees and minutes in one row", "37°45',-122.45", "not-a-coordinate"),
    place("beyond the pole", "90.5,-122.45", "impossible-place"),
    place("twice around the earth", "37.75,-482.45", "impossible-place"),
    place("one swapped row", "-122.45,37.75", "impossible-place", "far"),
    place("a place of an unknown mechanism", "37.75,-122.45", "unknown-mechanism", "dark"),
    place("nowhere, of an unknown mechanism", ",", "unknown-mechanism", "dark"),
    place("outside the box, without noise that goes there", "37.95,-122.45", "out-of-domain", "any"),
    place("far outside the box, without such noise", "-37.95,22.45", "out-of-domain", "any"),
    place("a place for bits", "37.75,-122.45", "not-an-output", "bits"),
    place("a far place for bits", "-37.75,22.45", "not-an-output", "bits"),
    places("swapped coordinates", -122.45, 37.75),
    places("radians", 0.65886, -2.13715),
    places("degrees times ten million", 377500000, -1224500000),
    places("degrees times a million", 37750000, -122450000),
    places("longitudes from 0 to 360", 37.75, 237.55),
    places("longitudes without their sign", 37.75, 122.45),
    places("latitudes without their sign", -37.75, -122.45),
    places("Web Mercator", 4544164, -13631071),
    places("Web Mercator, x first", -13631071, 4544164),
    places("UTM", 4178000, 551000),
    places("another continent", 48.85, 2.35),
    places("degrees and minutes", "37°45'N", "122°27'W"),
    places("sexagesimal", "37:45:00", "-122:27:00"),
    places("letters for signs", "37.75 N", "122.45 W"),
    places("degrees for distances", -122.45, 37.75, columns="x,y"),
    lines("an x without y", "x,y\n1,1\n1,\n", {3: "no-place"}, 1, study="field"),
    whole("latitudes without a map", "lat,lon\n37.75,-122.45\n", "no-column", study="field"),
    whole("a latitude alone", "lat,height\n37.75,3\n", "no-column", study="streets"),
    whole("two latitudes", "Lat,latitude,lon\n37.75,37.75,-122.45\n", "repeated-column", study="streets"),
    whole("nothing", "", "no-reports", error=hb.ReportsError),
    whole("blank lines only", "\n\r\n\n", "no-reports", error=hb.ReportsError),
    whole("header only", HEAD, "no-reports", error=hb.ReportsError),
    whole("commas only", ",,\n1,2,3\n", "no-header"),
    whole("header with an open quote", 'mechanism,"output\nlight,3\n', "no-header"),
    whole("header of 3 MB", b"x" * 3_000_000, "no-header"),
    whole("UTF-16, cut short", (HEAD + GOOD).encode("utf-16")[:-1], "wrong-encoding"),
    whole(
        "UTF-16 with half a character", b"\xff\xfe" + (HEAD + GOOD).encode("utf-16-le") + b"\0\xdc", "wrong-encoding"
    ),
    whole("UTF-32", (HEAD + GOOD).encode("utf-32"), "wrong-encoding", ".csv.gz"),
    whole("UTF-16 without its mark", (HEAD + GOOD).encode("utf-16-le"), "no-header"),
    whole("semicolons and bars", "answer|who;when\n3|ann;7\n", "wrong-separator", study="one"),
    whole("a separator that is none", "sep=x\noutputxuser\n3xann\n", "wrong-separator", study="one"),
    whole("semicolons without the column", "answer;who\n3;ann\n", "no-column", study="one"),
    whole("decimal commas and points", "output;weight\n3;0,5\n4;1.25\n", "mixed-decimals", study="one"),
    whole("decimal points and commas", "output;weight\n3;1.5\n4;2\n5;1.234,5\n", "mixed-decimals", study="one"),
    lines("semicolons, and a row of commas", "mechanism;output\nlight;3\nlight,4\n", {3: "too-few-fields"}, 1),
    lines("sep=, one bad row", "sep=;\r\nmechanism;output\r\nlight;3\r\nlight;x\r\n", {4: "not-a-number"}, 1, rows=2),
    lines("UTF-16, one bad row", (HEAD + "light,x\n" + GOOD).encode("utf-16"), {2: "not-a-number"}, 1, rows=2),
    lines(
        "UTF-16, large end first, tabs",
        b"\xfe\xff" + "mechanism\toutput\r\nlight\tx\r\nlight\t3\r\n".encode("utf-16-be"),
        {2: "not-a-number"},
        1,
        rows=2,
    ),
    whole("a semicolon in a quoted name", '"output; given"\n3\n', "no-column", study="one"),
    whole("no header", GOOD * 3, "no-column", study="one"),
    whole("no column of outputs", "user,answer\nann,3\n", "no-column", study="one"),
    whole("output twice", "output,output\n3,3\n", "repeated-column", study="one"),
    whole("user twice", "user,user,output\na,b,3\n", "repeated-column", study="one"),
    whole("no column of mechanisms", "output\n3\n", "no-mechanism-column"),
    whole("capital in the header", "User,output\nann,3\n", "nearly-a-column", study="one"),
    whole("space in the header", "mechanism, output\nlight,3\n", "nearly-a-column"),
    whole("plural in the header", "outputs\n3\n", "nearly-a-column", study="one"),
    whole("weights by another name", "output,Survey_Weight\n3,0.5\n", "weighted-rows", study="one"),
    whole("counts", "output,count\n3,70\n", "weighted-rows", study="one"),
    raw("gzip, cut short", ZIPPED[:-9], "corrupt-compression", ".csv.gz"),
    raw("gzip, cut within its head", ZIPPED[:5], "corrupt-compression", ".csv.gz"),
    raw("gzip with more behind it", ZIPPED + b"garbage", "corrupt-compression", ".csv.gz"),
    raw(
        "gzip with a flipped bit", ZIPPED[:30] + bytes([ZIPPED[30] ^ 1]) + ZIPPED[31:], "corrupt-compression", ".csv.gz"
    ),
    raw("gzip that is none", PLAIN, "corrupt-compression", ".csv.gz"),
    raw("zstd, cut short", FRAME[:-4], "corrupt-compression", ".csv.zst"),
    raw("zstd with more behind it", FRAME + b"garbage", "corrupt-compression", ".csv.zst"),
    raw("zstd that is none", PLAIN, "corrupt-compression", ".csv.zst"),
    raw(
        "two gzip files in one",
        gzip.compress((HEAD + GOOD).encode()) + gzip.compress(b"light,x\n"),
        "not-a-number",
        ".csv.gz",
        rejected={3: "not-a-number"},
        accepted=1,
    ),
    raw(
        "two frames of zstd",
        FRAME + bytes(pa.compress(b"light,x\n", "zstd", asbytes=True)),
        "not-a-number",
        ".csv.zst",
        rejected={52: "not-a-number"},
        accepted=50,
    ),
    raw("gzip by its content", ZIPPED, "no-header", ".csv"),
    raw("no ending that is known", PLAIN, "unknown-format", ".docx"),
    raw("workbook of another program", PLAIN, "unknown-format", ".ods"),
    raw("a text called a workbook", PLAIN, "corrupt-file", ".xlsx"),
    raw("compressed twice by name", ZIPPED, "unknown-format", ".parquet.gz"),
]


def files(folder: Path, **content: str) -> list[Path]:
    return [write(folder, name.replace("_", "."), text.encode()) for name, text in content.items()]


def linked(folder: Path) -> list[Path]:
    [path] = files(folder, a_csv="output\n3\n")
    (folder / "b.csv").symlink_to(path)
    return [path, folder / "b.csv"]


def looping(folder: Path) -> Path:
    (folder / "a.csv").symlink_to(folder / "b.csv")
    (folder / "b.csv").symlink_to(folder / "a.csv")
    return folder / "a.csv"


def piped(folder: Path) -> Path:
    os.mkfifo(folder / "r.csv")
    return folder / "r.csv"


PATHS = [
    Bad("path: nothing there", lambda folder: folder / "r.csv", "no-such-file"),
    Bad("path: a file taken for a folder", lambda folder: write(folder, "a.csv", PLAIN) / "r.csv", "no-such-file"),
    Bad("path: with a NUL", lambda folder: f"{folder}/a\0b.csv", "not-readable"),
    Bad("path: too long", lambda folder: f"{folder}/{'x' * 5000}.csv", "not-readable"),
    Bad("path: a loop of links", looping, "not-readable"),
    Bad("path: a pipe", piped, "not-a-file"),
    Bad("path: a device", lambda _: "/dev/zero", "not-a-file"),
    Bad("path: an empty folder", lambda folder: folder, "no-files"),
    Bad("path: a pattern that fits nothing", lambda folder: f"{folder}/*.csv", "no-files"),
    Bad("path: a file twice", lambda folder: [write(folder, "r.csv", PLAIN)] * 2, "named-twice"),
    Bad(
        "path: a file by two ways",
        lambda folder: [write(folder, "r.csv", PLAIN), folder / ".." / folder.name / "r.csv"],
        "named-twice",
    ),
    Bad("path: a file and a link to it", linked, "named-twice", study="one"),
    Bad(
        "path: a copy",
        lambda folder: files(folder, a_csv="output\n3\n", b_csv="output\n3\n"),
        "same-content",
        study="one",
    ),
    Bad(
        "path: users in some",
        lambda folder: files(folder, a_csv="output\n3\n", b_csv="user,output\na,3\n"),
        "users-in-some",
        study="one",
    ),
    Bad("path: a number", lambda _: 7, "not-a-source"),
    Bad("path: no list", lambda _: [], "no-reports", error=hb.ReportsError),
]


def entry(name: str, bad: str | bytes, code: str, study: str = "many", good: str = "") -> Bad:
    """Return JSON lines of which the second of three is bad."""
    good = good or '{"mechanism": "light", "output": 3}'
    content = b"\n".join([good.encode(), bad if isinstance(bad, bytes) else bad.encode(), good.encode(), b""])
    return Bad(f"jsonl: {name}", lambda folder: write(folder, "r.jsonl", content), code, study, {2: code}, 2)


def says(output: str, mechanism: str = "light") -> str:
    return f'{{"mechanism": "{mechanism}", "output": {output}}}'


JSON = [
    entry("exponent", says("1e3"), "not-a-number"),
    entry("decimal places", says("3.00"), "not-a-number"),
    entry("a fraction", says("3.5"), "not-a-number"),
    entry("a float beyond whole numbers", says("9007199254740992.0"), "rounded-number"),
    entry("truth", says("true"), "not-an-output"),
    entry("beyond all floats", says("1e400"), "not-a-number"),
    entry("NaN", says("NaN"), "not-json"),
    entry("30 digits", says("9" * 30), "not-a-number"),
    entry("5000 digits", says("9" * 5000), "not-json"),
    entry("null", says("null"), "no-output"),
    entry("no output", '{"mechanism": "light"}', "no-output"),
    entry("no mechanism", '{"output": 3}', "no-mechanism"),
    entry("no keys", "{}", "no-mechanism"),
    entry("a number for a mechanism", '{"mechanism": 7, "output": 3}', "unknown-mechanism"),
    entry("list", "[1]", "not-an-object"),
    entry("number", "3", "not-an-object"),
    entry("cut short", says("3")[:-1], "not-json"),
    entry("more behind it", says("3") + says("4"), "not-json"),
    entry("single quotes", "{'mechanism': 'light', 'output': 3}", "not-json"),
    entry("a key twice", '{"mechanism": "light", "output": 3, "output": 4}', "repeated-key"),
    entry("a key twice, deep inside", '{"mechanism": "light", "output": 3, "x": {"a": 1, "a": 2}}', "repeated-key"),
    entry("a list for an output", says("[3]"), "nested-entry"),
    entry("an object for an output", says('{"a": 3}'), "nested-entry"),
    entry("a number for bits", says("1000000000", "bits"), "number-for-text"),
    entry("a number for a pair", says("12", "hash"), "not-hashed"),
    entry("half a character", says('"\\ud800"'), "not-utf-8"),
    entry("half a character for a mechanism", says("3", "\\ud800"), "not-utf-8"),
    entry("latin-1", b'{"mechanism": "light", "output": "\xe9"}', "not-utf-8"),
    entry("NUL", b'{"mechanism": "light", "output": "\x00"}', "nul-byte"),
    entry("an escaped NUL", says('"3\\u0000"'), "not-a-number"),
    entry("3 MB", says('"' + "3" * 3_000_000 + '"'), "line-too-long"),
    entry("nested 100,000 deep", "[" * 100_000, "not-json"),
    Bad(
        "jsonl: a new key far below",
        lambda folder: write(folder, "r.jsonl", b'{"output": 3}\n' * 1500 + b'{"output": 3, "user": 7}\n'),
        "too-many-fields",
        "one",
        {1501: "too-many-fields"},
        1500,
    ),
    Bad(
        "jsonl: a key that the first line lacks",
        lambda folder: write(folder, "r.jsonl", b'{"output": 3}\n\n{"output": 3, "user": 7}\n'),
        "no-user",
        "one",
        {1: "no-user"},
        1,
    ),
    Bad(
        "jsonl: no final newline, cut short",
        lambda folder: write(folder, "r.jsonl.gz", b'{"output": 3}\r\n{"output": '),
        "not-json",
        "one",
        {2: "not-json"},
        1,
    ),
    whole("a list of objects over several lines", '[\n{"output": 3},\n{"output": 4},\n]\n', "not-json", ".jsonl"),
    whole("CSV", HEAD + GOOD, "not-json", ".jsonl"),
    whole("a line that breaks off", '{"output": 3', "not-json", ".jsonl"),
    whole("a list in the only line", "[3]\n", "not-an-object", ".jsonl"),
    whole("a key twice in the only line", '{"output": 3, "output": 4}\n', "repeated-key", ".jsonl"),
    whole("a NUL byte in the only line", b'{"output": 3\0}\n', "nul-byte", ".jsonl"),
    whole("objects without keys", "{}\n{}\n", "no-header", ".jsonl"),
    whole("UTF-32", '{"output": 3}'.encode("utf-32"), "wrong-encoding", ".jsonl"),
    whole("nothing", "\n \n", "no-reports", ".jsonl", error=hb.ReportsError),
    whole("a capital", '{"output": 3, "User": 7}\n', "nearly-a-column", ".ndjson", study="one"),
]


# -- workbooks --------------------------------------------------------------------------------------------------


def sheet(name: str, entries: Sequence[object], rejected: Mapping[int, str], **more: Any) -> Bad:
    """Return a workbook with a column of outputs, some of them bad."""

    def make(folder: Path) -> Path:
        book = openpyxl.Workbook()
        for place, entry in enumerate(["output", *entries], 1):
            book.active.cell(place, 1, entry)
        book.save(folder / "r.xlsx")
        return folder / "r.xlsx"

    code, rows = next(iter(rejected.values())), len(entries)
    accepted = rows - len(rejected)
    return Bad(f"xlsx: {name}", make, code, "one", rejected=rejected, accepted=accepted, rows=rows, **more)


WORKBOOKS = [
    sheet("an error", [3, "#DIV/0!", 4], {3: "spreadsheet-error"}),
    sheet("a formula without a result", [3, "=A2+1", 4], {3: "unsaved-formula"}),
    sheet("more digits than are kept", [3, 1234567890123456, 4], {3: "rounded-number"}),
    sheet("a date", [3, datetime.date(2026, 11, 17), 4], {3: "not-a-number"}),
    sheet("a time", [3, datetime.time(8, 30), 4], {3: "not-a-number"}),
    sheet("a truth value", [3, True, 4], {3: "not-a-number"}),
    sheet("a decimal comma", [3, "3,5", 4], {3: "not-a-number"}),
    sheet("a unit", [3, "4 km", 4], {3: "not-a-number"}),
]


# -- files of columns -------------------------------------------------------------------------------------------


def parquet(folder: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, folder / "r.parquet", **options)
    return folder / "r.parquet"


def arrow(folder: Path, table: pa.Table, name: str = "r.arrow") -> Path:
    opened = pa.ipc.new_stream if name.endswith("arrows") else pa.ipc.new_file
    with opened(folder / name, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return folder / name


def column(
    name: str, values: Any, code: str, rejected: Sequence[int] = (), study: str = "one", **more: Any
) -> list[Bad]:
    """Return a Parquet and an Arrow file with a column that is bad in some rows, or as a whole."""
    named = more.pop("named", "output")
    others = more.pop("others", {})
    skip = more.pop("skip", "")

    def table() -> pa.Table:
        return pa.table({named: values() if callable(values) else values, **others})

    places = dict.fromkeys(rejected, code)
    accepted = len(table()) - len(rejected) if rejected else 0
    both: dict[str, Callable[..., Path]] = {"parquet": parquet, "arrow": arrow}
    return [
        Bad(f"{kind}: {name}", lambda folder, make=make: make(folder, table()), code, study, places, accepted)  # type: ignore[misc]
        for kind, make in both.items()
        if kind != skip
    ]


DAY = datetime.date(2020, 1, 1)
TEN = [b"\x80\x40", b"\x80", b"\x80\x40"]

COLUMNS = [
    *column("a fraction", [3.0, 3.5, 4.0], "not-a-number", [2]),
    *column("a float beyond whole numbers", [3.0, 2.0**53, 4.0], "rounded-number", [2]),
    *column("rounded users", [7.0, 2.0**53], "rounded-number", [2], named="user", others={"output": [3, 4]}),
    *column("NaN", [3.0, float("nan"), 4.0], "no-output", [2]),
    *column("infinity", [3.0, float("inf"), 4.0], "not-a-number", [2]),
    *column("null", [3, None, 4], "no-output", [2]),
    *column("truth", pa.array([True, False]), "out-of-domain"),
    *column("beyond 63 bits", pa.array([3, 2**63, 4], pa.uint64()), "out-of-domain", [2]),
    *column("negative", pa.array([3, -1, 4], pa.int8()), "out-of-domain", [2]),
    *column("text", ["3", "x", "4"], "not-a-number", [2]),
    *column("large text", pa.array(["3", "x", ""], pa.large_string()), "rejected-rows"),
    *column("text in a view", pa.array(["3", "1e3", "4"], pa.string_view()), "not-a-number", [2]),
    *column("dictionary", pa.array(["3", "x", "4"]).dictionary_encode(), "not-a-number", [2]),
    *column("dictionary with null", pa.array(["3", None, "4"]).dictionary_encode(), "no-output", [2]),
    *column(
        "null in the dictionary",
        lambda: pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(["3", None])),
        "no-output",
        [2],
        skip="parquet",
    ),
    *column("dictionary of numbers", pa.array([3, 11, 4]).dictionary_encode(), "out-of-domain", [2]),
    *column("decimal", [decimal.Decimal("3.00"), decimal.Decimal("3.50")], "not-a-number", [2]),
    *column("date", [DAY, DAY], "wrong-type"),
    *column("time stamp", [datetime.datetime(2020, 1, 1)] * 2, "wrong-type"),
    *column("duration", pa.array([1, 2], pa.duration("s")), "wrong-type"),
    *column("time of day", pa.array([1, 2], pa.time32("s")), "wrong-type"),
    *column("dates in a dictionary", pa.array([DAY, DAY]).dictionary_encode(), "wrong-type"),
    *column("list", [[1], [2]], "nested-column"),
    *column("table", [{"a": 1}] * 2, "nested-column"),
    *column("map", pa.array([[(1, 2)]] * 2, pa.map_(pa.int32(), pa.int32())), "nested-column"),
    *column("interval", pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()), "wrong-type", skip="parquet"),
    *column("nothing but nulls", pa.nulls(3), "no-output"),
    *column("bytes for a number", [b"3", b"4"], "out-of-domain"),
    *column("bytes of the wrong length", TEN, "wrong-bits", [2], study="bits"),
    *column("spare bits in bytes", [b"\x80\x40", b"\x80\x41", b"\x00\x00"], "spare-bits", [2], study="bits"),
    *column("a number for bits", [11, 0], "number-for-text", study="bits"),
    *column("no bytes", [b"\x80\x40", b"", None], "no-output", [2, 3], study="bits"),
    *column("numbers for mechanisms", [1, 2], "wrong-type", named="mechanism", others={"output": [3, 4]}, study="many"),
    *column("bytes for mechanisms", [b"light"], "wrong-type", named="mechanism", others={"output": [3]}, study="many"),
    *column(
        "lists for mechanisms", [["light"]], "nested-column", named="mechanism", others={"output": [3]}, study="many"
    ),
    *column(
        "unknown mechanism",
        pa.array(["light", "dark"]).dictionary_encode(),
        "unknown-mechanism",
        [2],
        named="mechanism",
        others={"output": [3, 4]},
        study="many",
    ),
    *column(
        "no mechanism", ["light", None], "no-mechanism", [2], named="mechanism", others={"output": [3, 4]}, study="many"
    ),
    *column("no user", ["ann", None, ""], "no-user", [2, 3], named="user", others={"output": [3, 4, 5]}),
    *column("a user that is no number", [1.0, float("nan")], "no-user", [2], named="user", others={"output": [3, 4]}),
    *column(
        "users of bytes", pa.array([b"a", None, b""]), "no-user", [2, 3], named="user", others={"output": [3, 4, 5]}
    ),
    *column("dates for users", [DAY], "wrong-type", named="user", others={"output": [3]}),
    *column("lists for users", [[1]], "nested-column", named="user", others={"output": [3]}),
    *column("no output", [3, 4], "no-column", named="answer"),
    *column("a capital", [3, 4], "nearly-a-column", named="Output"),
]


def damaged(name: str, code: str, change: Callable[[bytes], bytes], ending: str = ".parquet", **more: Any) -> Bad:
    """Return a file of columns whose bytes are changed."""

    def make(folder: Path) -> Path:
        table = pa.table({"output": [str(place % 10) for place in range(1000)]})
        options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
        path = parquet(folder, table, **options) if ending == ".parquet" else arrow(folder, table, f"a{ending}")
        (folder / f"r{ending}").write_bytes(change(path.read_bytes()))
        return folder / f"r{ending}"

    return Bad(f"{ending[1:]}: {name}", make, code, "one", **more)


def claiming(content: bytes, size: int) -> bytes:
    return content[:-8] + size.to_bytes(4, "little") + content[-4:]


DAMAGED = [
    damaged("cut in half", "corrupt-file", lambda content: content[: len(content) // 2]),
    damaged("cut by a byte", "corrupt-file", lambda content: content[:-1]),
    damaged("cut within the footer", "corrupt-file", lambda content: content[:-100]),
    damaged("a footer of four gigabytes", "corrupt-file", lambda content: claiming(content, 2**32 - 1)),
    damaged("a footer of nothing", "corrupt-file", lambda content: claiming(content, 0)),
    damaged("nothing", "corrupt-file", lambda _: b""),
    damaged("four bytes", "corrupt-file", lambda _: b"PAR1"),
    damaged("noise in the middle", "corrupt-file", lambda content: content[:50] + b"\xff" * 400 + content[450:]),
    damaged("a text by its content", "corrupt-file", lambda _: PLAIN),
    damaged("cut in half", "corrupt-file", lambda content: content[: len(content) // 2], ".arrows"),
    damaged(
        "noise in the middle",
        "corrupt-file",
        lambda content: content[:200] + b"\xff" * 4000 + content[4200:],
        ".arrows",
    ),
    damaged("cut in half", "corrupt-file", lambda content: content[: len(content) // 2], ".arrow"),
    damaged("nothing", "corrupt-file", lambda _: b"", ".arrow"),
    damaged("text", "corrupt-file", lambda _: PLAIN, ".feather"),
    damaged("text as a stream", "corrupt-file", lambda _: PLAIN, ".arrows"),
    Bad(
        "csv: Parquet by its content",
        lambda folder: parquet(folder, pa.table({"output": [3]})).rename(folder / "r.csv"),
        "no-header",
        "one",
    ),
    Bad(
        "parquet: no rows",
        lambda folder: parquet(folder, pa.table({"output": pa.array([], pa.int64())})),
        "no-reports",
        "one",
        error=hb.ReportsError,
    ),
    Bad(
        "arrow: no rows",
        lambda folder: arrow(folder, pa.table({"output": pa.array([], pa.int64())})),
        "no-reports",
        "one",
        error=hb.ReportsError,
    ),
    Bad(
        "parquet: no columns", lambda folder: parquet(folder, pa.table({})), "no-reports", "one", error=hb.ReportsError
    ),
    Bad(
        "arrow: output twice",
        lambda folder: arrow(folder, pa.table([[3], [4]], names=["output", "output"])),
        "repeated-column",
        "one",
    ),
    Bad(
        "arrow: text that is not UTF-8",
        lambda folder: arrow(folder, pa.table({"output": pa.array([b"\xff"]).view(pa.string())})),
        "corrupt-file",
        "one",
    ),
]


# -- databases and tables in memory ------------------------------------------------------------------------------


def sqlite(folder: Path, *outputs: object, table: str = "reports", create: str = "output") -> str:
    with sqlite3.connect(folder / "r.db") as connection:
        connection.execute(f"CREATE TABLE {table} ({create})")
        marks = ", ".join("?" * (create.count(",") + 1))
        rows = [row if isinstance(row, tuple) else (row,) for row in outputs]
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608
    connection.close()
    return f"sqlite:///{folder}/r.db#{table}"


def cut(path: Path, size: int) -> Path:
    os.truncate(path, size)
    return path


def duck(folder: Path, query: str) -> str:
    with duckdb.connect(folder / "r.duckdb") as connection:
        connection.execute(f"CREATE TABLE reports AS {query}")
    return f"duckdb:///{folder}/r.duckdb#reports"


def nobody_there() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def stream(*tables: pa.Table) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for table in tables:
            yield from table.to_batches()
        raise OSError("the line is dead")

    return pa.RecordBatchReader.from_batches(tables[0].schema, batches())


def one(
    name: str, make: Callable[[Path], object], code: str, rejected: Sequence[int] = (), accepted: int = 2, **more: Any
) -> Bad:
    study = more.pop("study", "one")
    return Bad(name, make, code, study, dict.fromkeys(rejected, code), accepted if rejected else 0, **more)


DATABASES = [
    one("sqlite: a text among numbers", lambda folder: sqlite(folder, 3, "x", 4), "not-a-number", [2]),
    one("sqlite: a float among numbers", lambda folder: sqlite(folder, 3, 3.5, 4), "not-a-number", [2]),
    one("sqlite: an exponent", lambda folder: sqlite(folder, "3", "1e3", "4"), "not-a-number", [2]),
    one("sqlite: null", lambda folder: sqlite(folder, 3, None, 4), "no-output", [2]),
    one("sqlite: out of the domain", lambda folder: sqlite(folder, 3, 10, 4), "out-of-domain", [2]),
    one("sqlite: bytes among numbers", lambda folder: sqlite(folder, 3, b"\xff", 4), "not-a-number", [2]),
    one(
        "sqlite: a text that is not UTF-8",
        lambda folder: sqlite(folder, "3", "4").replace(
            "#reports", "#SELECT output FROM reports UNION ALL SELECT CAST(x'ff' AS TEXT)"
        ),
        "not-utf-8",
        [3],
        rows=3,
    ),
    one(
        "sqlite: no user",
        lambda folder: sqlite(folder, ("a", 3), (None, 4), ("b", 5), create="user, output"),
        "no-user",
        [2],
    ),
    one("sqlite: no table", lambda folder: sqlite(folder, 3).replace("#reports", "#report"), "no-table"),
    one(
        "sqlite: a query that fails",
        lambda folder: sqlite(folder, 3).replace("#reports", "#SELECT outptu FROM reports"),
        "no-table",
    ),
    one(
        "sqlite: a query that writes",
        lambda folder: sqlite(folder, 3).replace("#reports", "#WITH a AS (SELECT 1) DELETE FROM reports"),
        "no-table",
    ),
    one(
        "sqlite: two statements",
        lambda folder: sqlite(folder, 3).replace("#reports", "#SELECT 3 AS output; DROP TABLE reports"),
        "no-table",
    ),
    one("sqlite: no output", lambda folder: sqlite(folder, 3, create="answer"), "no-column"),
    one("sqlite: a capital", lambda folder: sqlite(folder, 3, create="Output"), "nearly-a-column"),
    one(
        "sqlite: output twice",
        lambda folder: sqlite(folder, 3).replace("#reports", "#SELECT output, output FROM reports"),
        "repeated-column",
    ),
    one("sqlite: no rows", lambda folder: sqlite(folder), "no-reports", error=hb.ReportsError),
    one("sqlite: no file", lambda folder: f"sqlite:///{folder}/r.db#reports", "no-such-file"),
    one("sqlite: a folder", lambda folder: f"sqlite:///{folder}#reports", "not-a-file"),
    one("sqlite: a text file", lambda folder: f"sqlite:///{write(folder, 'r.db', PLAIN * 5)}#reports", "corrupt-file"),
    one("sqlite: too long a name", lambda folder: f"sqlite:///{folder}/{'x' * 5000}#reports", "not-readable"),
    one(
        "sqlite: cut short",
        lambda folder: f"sqlite:///{cut(Path(sqlite(folder, *range(9)).split('#')[0][10:]), 3000)}#reports",
        "corrupt-file",
    ),
    one(
        "sqlite: DuckDB by its content",
        lambda folder: duck(folder, "SELECT 3 AS output").replace("duckdb:", "sqlite:"),
        "corrupt-file",
    ),
    one("sqlite: no table named", lambda folder: sqlite(folder, 3).partition("#")[0], "bad-address"),
    one("duckdb: null", lambda folder: duck(folder, "SELECT unnest([3, NULL, 4]) AS output"), "no-output", [2]),
    one(
        "duckdb: a decimal",
        lambda folder: duck(folder, "SELECT unnest([3.0, 3.5, 4.0]) AS output"),
        "not-a-number",
        [2],
    ),
    one("duckdb: lists", lambda folder: duck(folder, "SELECT [3] AS output"), "nested-column"),
    one("duckdb: dates", lambda folder: duck(folder, "SELECT DATE '2020-01-01' AS output"), "wrong-type"),
    one("duckdb: no table", lambda folder: duck(folder, "SELECT 3 AS output") + "x", "no-table"),
    one(
        "duckdb: SQLite by its content", lambda folder: sqlite(folder, 3).replace("sqlite:", "duckdb:"), "corrupt-file"
    ),
    one("postgresql: nobody there", lambda _: f"postgresql://a:b@127.0.0.1:{nobody_there()}/c#d", "no-connection"),
    one("postgresql: no table named", lambda _: "postgresql://a:b@127.0.0.1/c", "bad-address"),
    one("another database", lambda _: "mysql://a:b@c/d#e", "bad-address"),
]

FRAMES = [
    one("pandas: a fraction", lambda _: pd.DataFrame({"output": [3.0, 3.5, 4.0]}), "not-a-number", [2]),
    one("pandas: NaN", lambda _: pd.DataFrame({"output": [3.0, float("nan"), 4.0]}), "no-output", [2]),
    one(
        "pandas: mixed", lambda _: pd.DataFrame({"output": pd.Series([3, "1e3", 4], dtype=object)}), "not-a-number", [2]
    ),
    one(
        "pandas: truth among numbers",
        lambda _: pd.DataFrame({"output": pd.Series([3, True], dtype=object)}),
        "wrong-type",
    ),
    one("pandas: dates", lambda _: pd.DataFrame({"output": pd.to_datetime(["2020-01-01"])}), "wrong-type"),
    one(
        "pandas: months",
        lambda _: pd.DataFrame({"output": pd.period_range("1970-01", periods=3, freq="M")}),
        "wrong-type",
    ),
    one("pandas: lists", lambda _: pd.DataFrame({"output": [[3], [4]]}), "nested-column"),
    one(
        "pandas: categories with nothing",
        lambda _: pd.DataFrame({"output": pd.Categorical(["3", None, "4"])}),
        "no-output",
        [2],
    ),
    one(
        "pandas: half a character",
        lambda _: pd.DataFrame({"output": pd.Series(["3", "\ud800", "4"], dtype=object)}),
        "not-utf-8",
        [2],
    ),
    one("pandas: no user", lambda _: pd.DataFrame({"user": [1, None, 2], "output": [3, 4, 5]}), "no-user", [2]),
    one(
        "pandas: a user index",
        lambda _: pd.DataFrame({"output": [3, 4, 5]}, index=pd.Index(["a", "", "b"], name="user")),
        "no-user",
        [2],
    ),
    one("pandas: a series", lambda _: pd.Series([3, 4]), "not-a-source"),
    one("pandas: no output", lambda _: pd.DataFrame({"answer": [3]}), "no-column"),
    one("pandas: no rows", lambda _: pd.DataFrame({"output": []}), "no-reports", error=hb.ReportsError),
    one("polars: null", lambda _: pl.DataFrame({"output": [3, None, 4]}), "no-output", [2]),
    one(
        "polars: 128 bits",
        lambda _: pl.DataFrame({"output": [3, 10**30, 4]}, schema={"output": pl.Int128}),
        "not-a-number",
        [2],
    ),
    one("polars: lists", lambda _: pl.DataFrame({"output": [[3]]}), "nested-column"),
    one("polars: objects", lambda _: pl.DataFrame({"output": [object()]}), "wrong-type"),
    one("polars: lazy", lambda _: pl.LazyFrame({"output": [3]}), "not-a-source"),
    one("pyarrow: out of the domain", lambda _: pa.table({"output": [3, 10, 4]}), "out-of-domain", [2]),
    one("pyarrow: a table twice", lambda _: [pa.table({"output": [3]})] * 2, "named-twice"),
    one("pyarrow: a stream that breaks off", lambda _: stream(pa.table({"output": [3]})), "corrupt-file"),
    one("pyarrow: a column alone", lambda _: pa.array([3, 4]), "not-a-source"),
]

# -- several attributes ------------------------------------------------------------------------------------------------


def entries_of(name: str, bad: str, code: str, study: str = "people", good: str = "3,f", head: str = "age,sex") -> Bad:
    """Return a table of several attributes in which the second of three rows is bad."""
    columns = ",".join(each if each in ("mechanism", "output") else f"output.{each}" for each in head.split(","))
    return line(f"attributes: {name}", bad, code, study=study, good=good, head=columns)


def object_of(name: str, bad: str, code: str, **more: Any) -> Bad:
    """Return JSON lines with an object of outputs each, of which the second of three is bad."""
    good = '{"output": {"age": 3, "sex": "f"}}\n'
    return lines(f"attributes: {name}", good + bad + "\n" + good, {2: code}, 2, study="people", ending=".jsonl", **more)


ATTRIBUTES = [
    entries_of("none of them", ",", "no-output"),
    entries_of("quoted nothing", '"",""', "no-output"),
    entries_of("out of its domain", "10,f", "out-of-domain"),
    entries_of("no number", "x,f", "not-a-number"),
    entries_of("an unknown label", "3,F", "out-of-domain"),
    entries_of("two faults are one row", "x,F", "not-a-number"),
    entries_of("bad where the other is missing", ",x", "out-of-domain"),
    entries_of("both of two", "3,f", "several-attributes", "one of two", good="3,"),
    entries_of("neither of two", ",", "no-output", "one of two", good="3,"),
    entries_of("no fake", "3,", "attribute-missing", "fakes"),
    entries_of("too few bits", "01,f", "wrong-bits", "people and bits", good="0101010101,f"),
    entries_of("spare bits", "8041,f", "spare-bits", "people and bits", good="8040,f"),
    entries_of(
        "an output beside attributes", "all,3,f,u", "two-outputs", "two ways", "all,3,f,", "mechanism,age,sex,output"
    ),
    entries_of(
        "attributes beside an output", "own,3,,u", "two-outputs", "two ways", "own,,,u", "mechanism,age,sex,output"
    ),
    entries_of("no output of its own", "own,,,", "no-output", "two ways", "own,,,u", "mechanism,age,sex,output"),
    entries_of(
        "a mechanism that is not there",
        "any,3,f,",
        "unknown-mechanism",
        "two ways",
        "all,3,f,",
        "mechanism,age,sex,output",
    ),
    entries_of("a combination that is impossible", "old,y", "impossible-output", "people in regions", good="young,y"),
    entries_of("half a place", "37.75,,f", "no-place", "people on a map", "37.75,-122.45,f", "place.lat,place.lon,sex"),
    entries_of(
        "a place that is no number",
        "x,1,f",
        "not-a-coordinate",
        "people on a map",
        "37.75,-122.45,f",
        "place.lat,place.lon,sex",
    ),
    entries_of(
        "beyond the pole", "91,1,f", "impossible-place", "people on a map", "37.75,-122.45,f", "place.lat,place.lon,sex"
    ),
    line("attributes: no JSON", "3", "not-attributes", study="people", good='"{""age"": 3}"'),
    line("attributes: a list", '"[3, ""f""]"', "not-attributes", study="people", good='"{""age"": 3}"'),
    line("attributes: another key", '"{""agee"": 3}"', "not-attributes", study="people", good='"{""age"": 3}"'),
    line("attributes: an object within", '"{""age"": {}}"', "not-attributes", study="people", good='"{""age"": 3}"'),
    line("attributes: an empty object", "{}", "no-output", study="people", good='"{""age"": 3}"'),
    whole(
        "attributes: objects and numbers",
        '{"output": {"age": 3}}\n{"output": 3}\n',
        "repeated-column",
        ".jsonl",
        study="people",
    ),
    object_of("truth", '{"output": {"age": true}}', "not-an-output"),
    object_of("a list within", '{"output": {"age": [3]}}', "nested-entry"),
    object_of("the same twice", '{"output": {"age": 3}, "output.age": 4}', "repeated-key"),
    object_of("nothing in it", '{"output": {}}', "no-output"),
    whole("attributes: another name", "output.agee,output.sex\n3,f\n", "unknown-attribute", study="people"),
    whole("attributes: none of their columns", "age,sex\n3,f\n", "no-column", study="people"),
    whole("attributes: one of their columns", "output.age\n3\n", "no-column", study="fakes"),
    whole("attributes: outputs twice", "output,output.age\n3,3\n", "repeated-column", study="people"),
    whole("attributes: a column twice", "output.age,output.age\n3,3\n", "repeated-column", study="people"),
    whole(
        "attributes: coordinates of what", "lat,lon,output.sex\n37.75,-122.45,f\n", "no-column", study="people on a map"
    ),
    whole(
        "attributes: a latitude alone", "output.place.lat,output.sex\n37.75,f\n", "no-column", study="people on a map"
    ),
    whole(
        "attributes: a place twice",
        "output.place,output.place.lat\n1,37.75\n",
        "repeated-column",
        study="people on a map",
    ),
    Bad(
        "arrow: attributes: another field",
        lambda _: pa.table({"output": [{"age": 3, "gender": "f"}]}),
        "unknown-attribute",
        "people",
    ),
    Bad("arrow: attributes: a list", lambda _: pa.table({"output.age": [[3]]}), "nested-column", "people"),
    Bad("arrow: attributes: dates", lambda _: pa.table({"output.age": [DAY]}), "wrong-type", "people"),
]

BAD = [*TEXTS, *PATHS, *ATTRIBUTES, *JSON, *WORKBOOKS, *COLUMNS, *DAMAGED, *DATABASES, *FRAMES]


# -- tallies, studies, and what is written ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    """Something else than reading that is refused."""

    name: str
    make: Callable[[Path, Patch], object]
    code: str
    error: type[hb.HubbubError] = hb.IntakeError


def tally(folder: Path, name: str = "t", content: str = "output\n3\n4\n", study: str = "one", **options: Any) -> Path:
    source = write(folder, f"{name}.csv", content.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hb.HubbubWarning)  # a limit that cannot be checked
        return hb.collect(STUDIES[study], source, folder / f"{name}.tally.parquet", **options).path


def forged(
    folder: Path, change: Callable[[dict[str, Any]], object], rows: Any = None, content: str = "output\n3\n4\n"
) -> Path:
    """Write a tally with another description, or other rows."""
    path = tally(folder, content=content)
    table, document = parts_of_tally(path)
    table = rows(table) if rows is not None else table
    changed = change(document) or document
    return write_forged(folder / "forged.tally.parquet", table, seal(changed, table))


def described(name: str, code: str = "damaged-tally", **entries: Any) -> Refused:
    return Refused(
        f"tally: {name}",
        lambda folder, _: hb.read_tally(forged(folder, lambda document: document.update(entries))),
        code,
    )


def rewritten(name: str, rows: Callable[[pa.Table], pa.Table], content: str = "output\n3\n4\n") -> Refused:
    def make(folder: Path, _: Patch) -> object:
        return hb.read_tally(forged(folder, lambda _: None, rows, content)).reports

    return Refused(f"tally: {name}", make, "damaged-tally")


def put(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), [pa.array(values).cast(table.schema.field(place).type)])


JOINT = "user,output\na,3\na,4\nb,5\nb,6\n"  # two patterns of two outputs
KEY = b"a key that nobody can guess"


def key(folder: Path, content: bytes = KEY) -> Path:
    path = folder / f"{content[:5].hex()}.key"
    path.write_bytes(content)
    return path


def again(folder: Path, first: str, second: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> object:
    """Collect twice into one tally."""
    tally(folder, content=first, **before)
    source = write(folder, "second.csv", second.encode())
    return hb.collect(STUDIES["one"], source, folder / "t.tally.parquet", **after)


def locked(folder: Path) -> object:
    with exclusive_lock(folder / "t.tally.parquet"):
        return tally(folder)


def full(folder: Path, patch: Patch) -> object:
    def fsync(_: int) -> None:
        raise OSError(28, "No space left on device")

    patch.setattr(os, "fsync", fsync)
    return tally(folder)


def growing(folder: Path, patch: Patch) -> object:
    plain = CsvSource.rows

    def rows(self: CsvSource, wanted: Sequence[str]) -> Iterator[Rows]:
        yield from plain(self, wanted)
        with self.path.open("a") as file:
            file.write("5\n")

    patch.setattr(CsvSource, "rows", rows)
    return tally(folder)


def losing(folder: Path, patch: Patch) -> object:
    patch.setattr(csv_reader, "count_lines", lambda text: text.count(b"\n") + 5)
    return hb.read_reports(write(folder, "r.csv", b"output\n3\rx\n"), STUDIES["one"], allow_rejects="100%")


def groups(folder: Path, content: str, ending: str = ".csv", by: str = "town", **options: Any) -> object:
    source = write(folder, f"r{ending}", content.encode())
    return finish(read_groups(plan_reading([source], STUDIES["one"], by=(by,), **options)))


def undriven(folder: Path, patch: Patch) -> object:
    address = duck(folder, "SELECT 3 AS output")
    patch.setitem(sys.modules, "duckdb", None)
    return hb.read_reports(address, STUDIES["one"])


def study(name: str, text: str) -> Refused:
    def make(folder: Path, _: Patch) -> object:
        (folder / "study.toml").write_text(text, encoding="utf-8")
        return hb.read_study(folder / "study.toml")

    return Refused(f"study: {name}", make, "", hb.StudyError)


def nights(name: str, code: str, *contents: str, marks: Sequence[str] = ("id", "id"), most: int = 100) -> Refused:
    """Return the case of a file that is collected anew whenever it has grown, or changed."""

    def make(folder: Path, patch: Patch) -> None:
        patch.setattr(continued_source, "MAX_REMEMBERED_ROWS", most)
        for content, mark in zip(contents, marks, strict=False):
            tally(folder, content=content, watermark=mark)

    return Refused(f"watermark: {name}", make, code)


def overlapping(folder: Path, _: Patch) -> None:
    address = sqlite(folder, (3, 1), (4, 2), create="output, id")
    for source in (address, address.replace("#reports", "#select id, output from reports")):
        hb.collect(STUDIES["one"], source, folder / "t.tally.parquet", watermark="id")


OTHERS = [
    nights("nothing", "no-mark", "id,output\n1,3\n,4\n"),
    nights("names", "not-a-mark", "id,output\nanna,3\nbert,4\n"),
    nights("fractions", "not-a-mark", "id,output\n1.5,3\n2.5,4\n"),
    nights("numbers, then times", "not-a-mark", "id,output\n1,3\n2026-01-01,4\n"),
    nights("a table that was emptied", "mark-moved-back", "id,output\n1,3\n2,4\n", "id,output\n1,3\n"),
    nights("the last row was corrected", "rows-changed", "id,output\n1,3\n2,4\n", "id,output\n1,3\n2,5\n3,1\n"),
    nights("another column", "other-mark", *["id,at,output\n1,1,3\n2,2,4\n"] * 2, marks=("id", "at")),
    nights("all rows alike", "too-many-at-mark", "id,output\n1,3\n1,4\n1,5\n1,6\n", most=3),
    Refused("watermark: a table and a query over it", overlapping, "overlapping-sources"),
    Refused("tally: nothing there", lambda folder, _: hb.read_tally(folder / "t.tally.parquet"), "no-such-file"),
    Refused("tally: text", lambda folder, _: hb.read_tally(write(folder, "t.tally.parquet", PLAIN)), "not-a-tally"),
    Refused(
        "tally: Parquet without a description",
        lambda folder, _: hb.read_tally(parquet(folder, pa.table({"output": [3]}))),
        "not-a-tally",
    ),
    Refused(
        "tally: cut short",
        lambda folder, _: hb.read_tally(cut(tally(folder), 500)),
        "not-a-tally",
    ),
    Refused(
        "tally: a list for a description",
        lambda folder, _: hb.read_tally(forged(folder, lambda _: [1])),
        "damaged-tally",
    ),
    described("another format", format="other"),
    described("a newer version", "unknown-version", version=3),
    described("groups that are not there", version=2),
    described("another fingerprint", fingerprint="0" * 64),
    described("more users than rows", users=3),
    described("negative users", users=-2),
    described("users that are no number", users="many"),
    described("negative rows", rows=-1),
    described("rows beyond all numbers", rows=10**30),
    described("an unknown cause", rejected={"bad-luck": 0}),
    described("negative rejects", rejected={"no-output": -1}),
    described("sources that are none", sources=7),
    described("sources with other rows", sources=[{"name": "x", "sha256": None, "rows": 5}]),
    described("a number for a digest", sources=[{"name": "x", "sha256": 7, "rows": 2}]),
    described("a number for a key", key=7),
    described(
        "a study of 10^12 values",
        study={
            "version": 1,
            "domain": {"kind": "integers", "low": 0, "high": 10**12},
            "mechanisms": {"light": {"kind": "rappor", "epsilon": 1.0}},
        },
    ),
    described("no study", study=None),
    rewritten("negative users in a row", lambda table: put(table, "users", [1, -1])),
    rewritten("nobody", lambda table: put(table, "users", [2, 0])),
    rewritten("other users", lambda table: put(table, "users", [1, 2])),
    rewritten("users beyond all numbers", lambda table: put(table, "users", [2**62, 2**62])),
    rewritten("never", lambda table: put(table, "times", [0, 1])),
    rewritten("single outputs sent twice", lambda table: put(table, "times", [2, 2])),
    rewritten("a row less", lambda table: table.slice(1)),
    rewritten("an output that is none", lambda table: put(table, "output", ["3", "x"])),
    rewritten("an output written otherwise", lambda table: put(table, "output", ["3", "+4"])),
    rewritten("no output", lambda table: put(table, "output", ["3", None])),
    rewritten("out of the domain", lambda table: put(table, "output", ["3", "10"])),
    rewritten("an unknown mechanism", lambda table: put(table, "mechanism", ["light", "dark"])),
    rewritten("an unknown kind", lambda table: put(table, "kind", ["single", "double"])),
    rewritten("huge times", lambda table: put(table, "times", [2**31 - 1] * 4), JOINT),
    rewritten("patterns out of order", lambda table: put(table, "pattern", [1, 1, 0, 0]), JOINT),
    rewritten("a pattern in two places", lambda table: put(table, "pattern", [0, 1, 1, 0]), JOINT),
    rewritten("a pattern without a number", lambda table: put(table, "pattern", [0, 0, None, None]), JOINT),
    rewritten("a pattern with two counts", lambda table: put(table, "users", [1, 2, 1, 1]), JOINT),
    rewritten("patterns of one output", lambda table: put(table, "pattern", [0, 1, 2, 3]), JOINT),
    rewritten("other columns", lambda table: table.drop_columns("times")),
    rewritten("users as texts", lambda table: table.set_column(6, "users", [["1", "1"]])),
    Refused(
        "merge: a damaged tally",
        lambda folder, _: hb.merge(
            [forged(folder, lambda _: None, lambda table: table.slice(1))], folder / "m.tally.parquet"
        ),
        "damaged-tally",
    ),
    Refused(
        "merge: of two studies",
        lambda folder, _: hb.merge(
            [tally(folder), tally(folder, "o", "output\n5\n", "limited")], folder / "m.tally.parquet"
        ),
        "other-study",
    ),
    Refused(
        "merge: a file in both",
        lambda folder, _: hb.merge(
            [tally(folder), hb.collect(STUDIES["one"], folder / "t.csv", folder / "o.tally.parquet").path],
            folder / "m.tally.parquet",
        ),
        "counted-twice",
    ),
    Refused(
        "merge: files with the same bytes",
        lambda folder, _: hb.merge([tally(folder), tally(folder, "o")], folder / "m.tally.parquet"),
        "same-content",
    ),
    Refused(
        "collect: a file with the bytes of a counted one",
        lambda folder, _: (
            tally(folder)
            and hb.collect(STUDIES["one"], write(folder, "twin.csv", b"output\n3\n4\n"), folder / "t.tally.parquet")
        ),
        "same-content",
    ),
    Refused(
        "merge: users that may be in both",
        lambda folder, _: hb.merge(
            [tally(folder, content="user,output\na,3\n"), tally(folder, "o", "user,output\na,4\n")],
            folder / "m.tally.parquet",
        ),
        "users-unknown",
    ),
    Refused(
        "merge: no tallies", lambda folder, _: hb.merge([], folder / "m.tally.parquet"), "no-reports", hb.ReportsError
    ),
    Refused(
        "collect: into another study's tally",
        lambda folder, _: tally(folder) and tally(folder, study="limited"),
        "other-study",
    ),
    Refused(
        "collect: into a tally with other groups",
        lambda folder, _: again(folder, "town,output\na,3\n", "town,output\nb,4\n", {}, {"by": "town"}),
        "other-groups",
    ),
    Refused(
        "collect: more of unknown users",
        lambda folder, _: again(folder, "user,output\na,3\n", "user,output\nb,3\n", {}, {}),
        "users-unknown",
    ),
    Refused(
        "collect: with another key",
        lambda folder, _: again(
            folder,
            "user,output\na,3\n",
            "user,output\nb,3\n",
            {"users_key": key(folder)},
            {"users_key": key(folder, KEY[::-1])},
        ),
        "wrong-key",
    ),
    Refused("collect: with a short key", lambda folder, _: tally(folder, users_key=key(folder, b"short")), "wrong-key"),
    Refused("collect: with a key of nowhere", lambda folder, _: tally(folder, users_key="a\0b"), "wrong-key"),
    Refused(
        "collect: users again",
        lambda folder, _: again(
            folder, "user,output\na,3\n", "user,output\na,4\n", {"users_key": key(folder)}, {"users_key": key(folder)}
        ),
        "user-counted-before",
    ),
    Refused("collect: into a tally that is being written", lambda folder, _: locked(folder), "locked"),
    Refused(
        "collect: into a missing folder",
        lambda folder, _: hb.collect(
            STUDIES["one"], write(folder, "r.csv", b"output\n3\n"), folder / "no" / "t.tally.parquet"
        ),
        "not-written",
    ),
    Refused(
        "collect: to a path with a NUL",
        lambda folder, _: hb.collect(
            STUDIES["one"], write(folder, "r.csv", b"output\n3\n"), f"{folder}/a\0.tally.parquet"
        ),
        "not-written",
    ),
    Refused(
        "collect: rejects in a missing folder",
        lambda folder, _: tally(folder, rejects=folder / "no" / "r.csv"),
        "not-written",
    ),
    Refused(
        "collect: rejects over the reports",
        lambda folder, _: tally(folder, content="output\n3\nx\n", rejects=folder / "t.csv"),
        "",
        hb.SettingError,
    ),
    Refused(
        "read: rejects in a missing folder",
        lambda folder, _: hb.read_reports(
            write(folder, "r.csv", b"output\n3\n"), STUDIES["one"], rejects=folder / "no" / "r.csv"
        ),
        "not-written",
    ),
    Refused(
        "read: rejects to a path with a NUL",
        lambda folder, _: hb.read_reports(
            write(folder, "r.csv", b"output\n3\n"), STUDIES["one"], rejects=f"{folder}/a\0"
        ),
        "not-written",
    ),
    Refused(
        "read: rejects to a folder",
        lambda folder, _: hb.read_reports(write(folder, "r.csv", b"output\n3\n"), STUDIES["one"], rejects=folder),
        "not-written",
    ),
    Refused(
        "read: rejects over the reports",
        lambda folder, _: hb.read_reports(
            write(folder, "r.csv", b"output\n3\n"), STUDIES["one"], rejects=folder / "r.csv"
        ),
        "",
        hb.SettingError,
    ),
    Refused(
        "privatize: a row without a value",
        lambda folder, _: privatize_file(
            write(folder, "v.csv", b"user,value\n1,3\n2,\n"), STUDIES["one"], None, folder / "r.csv"
        ),
        "no-value",
    ),
    Refused(
        "read: reports of another study",
        lambda folder, _: (
            privatize_file(write(folder, "v.csv", b"value\n3\n"), STUDIES["one"], None, folder / "r.csv"),
            hb.read_reports(folder / "r.csv", STUDIES["limited"]),
        ),
        "other-stamp",
    ),
    Refused("collect: on a full disk", full, "out-of-space"),
    Refused("collect: a file that grows", growing, "changed-meanwhile"),
    Refused("read: a reader that loses rows", losing, "rows-lost"),
    Refused("read: without a driver", undriven, "no-driver"),
    Refused("groups: a row of none", lambda folder, _: groups(folder, "town,output\na,3\n,4\n"), "no-group"),
    Refused(
        "groups: half a character",
        lambda folder, _: groups(folder, '{"town": "\\ud800", "output": 3}\n', ".jsonl"),
        "not-utf-8",
    ),
    Refused(
        "groups: a list",
        lambda folder, _: groups(folder, '{"town": ["a"], "output": 3}\n', ".jsonl"),
        "nested-entry",
    ),
    Refused(
        "groups: rejects over the reports",
        lambda folder, _: groups(folder, "town,output\na,3\n", rejects=folder / "r.csv"),
        "",
        hb.SettingError,
    ),
    Refused(
        "groups: a week without a time",
        lambda folder, _: groups(folder, "time,output\n,3\n2026-11-17,3\n", by="week"),
        "no-time",
    ),
    Refused(
        "groups: times of two forms",
        lambda folder, _: groups(folder, "time,output\n17/11/2026,3\n2026-11-17,3\n", by="week"),
        "not-a-time",
    ),
    Refused(
        "survey: a row of no stratum",
        lambda folder, _: groups(folder, "town,output,s\na,3,x\na,4,\n", columns=ColumnNames(stratum="s")),
        "no-stratum",
    ),
    Refused(
        "survey: a row of no cluster",
        lambda folder, _: groups(folder, "town,output,c\na,3,x\na,5,y\na,4,\n", columns=ColumnNames(cluster="c")),
        "no-cluster",
    ),
    Refused(
        "survey: weights in some files",
        lambda folder, _: hb.read_reports(
            files(folder, a_csv="output\n3\n", b_csv="weight,output\n1,3\n"), STUDIES["one"]
        ),
        "weights-in-some",
    ),
    Refused("groups: no group", lambda folder, _: groups(folder, "town,output\n,3\nrome,3\n"), "no-group"),
    Refused(
        "groups: one for each row",
        lambda folder, _: groups(folder, "town,output\n" + "".join(f"{row},3\n" for row in range(2000))),
        "too-many-groups",
    ),
    study("nothing", ""),
    study("no TOML", "version = = 1"),
    study("an infinite epsilon", LIGHT_TOML.replace("0.5", "inf")),
    study("no number for epsilon", LIGHT_TOML.replace("0.5", "nan")),
    study("a negative epsilon", LIGHT_TOML.replace("0.5", "-0.5")),
    study("another version", LIGHT_TOML.replace("version = 1", "version = 2")),
    study("an odd name", LIGHT_TOML.replace("light", '"a,b"')),
    study("a misspelt entry", LIGHT_TOML.replace("epsilon", "epsilom")),
    study("10^12 values", LIGHT_TOML.replace("9", "1_000_000_000_000")),
    study("lists in lists", "x = " + "[" * 50_000 + "]" * 50_000),
    study("tables in tables", "[" + ".".join("a" * 5000) + "]"),
]


# -- the tests -------------------------------------------------------------------------------------------------------


def in_five_parts(error: hb.HubbubError) -> bool:
    parts = (error.what, error.where, error.got, error.expected, error.remedy)
    return all(isinstance(part, str) and part.strip() for part in parts) and str(error).count("  remedy:   ") == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_source_stops_the_run_or_loses_only_its_bad_rows(bad: Bad, tmp_path: Path) -> None:
    source = bad.make(tmp_path)
    with pytest.raises(hb.HubbubError) as caught:
        hb.read_reports(source, STUDIES[bad.study])
    assert (type(caught.value), caught.value.code) == (bad.error, bad.code)
    assert in_five_parts(caught.value)
    if bad.rejected:
        check_rejects(bad, source, tmp_path / "rejects.csv")


def check_rejects(bad: Bad, source: object, listed: Path) -> None:
    """Read the source with all rejects allowed: the bad rows are listed, and the others accepted."""
    chosen = STUDIES[bad.study]
    run: tuple[hb.Reports, Summary] = finish(read(plan_reading(source, chosen, allow_rejects="100%", rejects=listed)))
    reports, summary = run
    with listed.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {int(row["line"]): row["code"] for row in rows} == bad.rejected
    assert len(rows) == len(bad.rejected)
    assert all(row["file"] and row["message"] for row in rows)
    assert summary.rejected == Counter(bad.rejected.values())
    assert summary.rows - sum(summary.rejected.values()) == bad.accepted
    assert summary.rows == (count(source) if bad.rows is None else bad.rows)
    assert sum(block.users for block in reports.blocks) <= bad.accepted


def count(source: object) -> int:
    """Count rows by other means than the readers."""
    text = str(source)
    if text.startswith("sqlite:///"):
        with sqlite3.connect(text.split("#")[0][10:]) as connection:
            found: int = connection.execute("SELECT count(*) FROM reports").fetchone()[0]
        connection.close()
        return found
    if text.startswith("duckdb:///"):
        with duckdb.connect(text.split("#")[0][10:], read_only=True) as opened:
            [answer] = opened.execute("SELECT count(*) FROM reports").fetchall()
            return int(answer[0])
    if not isinstance(source, Path):
        return len(source)  # type: ignore[arg-type]
    if source.suffix == ".parquet":
        return int(pq.read_metadata(source).num_rows)
    if source.suffix == ".arrow":
        with pa.OSFile(text) as file:
            return int(pa.ipc.open_file(file).read_all().num_rows)
    content = source.read_bytes()
    if source.suffix == ".gz":
        content = gzip.decompress(content)
    if source.suffix == ".zst":
        with pa.input_stream(text, compression="zstd") as stream_:
            content = stream_.read()
    if ".jsonl" in text:
        return sum(1 for one in content.split(b"\n") if one.strip())
    single = b"," not in content.lstrip().splitlines()[0] and b"\t" not in content.lstrip().splitlines()[0]
    return sum(1 for one in content.splitlines() if one or single) - 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("refused", OTHERS, ids=lambda refused: refused.name)
def test_what_cannot_be_done_is_refused(refused: Refused, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(hb.HubbubError) as caught:
        refused.make(tmp_path, patch)
    assert (type(caught.value), caught.value.code) == (refused.error, refused.code)
    assert in_five_parts(caught.value)
    left = [path.name for path in tmp_path.rglob(".*")]
    assert left == [], "hidden files are left behind"


TOLERATED = [
    "light,+3",
    "light,003",
    "light,-0",
    '"light","3"',
    "bits,8040",
    "bits,0x8040",
    "hash,18446744073709551615:1",
]


@pytest.mark.parametrize("row", TOLERATED)
def test_what_has_only_one_meaning_is_taken(row: str, tmp_path: Path) -> None:
    assert hb.read_reports(write(tmp_path, "r.csv", (HEAD + row).encode()), STUDIES["many"]).users == 1


def test_the_table_is_large_and_no_case_is_there_twice() -> None:
    names = [bad.name for bad in BAD] + [refused.name for refused in OTHERS]
    assert len(set(names)) == len(names)
    assert len(TEXTS) + len(JSON) >= 70
    assert len(COLUMNS) + len(DAMAGED) >= 40
    assert len(DATABASES) + len(FRAMES) >= 30
    assert len(OTHERS) >= 20
    assert len(ATTRIBUTES) >= 40


def test_every_code_is_met() -> None:
    met = {code for bad in BAD for code in (bad.code, *bad.rejected.values())} | {refused.code for refused in OTHERS}
    assert met - {""} == set(causes.CAUSES)


# -- at the terminal -------------------------------------------------------------------------------------------------

TERMINAL = [
    "csv: exponent",
    "csv: unclosed quote",
    "csv: latin-1",
    "csv: NUL",
    "csv: 3 MB",
    "csv: UTF-16, cut short",
    "csv: header only",
    "csv: several causes",
    "csv.gz: gzip, cut short",
    "csv: users above the limit",
    "path: with a NUL",
    "path: too long",
    "path: a pipe",
    "jsonl: half a character",
    "jsonl: a list of objects over several lines",
    "parquet: noise in the middle",
    "sqlite: no table",
]


def in_toml(chosen: hb.Study) -> str:
    """Return a study of whole numbers as a file."""
    lines = ["version = 1"]
    if chosen.max_reports_per_user:
        lines.append(f"max_reports_per_user = {chosen.max_reports_per_user}")
    lines += ["[domain]", 'kind = "integers"', "low = 0", "high = 9"]
    for name, mechanism in json.loads(chosen.canonical)["mechanisms"].items():
        lines += [f"[mechanisms.{name}]", f'kind = "{mechanism["kind"]}"', f"epsilon = {mechanism['epsilon']}"]
    return "\n".join(lines)


def terminal(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return hubbub(*arguments, cwd=folder)


@pytest.mark.parametrize("name", TERMINAL)
def test_the_terminal_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    bad = next(bad for bad in BAD if bad.name == name)
    (tmp_path / "files").mkdir()
    source = str(bad.make(tmp_path / "files")).replace("\0", "%00")
    (tmp_path / "study.toml").write_text(in_toml(STUDIES[bad.study]))
    done = terminal(tmp_path, "collect", "study.toml", source, "-o", "t.tally.parquet")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "remedy" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "t.tally.parquet").exists()
