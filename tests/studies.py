"""Studies and values, good and bad: what the library and the device's client must take, or refuse, alike.

Documents are Python dictionaries that `toml` writes down. `BASES` holds valid studies of every kind of domain and of
mechanism; `changed` replaces, drops or adds one entry; `UNFIT` holds what an entry may be replaced by.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import hubbub as hb
from hubbub import client
from hubbub.client import Client
from hubbub.intake.privatizing.value_positions import BadRowError, ValueReader

Document = dict[str, Any]
EntryPath = tuple[str, ...]


class Raw(str):
    """A value that is written into the file as it stands."""

    __slots__ = ()


# -- writing -------------------------------------------------------------------------------------------------------


def toml(value: object) -> str:
    """Return a value as TOML writes it; tables are written inline."""
    match value:
        case Raw():
            return str(value)
        case bool():
            return str(value).lower()
        case float():
            return "nan" if math.isnan(value) else repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(toml(each) for each in value)}]"
        case dict():
            return "{" + ", ".join(f"{_key(name)} = {toml(each)}" for name, each in value.items()) + "}"
        case datetime.date() | datetime.time():
            return value.isoformat()
        case int():
            return str(value)
    raise TypeError(type(value))


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml(name)


def study_text(document: Mapping[str, Any]) -> str:
    """Return a study file: entries of the study first, then a heading for each table of entries."""
    plain = {name: each for name, each in document.items() if name not in ("domain", "mechanisms")}
    lines = [f"{_key(name)} = {toml(each)}" for name, each in plain.items()]
    domain, mechanisms = document.get("domain"), document.get("mechanisms")
    tables: dict[str, Any] = {}
    if "domain" in document:
        tables["domain"] = domain
    if isinstance(mechanisms, dict) and mechanisms and all(isinstance(each, dict) for each in mechanisms.values()):
        tables |= {f"mechanisms.{_key(name)}": each for name, each in mechanisms.items()}
    elif "mechanisms" in document:
        tables["mechanisms"] = mechanisms
    for heading, table in tables.items():
        if isinstance(table, dict):
            continue
        lines.append(f"{heading} = {toml(table)}")
    for heading, table in tables.items():
        if isinstance(table, dict):
            lines += [f"[{heading}]", *(f"{_key(name)} = {toml(each)}" for name, each in table.items())]
    return "\n".join(lines) + "\n"


# -- valid studies -------------------------------------------------------------------------------------------------

DOMAINS: dict[str, tuple[Document, Any]] = {  # with a value of each
    "integers": ({"kind": "integers", "low": 3, "high": 9}, 5),
    "words": ({"kind": "categories", "labels": ["a", "b", 7]}, "b"),
    "two": ({"kind": "categories", "labels": [7, "b"]}, "b"),
    "bins": ({"kind": "bins", "edges": [0, 1, 3, 3.5, 7]}, 3.2),
    "even bins": ({"kind": "bins", "edges": [0.0, 0.5, 1.0, 1.5]}, 0.7),
    "grid": ({"kind": "grid", "columns": 3, "rows": 2, "cell": [0.5, 0.8], "unit": "m"}, 4),
    "square grid": ({"kind": "grid", "columns": 3, "rows": 2, "cell": 1.5}, 4),
    "kept cells": ({"kind": "grid", "columns": 4, "rows": 3, "cells": [0, 1, 6, 7, 11]}, 6),
    "map": (
        {
            "kind": "grid",
            "south": 37.7,
            "west": -122.5,
            "north": 37.8,
            "east": -122.4,
            "columns": 3,
            "rows": 2,
            "cells": [0, 1, 2, 3, 5],
        },
        (37.71, -122.42),
    ),
}
MECHANISMS: list[tuple[str, Document]] = [
    ("words", {"kind": "randomized-response", "epsilon": 0.3}),
    ("two", {"kind": "randomized-response", "p": "2/3"}),
    ("integers", {"kind": "randomized-response", "p": 0.75}),
    ("two", {"kind": "warner", "p": 0.7}),
    ("two", {"kind": "forced-response", "p_yes": "1/6", "p_no": 0.25}),
    ("two", {"kind": "unrelated-question", "p": 0.7, "prevalence": 0}),
    ("two", {"kind": "crosswise-model", "p": "2/12"}),
    ("integers", {"kind": "geometric", "epsilon": 0.4}),
    ("integers", {"kind": "truncated-geometric", "epsilon": 0.4}),
    ("integers", {"kind": "laplace", "epsilon": 0.6}),
    ("even bins", {"kind": "laplace", "epsilon": 0.9}),
    ("bins", {"kind": "laplace", "epsilon": 0.5}),
    ("words", {"kind": "exponential", "epsilon": 1.0}),
    ("grid", {"kind": "planar-geometric", "epsilon": 1.0}),
    ("kept cells", {"kind": "planar-geometric", "epsilon": 0.8, "truncated": True}),
    ("map", {"kind": "planar-geometric", "epsilon": 2.0, "truncated": False}),
    ("square grid", {"kind": "planar-laplace", "epsilon": 1.0}),
    ("words", {"kind": "rappor", "epsilon": 1.5}),
    ("integers", {"kind": "optimized-unary", "epsilon": 1.5}),
    ("words", {"kind": "longitudinal-rappor", "epsilon": 2.5, "first": 1.0}),
    ("words", {"kind": "longitudinal-unary", "epsilon": 2.5, "first": 1.0}),
    (
        "integers",
        {
            "kind": "longitudinal-unary",
            "epsilon": 2.5,
            "first": 1.0,
            "permanent_bits": "sue",
            "instantaneous_bits": "oue",
        },
    ),
    ("integers", {"kind": "longitudinal-response", "epsilon": 2.5, "first": 1.0}),
    ("map", {"kind": "longitudinal-hashing", "epsilon": 2.5, "first": 1.0, "buckets": 3}),
    ("bins", {"kind": "longitudinal-hashing", "epsilon": 3.0, "first": 1.5}),
    ("integers", {"kind": "d-bit-flip", "epsilon": 1.0, "buckets": 4, "bits": 2}),
    ("words", {"kind": "d-bit-flip", "epsilon": 1.0}),
    ("words", {"kind": "bloom-rappor", "cohorts": 3, "bits": 8, "hashes": 2, "f": "1/2", "p": 0.25, "q": 0.75}),
    ("words", {"kind": "bloom-rappor", "cohorts": 4, "bits": 8, "hashes": 2, "epsilon": 3.0, "first": 1.0}),
    ("integers", {"kind": "subset-selection", "epsilon": 1.0, "size": 2}),
    ("integers", {"kind": "subset-selection", "epsilon": 1.0}),
    ("integers", {"kind": "square-wave", "epsilon": 1.0}),
    ("bins", {"kind": "square-wave", "epsilon": 0.5, "reach": 2}),
    ("even bins", {"kind": "piecewise", "epsilon": 1.0}),
    ("even bins", {"kind": "duchi", "epsilon": 1.0}),
    ("integers", {"kind": "staircase", "epsilon": 1.0}),
    ("even bins", {"kind": "staircase", "epsilon": 0.5, "gamma": "1/2"}),
    ("words", {"kind": "unary", "p": 0.5, "q": "1/6"}),
    ("integers", {"kind": "hadamard-response", "epsilon": 1.0}),
    ("map", {"kind": "hadamard-response", "epsilon": 0.5, "blocks": 8}),
    ("words", {"kind": "projective-response", "epsilon": 1.0}),
    ("map", {"kind": "projective-response", "epsilon": 1.5, "prime": 2}),
    ("integers", {"kind": "count-mean-sketch", "epsilon": 1.0, "hashes": 5, "width": 7}),
    ("words", {"kind": "count-mean-sketch", "epsilon": 2.0, "hashes": 3, "width": 4}),
    ("bins", {"kind": "hadamard-count-mean-sketch", "epsilon": 1.0, "hashes": 5, "width": 8}),
    ("map", {"kind": "hadamard-count-mean-sketch", "epsilon": 1.5}),
    ("bins", {"kind": "local-hashing", "epsilon": 1.0, "buckets": 4}),
    ("map", {"kind": "local-hashing", "epsilon": 1.0}),
    ("words", {"kind": "cloaking", "regions": ["left", "right", "left"]}),
    ("integers", {"kind": "cloaking", "regions": [1, 1, 2, 2, "x", "x", "x"]}),
    (
        "words",
        {"kind": "matrix", "outputs": ["x", 2.5], "probabilities": [[0.3, 0.7], [0.5, 0.5], [1, 0]]},
    ),
]

PEOPLE: Document = {
    "kind": "product",
    "attributes": {
        "age": {"kind": "bins", "edges": [0, 20, 40, 60]},
        "sex": {"kind": "categories", "labels": ["f", "m", 7]},
        "place": {"kind": "grid", "columns": 3, "rows": 2, "cells": [0, 1, 5]},
    },
    "impossible": [{"age": [0, 1], "sex": "m"}],
}
PERSON = (34.5, "f", 5)
SHARED_PARTS: Document = {
    "age": {"kind": "laplace", "share": 0.5},
    "sex": {"kind": "krr", "share": "1/4"},
    "place": {"kind": "planar-geometric", "share": 0.25},
}
PLAIN_PARTS: Document = {
    "age": {"kind": "oue", "epsilon": 1.0},
    "sex": {"kind": "randomized-response", "p": 0.5},
    "place": {"kind": "olh", "epsilon": 0.5},
}
WAYS: list[Document] = [
    {"kind": "split", "epsilon": 2.0, "parts": SHARED_PARTS},
    {"kind": "sample-one", "probabilities": {"age": "1/3", "sex": 0.5, "place": "1/6"}, "parts": PLAIN_PARTS},
    {"kind": "sample-one-with-fakes", "fakes": {"sex": [0.5, 0.25, 0.25]}, "parts": PLAIN_PARTS},
]


def document(domain: Document, *mechanisms: Document, **more: Any) -> Document:
    """Return a study of unnamed mechanisms: m, and further ones."""
    named = {"m" + "x" * place: deepcopy(each) for place, each in enumerate(mechanisms)}
    return {"version": 1, **more, "domain": deepcopy(domain), "mechanisms": named}


RESPONSE = {"kind": "randomized-response", "epsilon": 1.0}
LIGHT_TOML = """version = 1
[domain]
kind = "integers"
low = 0
high = 9
[mechanisms.light]
kind = "truncated-geometric"
epsilon = 0.5
"""

BASES: dict[str, tuple[Document, Any]] = {
    kind: (document(domain, RESPONSE), value) for kind, (domain, value) in DOMAINS.items()
} | {
    f"{mechanism['kind']} ({len(mechanism)}), {kind}": (document(DOMAINS[kind][0], mechanism), DOMAINS[kind][1])
    for kind, mechanism in MECHANISMS
}
BASES |= {"people": (document(PEOPLE, WAYS[0]), PERSON)} | {
    way["kind"]: (document(PEOPLE, way), PERSON) for way in WAYS
}
FULL = document(
    DOMAINS["integers"][0],
    RESPONSE,
    {"kind": "geometric", "epsilon": 2},
    name="all entries",
    max_reports_per_user=5,
    max_epsilon_per_user=10.0,
    max_epsilon_per_unit=2,
)
BASES["all entries"] = (FULL, 5)

UNFIT: list[Any] = [
    True,
    False,
    0,
    1,
    -1,
    4,
    2.0,
    2.5,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    1e-13,
    5e-324,
    1.7e308,
    600,
    10**8 + 5,
    10**12,
    2**53,
    2**62,
    2**63,
    10**30,
    10**400,
    Raw("0x" + "f" * 5000),
    "",
    "x",
    "1",
    "epsilon",
    [],
    [1],
    [1, 2, 3],
    [0, 0, 1],
    [3, 2, 1],
    [1.0, 2.0, 5],
    ["a", "b", "c"],
    ["a", "", "c"],
    ["a", "a", "c"],
    ["1", 1, "c"],
    [True, False, True],
    [0.0, math.inf, 1.0],
    [0.0, math.nan, 1.0],
    [-1.7e308, 1.7e308, 1.75e308],
    [2**63, 1, 2],
    [Raw("0x" + "f" * 5000), 1, 2],
    ["a\0", "a", "b"],
    [[1, 2], [3, 4]],
    [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]],
    [[0.5, 0.5], [1.0], [0.25, 0.75]],
    [[True, False], [False, True], [True, False]],
    [[0.5, 0.5], [1.0, 0.1], [0.25, 0.75]],
    [[1.5, -0.5], [1.0, 0.0], [0.25, 0.75]],
    [[1.7e308, 1.7e308], [1.0, 0.0], [0.25, 0.75]],
    [[0.5, 0.5 + 2e-9], [1.0, 0.0], [0.25, 0.75]],
    [[0.5, 0.5 + 5e-10], [1.0, 0.0], [0.25, 0.75]],
    [["1", "0"], ["0", "1"], ["1", "0"]],
    [{"a": 1}],
    {},
    {"a": 1, "b": 2, "c": 3},
    {"a": "x", "b": "x", "7": "x"},
    {"3": 1, "4": 1, "5": 1, "6": 1, "7": 2, "8": 2, "9": 2},
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30),
    datetime.time(12, 30),
]


# -- changes -------------------------------------------------------------------------------------------------------


def entries(study: Mapping[str, Any], prefix: EntryPath = ()) -> Iterator[EntryPath]:
    """Yield the path of every entry of the study, of its domain and of its mechanisms, tables included."""
    for name, each in study.items():
        yield (*prefix, name)
        if isinstance(each, dict) and (not prefix or prefix == ("mechanisms",)):
            yield from entries(each, (*prefix, name))


def changed(study: Document, path: EntryPath, **replacement: Any) -> Document:
    """Return a copy in which the entry at `path` is replaced by `to`, or left out where no `to` is given."""
    copy = deepcopy(study)
    table = copy
    for name in path[:-1]:
        table = table[name]
    if "to" in replacement:
        table[path[-1]] = replacement["to"]
    else:
        del table[path[-1]]
    return copy


class Case(NamedTuple):
    """A study file and a value."""

    name: str
    study: Document | str | bytes
    value: Any
    mechanism: str = "m"

    @property
    def content(self) -> bytes:
        if isinstance(self.study, bytes):
            return self.study
        return (self.study if isinstance(self.study, str) else study_text(self.study)).encode()


# -- studies by hand -------------------------------------------------------------------------------------------------


def on(domain: Document | str, *mechanisms: Document, value: Any, name: str, mechanism: str = "m") -> Case:
    """Return a case of mechanisms (randomized response where none is given) on a domain."""
    fields = DOMAINS[domain][0] if isinstance(domain, str) else domain
    return Case(name, document(fields, *(mechanisms or (RESPONSE,))), value, mechanism)


def named(name: str) -> Document:
    """Return a study of one mechanism."""
    return {"version": 1, "domain": DOMAINS["words"][0], "mechanisms": {name: RESPONSE}}


def bins(*edges: float) -> Document:
    return {"kind": "bins", "edges": list(edges)}


def grid(**more: Any) -> Document:
    return {"kind": "grid", "columns": 3, "rows": 2, **more}


def planar(epsilon: float, **more: Any) -> Document:
    return {"kind": "planar-geometric", "epsilon": epsilon, **more}


def laplace(epsilon: float) -> Document:
    return {"kind": "laplace", "epsilon": epsilon}


def cloaking(regions: Any) -> Document:
    return {"kind": "cloaking", "regions": regions}


def matrix(outputs: Any, probabilities: Any, **more: Any) -> Document:
    return {"kind": "matrix", "outputs": outputs, "probabilities": probabilities, **more}


def product(**more: Any) -> Document:
    return {**deepcopy(PEOPLE), **more}


def split(total: float | None = None, **parts: Document) -> Document:
    """Return all attributes by themselves, some of them as given."""
    return {"kind": "split", **({} if total is None else {"epsilon": total}), "parts": {**PLAIN_PARTS, **parts}}


def shared(**parts: Document) -> Document:
    return {"kind": "split", "epsilon": 2.0, "parts": {**SHARED_PARTS, **parts}}


def way(kind: str, **more: Any) -> Document:
    return {"kind": kind, "parts": PLAIN_PARTS, **more}


HALVED = [[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]]  # the last value differs from the others by a factor of 2
METRIC_PARTS = {name: matrix(["x", "y"], HALVED, metric=True) for name in ("age", "place")}
# A factor of 2 for 20 years of 40; for a diagonal of the square root of 2, where the farthest are the root of 5 apart.
METRIC_TOTAL = math.log(2) * (1 + 2 + math.sqrt(2.5))
TWO = {"kind": "categories", "labels": ["a", "b"]}
ONE_EACH = {"age": {"kind": "krr"}, "sex": {"kind": "krr"}, "place": {"kind": "krr"}}
LOG_TWO = math.log(2)  # the epsilon of a randomized response of three values with p = 1/2
HOLES = {"kind": "grid", "columns": 9, "rows": 9, "cell": 0.5, "cells": [0, 40, 80]}
BOX, PLACE = BASES["map"]
PLAIN = study_text(BASES["integers"][0])
DOTTED = "domain.kind = 'integers'\ndomain.low = 3\ndomain.high = 9\nmechanisms.m.kind = 'rappor'\n"
INLINE = "domain = {kind = 'integers', low = 3, high = 9}\nmechanisms = {m = {kind = 'rappor', epsilon = 1.0}}\n"

TAKEN = [
    on(bins(0, 1, 1e100), value=0.5, name="an edge at 1e100"),
    on({"kind": "integers", "low": 3.0, "high": 9.0}, value=5, name="whole numbers as floats"),
    on(grid(cells=[0.0, 4.0]), value=4, name="cells as floats"),
    on(grid(cells=[4, 0, 4]), value=4, name="a cell twice"),
    on(grid(cell=1e-100), value=4, name="a cell of 1e-100"),
    on(HOLES, planar(0.03), value=40, name="noise that is just narrow enough for holes"),
    on(HOLES, planar(0.02, truncated=False), value=40, name="wide noise that is not remapped"),
    on(TWO, cloaking({"a": 1, "b": "x"}), value="a", name="regions by label"),
    on(TWO, cloaking([2**63, 1]), value="a", name="regions beyond 2^63"),
    on({"kind": "categories", "labels": ["a\0", "a", "b"]}, value="a\0", name="labels that end in NUL"),
    on({"kind": "categories", "labels": [2**63, 2**63 + 1, 1]}, value=2**63 + 1, name="labels beyond 2^63"),
    on(bins(0.0, 4e4, 8e4), laplace(0.5), value=1.0, name="20,000 nats for one step"),
    on(product(order=["sex", "place", "age"]), WAYS[0], value=("f", 5, 34.5), name="another order of attributes"),
    on(PEOPLE, WAYS[0], value={"sex": "f", "place": 5, "age": 34.5}, name="a combination by names"),
    on(PEOPLE, WAYS[0], value=("34.5", "7", "5"), name="a combination of texts"),
    on(product(impossible=[]), WAYS[0], value=(5, "m", 5), name="no impossible combinations"),
    on(product(impossible=[{"sex": [7.0, "m"]}]), WAYS[0], value=PERSON, name="an impossible value"),
    on(PEOPLE, split(1.5 + LOG_TWO), value=PERSON, name="epsilons that make the total"),
    on(PEOPLE, {**WAYS[0], "parts": ONE_EACH}, value=PERSON, name="a total divided equally"),
    on(PEOPLE, way("sample-one", epsilon=2.0, parts=ONE_EACH), value=PERSON, name="a total for each attribute"),
    on(PEOPLE, way("sample-one-with-fakes", epsilon=1.0), value=PERSON, name="the total is the largest epsilon"),
    on(PEOPLE, {"kind": "rappor", "epsilon": 1.0}, value=PERSON, name="one mechanism for the whole combination"),
    on(TWO, RESPONSE, matrix(["x"], [[1], [1]], metric=True, origin="a ü"), value="a", name="a matrix with an origin"),
    on(PEOPLE, {"kind": "olh", "epsilon": 1.0}, value=PERSON, name="a hash of the whole combination"),
    Case("a name of 64 letters", named("a" * 64), "a", "a" * 64),
    Case("a BOM", b"\xef\xbb\xbf" + PLAIN.encode(), 5),
    Case("Windows line ends", PLAIN.replace("\n", "\r\n"), 5),
    Case("a number of 601 digits", f"max_reports_per_user = {'9' * 601}\n" + PLAIN, 5),
    Case("dotted keys", f"version = 1\n{DOTTED}mechanisms.m.epsilon = 1.0\n", 5),
    Case("inline tables", f"version = 1\n{INLINE}", 5),
    Case("many dots in a text", f"name = {toml('a.' * 50)}\n" + PLAIN, 5),
    Case("version 1.0", PLAIN.replace("version = 1", "version = 1.0"), 5),
    Case("hexadecimal digits", PLAIN.replace("low = 3", "low = 0x3").replace("high = 9", "high = 1_0"), 5),
    Case("exponents", PLAIN.replace("low = 3", "low = 3e0").replace("high = 9", "high = +0.9e1"), 5),
]

REFUSED = [
    on("integers", RESPONSE, {"kind": "rappor"}, value=5, name="another mechanism has no epsilon"),
    on("words", RESPONSE, {"kind": "geometric", "epsilon": 1.0}, value="a", name="another mechanism needs integers"),
    on(TWO, RESPONSE, matrix(["x", "y"], [[0.5, 0.5], [0.5, 0.4]]), value="a", name="another is no distribution"),
    on(TWO, RESPONSE, matrix({"x": 1, "y": 1}, [[0, 1], [1, 0]]), value="a", name="outputs in a table"),
    on(TWO, RESPONSE, matrix([1, 1.0], [[0, 1], [1, 0]]), value="a", name="outputs 1 and 1.0"),
    on(TWO, RESPONSE, matrix([math.nan, 1.0], [[0, 1], [1, 0]]), value="a", name="an output that is no number"),
    on(TWO, RESPONSE, matrix(["x"], [[1], [1]], metric=1), value="a", name="metric is no boolean"),
    on(TWO, RESPONSE, matrix(["x"], [[1], [1]], origin=1), value="a", name="an origin that is no text"),
    on(TWO, RESPONSE, matrix(["x"], [[1], [1]], origin="a\nb"), value="a", name="an origin of two lines"),
    on(TWO, RESPONSE, matrix(["x"], [[1], [1]], origin="a" * 1001), value="a", name="a very long origin"),
    on(bins(0, 0, 1), value=0.5, name="edges that repeat"),
    on(bins(0, 2, 1), value=0.5, name="edges that fall"),
    on(bins(0, 1), value=0.5, name="one bin"),
    on(
        bins(*(1 + place * 2.0**-52 for place in (1, 2, 3))),
        laplace(1.0),
        value=1 + 2.0**-51,
        name="no step between bins",
    ),
    on(bins(0, 1, math.inf), value=0.5, name="an infinite edge"),
    on(bins(0, 1, 1e101), value=0.5, name="an edge at 1e101"),
    on(bins(0.0, 1e-20, 2e-20), laplace(1e-11), value=1e-20, name="steps of 1e-31"),
    on(bins(0.0, 4e4, 8e4), laplace(0.5 * (1 + 2.0**-49)), value=1.0, name="more than 20,000 nats for one step"),
    on("grid", planar(1.0, truncated=0), value=1, name="truncated = 0"),
    on(HOLES, planar(0.02), value=40, name="noise too wide for holes"),
    on(
        {"kind": "grid", "columns": 1, "rows": 3, "cell": [1e5, 1.0]},
        {"kind": "planar-laplace", "epsilon": 500},
        value=1,
        name="one column of 50 million nats",
    ),
    on(grid(cells=[4, 0, 6]), value=4, name="a cell beyond the grid"),
    on(grid(cell=1e-101), value=4, name="a cell of 1e-101"),
    on(grid(cell=[1.0, 1.0, 1.0]), value=4, name="three sides"),
    on(grid(north=2.0), value=1, name="a quarter of a box"),
    Case("a box upside down", changed(BOX, ("domain", "south"), to=38.0), PLACE),
    Case("a box beyond the pole", changed(BOX, ("domain", "north"), to=90.5), PLACE),
    Case("a box of no width", changed(BOX, ("domain", "east"), to=-122.5), (37.75, -122.5)),
    Case("a box and the side of a cell", changed(BOX, ("domain", "cell"), to=0.5), PLACE),
    on("words", cloaking({"a": 1, "b": 2, "7": 1}), value="a", name="a region for a text instead of a number"),
    on(TWO, cloaking({"a": 1, "b": 2, "c": 3}), value="a", name="a region too many"),
    on(TWO, cloaking(["1", 1]), value="a", name="regions that look alike"),
    on({"kind": "categories", "labels": {"a": 1, "b": 2}}, value="a", name="labels in a table"),
    *(
        Case(f"the name {name[:9]!r}", named(name), "a", name)
        for name in ("", "a b", "a" * 65, "-a", "_", "[" * 5000, "a\n", "m.x", "ä", "a\0")
    ),
    on(PEOPLE, WAYS[0], value=(5, "m", 5), name="an impossible combination"),
    on(PEOPLE, WAYS[0], value=(34.5, "f"), name="a combination that is too short"),
    on(PEOPLE, WAYS[0], value={"age": 34.5, "sex": "f"}, name="a combination without an attribute"),
    on(PEOPLE, WAYS[0], value=(34.5, "x", 5), name="a combination with another value"),
    on("words", WAYS[0], value="a", name="several attributes of one domain"),
    on(PEOPLE, {"kind": "truncated-geometric", "epsilon": 1.0}, value=PERSON, name="noise on combinations"),
    on(product(attributes={"age": TWO}), WAYS[0], value=("a",), name="a product of one attribute"),
    on(product(attributes={**PEOPLE["attributes"], "output": TWO}), WAYS[0], value=PERSON, name="a reserved name"),
    on(product(attributes={**PEOPLE["attributes"], "a b": TWO}), WAYS[0], value=PERSON, name="a blank in a name"),
    on(product(attributes={**PEOPLE["attributes"], "sex": PEOPLE}), WAYS[0], value=PERSON, name="a nested product"),
    on(product(impossible=[{"sex": ["f", "m", 7]}]), WAYS[0], value=PERSON, name="nothing is possible"),
    on(product(impossible=[{"sex": "x"}]), WAYS[0], value=PERSON, name="a rule about another value"),
    on(product(impossible=[{"age": 34.5}]), WAYS[0], value=PERSON, name="a rule about a raw number"),
    on(product(impossible=[{"sex": []}]), WAYS[0], value=PERSON, name="a rule about no value"),
    on(product(impossible=[{"age": [[0, 1]]}]), WAYS[0], value=PERSON, name="a rule about lists of lists"),
    on(product(impossible=[{"town": 1}]), WAYS[0], value=PERSON, name="a rule about another attribute"),
    on(product(order=["age", "sex", "sex"]), WAYS[0], value=PERSON, name="an order with an attribute twice"),
    on(PEOPLE, split(2.0), value=PERSON, name="epsilons that do not make the total"),
    on(PEOPLE, split(METRIC_TOTAL * 1.001, **METRIC_PARTS), value=PERSON, name="matrices that do not make the total"),
    on(PEOPLE, split(1.0, sex=matrix([1], [[1], [1], [1]], origin=2)), value=PERSON, name="a part of no origin"),
    on(PEOPLE, split(age=SHARED_PARTS["age"]), value=PERSON, name="a share of nothing"),
    on(PEOPLE, shared(age={"kind": "laplace"}), value=PERSON, name="a share is missing"),
    on(PEOPLE, shared(age={"kind": "laplace", "share": 0.4}), value=PERSON, name="shares of less than 1"),
    on(PEOPLE, shared(age={"kind": "laplace", "share": -0.5}), value=PERSON, name="a negative share"),
    on(PEOPLE, shared(age={"kind": "laplace", "share": 0.5, "epsilon": 1.0}), value=PERSON, name="two budgets"),
    on(PEOPLE, shared(age={"kind": "laplace", "epsilon": 1.0}), value=PERSON, name="a share and an epsilon"),
    on(PEOPLE, shared(town={"kind": "krr", "share": 0.1}), value=PERSON, name="a part of another attribute"),
    on(PEOPLE, split(sex=WAYS[0]), value=PERSON, name="a nested way to report"),
    on(PEOPLE, split(sex={"kind": "longitudinal-rappor", "epsilon": 2, "first": 1}), value=PERSON, name="memory"),
    on(PEOPLE, way("split", parts={"age": PLAIN_PARTS["age"]}), value=PERSON, name="parts that are missing"),
    on(PEOPLE, way("split", probabilities={"age": 1}), value=PERSON, name="probabilities of a split"),
    on(PEOPLE, way("sample-one", epsilon=2.0), value=PERSON, name="a total that no attribute has"),
    on(PEOPLE, {**WAYS[0], "kind": "sample-one"}, value=PERSON, name="shares where nothing is divided"),
    on(PEOPLE, way("sample-one", fakes={}), value=PERSON, name="fakes without fakes"),
    on(PEOPLE, way("sample-one", probabilities={"age": 0.5, "sex": 0.5}), value=PERSON, name="two of three"),
    on(
        PEOPLE,
        way("sample-one", probabilities={"age": 0.5, "sex": 0.5, "place": 0}),
        value=PERSON,
        name="an attribute that is never reported",
    ),
    on(PEOPLE, way("sample-one-with-fakes", fakes={"sex": [0.5, 0.5]}), value=PERSON, name="two fakes of three"),
    on(PEOPLE, way("sample-one-with-fakes", fakes={"town": [0.5, 0.5]}), value=PERSON, name="fakes of another"),
    Case("old Macintosh line ends", PLAIN.replace("\n", "\r"), 5),
    Case("line separators of Unicode", PLAIN.replace("\n", "\u2028"), 5),
    Case("UTF-16", PLAIN.encode("utf-16"), 5),
    Case("Latin 1", ("# \xe9t\xe9\n" + PLAIN).encode("latin-1"), 5),
    Case("half a character", PLAIN.encode() + b"# \xe2\x82", 5),
    Case("all bytes", bytes(range(256)) * 4, 5),
    Case("a NUL", PLAIN + "\0", 5),
    Case("a NUL in a comment", PLAIN + "# \0\n", 5),
    Case("a NUL in a name", "name = 'a\0b'\n" + PLAIN, 5),
    Case("nothing", "", 5),
    Case("a comment", "# a study\n", 5),
    Case("JSON", '{"version": 1}', 5),
    Case("a number of 5,000 digits", f"max_reports_per_user = {'9' * 5000}\n" + PLAIN, 5),
    Case("a number of 700 digits", f"max_reports_per_user = {'9' * 700}\n" + PLAIN, 5),
    Case("a lowest value of 5,000 digits", PLAIN.replace("low = 3", f"low = {'9' * 5000}"), 5),
    Case("5,000 hexadecimal digits", f"max_reports_per_user = 0x{'f' * 5000}\n" + PLAIN, 5),
    Case("5,000 hexadecimal digits in a list", f"name = [[{{a = 0x{'f' * 5000}}}]]\n" + PLAIN, 5),
    Case("lists in lists", "x = " + "[" * 5000 + "]" * 5000 + "\n" + PLAIN, 5),
    Case("open lists", "x = " + "[" * 5000, 5),
    Case("tables in tables", "x = " + "{a = " * 5000 + "1" + "}" * 5000 + "\n" + PLAIN, 5),
    Case("a long dotted key", ".".join(["a"] * 100_000) + " = 1\n" + PLAIN, 5),
    Case("a long dotted key in quotes", ".".join(['"a b"'] * 100_000) + " = 1\n" + PLAIN, 5),
    Case("a long dotted key in single quotes", " . ".join(["'a.b'"] * 100_000) + " = 1\n" + PLAIN, 5),
    Case("a long heading", PLAIN + "[" + ".".join(["a"] * 100_000) + "]\n", 5),
    Case("an array of tables for a domain", PLAIN.replace("[domain]", "[[domain]]"), 5),
    Case("an array of tables for mechanisms", PLAIN.replace("[mechanisms.m]", "[[mechanisms]]"), 5),
    Case("an array of tables for a mechanism", PLAIN.replace("[mechanisms.m]", "[[mechanisms.m]]"), 5),
    Case("an entry twice", PLAIN + "epsilon = 2.0\n", 5),
    Case("a table twice", PLAIN + "[mechanisms.m]\n", 5),
    Case("a date", PLAIN.replace("low = 3", "low = 1979-05-27"), 5),
    Case("a date and time", "name = 1979-05-27T07:32:00Z\n" + PLAIN, 5),
    Case("no such date", "name = 1979-02-31\n" + PLAIN, 5),
    Case("a time", PLAIN.replace("epsilon = 1.0", "epsilon = 07:32:00"), 5),
    Case("blanks before an unknown entry", PLAIN + " " * 50_000 + "x = 1\n" + " " * 50_000 + "\n", 5),
    Case("blanks in a comment", PLAIN + "x = 1\n# [" + " " * 50_000 + "\n", 5),
    Case("a bracket and blanks", PLAIN + "x = [" + " " * 50_000 + "]\n", 5),
    Case("many dots in a list of texts", PLAIN.replace('"integers"', f"[{toml('a.' * 50)}]"), 5),
    Case("version true", PLAIN.replace("version = 1", "version = true"), 5),
    Case("version 2", PLAIN.replace("version = 1", "version = 2"), 5),
]

# -- values ----------------------------------------------------------------------------------------------------------

PLAIN_VALUES: list[Any] = [
    None, True, False, 0, 1, 5, 7, 11, -1, 10**30, 2**63, 10**400, 5.0, 5.5, 7.0, 0.0, -0.0, 3.5, 7.1, 1e300, 1e-300,
    math.inf, -math.inf, math.nan, Fraction(5), Fraction(11, 2), Decimal(5), Decimal("5.5"), 5 + 0j, b"5", b"a",
    bytearray(b"5"), [], [5], (5,), {}, {"a": 1}, {5}, object(), int, datetime.date(2024, 1, 1),
]  # fmt: skip
TEXTS = [
    "", " ", "5", " 5", "5 ", "+5", "-5", "05", "5.0", "5.5", "5e0", "0x5", "5_0", "1_0", "٥", "five", "nan", "inf",
    "-inf", "1e400", "1.", ".5", "+.5", "1e", "--1", "9" * 19, "9" * 25, "9" * 5000, "9" * 50_000 + "x", "a", "A", "a ",
    "a\0", "b", "7", "7.0", "true", "None",
]  # fmt: skip
PLACES: list[Any] = [
    (37.71, -122.42), [37.71, -122.42], ("37.71", "-122.42"), ("37.71 ", "-122.42"), ("3_7.71", "-122.42"),
    ("37.71", "-122,42"), (37.8, -122.4), (37.7, -122.5), (-122.42, 37.71), (37.71, -122.42, 0.0), (math.nan, -122.42),
    (37.71, math.inf), (None, None), (True, False), (37.79, -122.47), ("", ""), (Fraction(3771, 100), -122.42),
    (Decimal("37.71"), -122.42), (10**400, 5), {"lat": 37.71, "lon": -122.42},
]  # fmt: skip
SCALARS_OF_NUMPY: list[Any] = [
    np.int64(5), np.int8(5), np.uint64(5), np.float64(5.0), np.float32(5.0), np.float64(5.5), np.float64("nan"),
    np.bool_(True), np.str_("a"), np.str_("5"), np.array([5]), np.datetime64("2024-01-01"),
]  # fmt: skip
VALUES: list[Any] = [*PLAIN_VALUES, *TEXTS, *PLACES, *SCALARS_OF_NUMPY]


# -- what the library makes of a value -------------------------------------------------------------------------------


def library_output(path: Path, value: Any, mechanism: str) -> str:
    """Return an output of the library, written down; only a HubbubError may come out.

    Texts are read as rows of files are: that is how the library takes texts.
    """
    study = hb.read_study(path)
    chosen, domain = study.mechanisms[mechanism], study.domain
    if isinstance(domain, hb.Product):
        if isinstance(value, Mapping) and set(value) == set(domain.attributes):
            value = [value[name] for name in domain.attributes]
        if isinstance(value, tuple | list) and len(value) == len(domain.attributes):
            value = tuple(_label(own, part) for own, part in zip(domain.attributes.values(), value, strict=True))
        output = chosen.privatize([value])
    else:
        output = chosen.privatize([_label(domain, value)])
    return str(chosen.output_space.write(output.tolist()[0] if output.dtype.names is None else output[0]))


def _label(domain: hb.Domain, value: Any) -> Any:
    """Return the label of a value as devices and files have it."""
    on_map = isinstance(domain, hb.Grid) and domain.box is not None
    if on_map and isinstance(value, tuple | list) and len(value) == 2:
        assert isinstance(domain, hb.Grid)
        columns = {"lat": value[0], "lon": value[1]}
        value = domain.labels[_read(domain, columns)] if _texts(value) else domain.locate(*value)
    elif isinstance(value, str):
        value = domain.labels[_read(domain, {"value": value})]
    elif isinstance(domain, hb.Bins):
        value = domain.locate([value])[0]
    return value


def _texts(value: Any) -> bool:
    return any(isinstance(part, str) for part in value)


def _read(domain: hb.Domain, row: Mapping[str, Any]) -> int:
    columns = {name: pa.chunked_array([pa.array([entry])]) for name, entry in row.items()}
    try:
        return int(ValueReader(domain).read(columns)[0])
    except BadRowError as bad:
        raise bad.fault.error from None


def client_output(path: Path, value: Any, mechanism: str, tables: Path | None = None) -> str:
    """Return an output of the device's client; only a ClientError may come out."""
    return Client(path, tables).privatize(value, mechanism)


# -- drawn at random -------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    sorted({path[-1] for study, _ in BASES.values() for path in entries(study)} | {"extra", "", "kind ", "Kind", "box"})
) | st.text(max_size=5)
NUMBERS = (
    st.integers(-20, 1000)
    | st.integers()
    | st.floats()
    | st.sampled_from([2.0**k for k in range(-1070, 1024, 61)])
    | st.sampled_from([10**k for k in range(1, 20)])
)
SCALARS = (
    NUMBERS | st.booleans() | st.text(max_size=4) | st.sampled_from(sorted(client.MECHANISMS)) | st.dates() | st.times()
)
PARTS = st.recursive(
    SCALARS | st.sampled_from(UNFIT),
    lambda parts: st.lists(parts, max_size=5) | st.dictionaries(st.text(max_size=3), parts, max_size=3),
    max_leaves=8,
)
LARGE = 200_000  # values of a domain, from which on draws of rows of bits take long


@st.composite
def mutated(draw: st.DrawFn, most: int = 2) -> Case:
    """Draw a valid study in which up to `most` entries are dropped, added, replaced or exchanged."""
    study, value = draw(st.sampled_from(list(BASES.values())))
    for _ in range(draw(st.integers(1, most))):
        paths = list(entries(study))
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        change = draw(st.sampled_from(["alter", "alter", "alter", "drop", "add", "replace", "borrow"]))
        if change == "drop":
            study = changed(study, path)
        elif change == "add":
            study = changed(study, (*path[:-1], draw(NAMES)), to=draw(PARTS))
        elif change == "replace":
            study = changed(study, path, to=draw(PARTS))
        elif change == "alter":
            numbers = [each for each in paths if isinstance(lookup(study, each), int | float | list)]
            path = draw(st.sampled_from(numbers or paths))
            study = changed(study, path, to=draw(altered(lookup(study, path))))
        else:
            other, _ = draw(st.sampled_from(list(BASES.values())))
            study = changed(study, path, to=lookup(other, draw(st.sampled_from(list(entries(other))))))
    assume(not is_large(study))
    mechanisms = study.get("mechanisms")
    if not isinstance(mechanisms, dict) or "m" not in mechanisms:
        study = {**study, "mechanisms": {"m": RESPONSE}} if draw(st.booleans()) else {**study, "mechanisms": 1}
    return Case("mutated", study, draw(st.just(value) | st.sampled_from([5, "a", 0.5, (37.71, -122.42)])))


def is_large(study: Document) -> bool:
    """Whether a study is fine, but has so many values that drawing takes long; too many are refused at once."""
    domain = study.get("domain")
    if not isinstance(domain, dict):
        return False
    low, high, columns, rows = (client.as_whole(domain.get(name)) for name in ("low", "high", "columns", "rows"))
    sizes = [0 if low is None or high is None else high - low, 0 if columns is None or rows is None else columns * rows]
    return any(LARGE < size <= client.MAX_VALUES for size in sizes)


def lookup(study: Document, path: EntryPath) -> Any:
    """Return the entry at a path."""
    part: Any = study
    for name in path:
        part = part[name]
    return part


def altered(part: Any, parts: st.SearchStrategy[Any] = PARTS) -> st.SearchStrategy[Any]:
    """Return a strategy for what is nearly the same: a list with one element changed, a number next to it."""
    if isinstance(part, list) and part:

        def change(place: int, to: Any, how: int) -> list[Any]:
            return [part[:place] + part[place + 1 :], [*part, to], [*part[:place], to, *part[place + 1 :]]][how]

        return st.builds(change, st.integers(0, len(part) - 1), parts, st.integers(0, 2))
    if isinstance(part, int | float) and abs(part) < 1e300:
        near = [part + 1, part - 1, -part, 2 * part, float(part), part * 1e6, part * 1e-6, str(part)]
        return st.sampled_from([*near, math.nextafter(part, math.inf), math.nextafter(part, 0.0)])
    if isinstance(part, str):
        return st.sampled_from([part + " ", part.upper(), part[:-1], [part]])
    return parts
