"""The library and the device's client take the same studies and the same values, and refuse the same ones.

The one difference that is allowed: mechanisms whose tables the client cannot compute. Without a file of tables it
refuses to draw for them, and says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub import client
from hubbub.client import Client, ClientError
from hubbub.intake.privatizing.device_tables import export_tables
from hubbub.intake.study_entries import DOMAINS as DOMAIN_KINDS
from hubbub.intake.study_entries import MECHANISMS as MECHANISM_KINDS
from strategies import examples
from studies import (
    BASES,
    DOMAINS,
    FULL,
    REFUSED,
    RESPONSE,
    TAKEN,
    UNFIT,
    VALUES,
    Case,
    Document,
    changed,
    client_output,
    document,
    entries,
    library_output,
    mutated,
    study_text,
    toml,
)

NEEDS_TABLES = "needs a file of tables"
TABLED = [
    name
    for name in BASES
    if name.startswith(("exponential", "matrix", "planar-laplace")) or name == "laplace (2), bins"
]


def verdicts(case: Case, path: Path) -> tuple[str | hb.HubbubError, str | ClientError]:
    """Return what library and client make of a study and a value; anything but their own errors comes out."""
    library: str | hb.HubbubError
    device: str | ClientError
    try:
        library = library_output(path, case.value, case.mechanism)
    except hb.HubbubError as error:
        library = error
    try:
        device = client_output(path, case.value, case.mechanism)
    except ClientError as error:
        device = error
    return library, device


def in_library_form(path: Path, mechanism: str, output: str) -> str:
    """Return an output in the library's own spelling; what is no output of the mechanism is refused."""
    space = hb.read_study(path).mechanisms[mechanism].output_space
    read = space.decode(space.encode([space.parse(output)]))
    return str(space.write(read.tolist()[0] if read.dtype.names is None else read[0]))


def check(case: Case, folder: Path) -> str:
    """Make sure that both take the case, or that both refuse it; return which."""
    path = folder / f"{len(list(folder.iterdir()))}.toml"  # writing over a file is slow
    path.write_bytes(case.content)
    library, device = verdicts(case, path)
    told = f"{case.name}\n{case.content.decode(errors='replace')[:2000]}\n{case.value!r}\n{library}\n{device}"
    if isinstance(library, str) and isinstance(device, ClientError):
        assert NEEDS_TABLES in str(device), told
        return "needs tables"
    assert isinstance(library, str) == isinstance(device, str), told
    if isinstance(library, str) and isinstance(device, str):
        ours, theirs = (in_library_form(path, case.mechanism, output) for output in (device, library))
        assert theirs == library, told
        assert "0x" in device or ours == device, told  # rows of bits are shorter in hexadecimal digits
        return "taken"
    return "refused"


def check_all(cases: Iterable[Case], folder: Path) -> Counter[str]:
    return Counter(check(case, folder) for case in cases)


# -- entries -------------------------------------------------------------------------------------------------------


def test_both_know_the_same_kinds_and_the_cases_hold_all_of_them() -> None:
    used = {study["domain"]["kind"] for study, _ in BASES.values()}
    assert set(client.DOMAINS) == set(DOMAIN_KINDS) == used
    used = {each["kind"] for study, _ in BASES.values() for each in study["mechanisms"].values()}
    assert set(client.MECHANISMS) == set(MECHANISM_KINDS) == used


def test_valid_studies_are_taken(tmp_path: Path) -> None:
    for name, (study, value) in BASES.items():
        assert check(Case(name, study, value), tmp_path) == ("needs tables" if name in TABLED else "taken"), name


SOME = 7  # one in so many cases is taken by the gate


def place(name: str) -> int:
    """Return where the gate begins with the cases of a study: not with the same ones in all of them."""
    return list(BASES).index(name) % SOME


def unfit_entries(name: str) -> Iterator[Case]:
    """Yield a study with one entry at a time left out, or replaced; and with an entry that does not belong there.

    Entries of the study, of the domain and of the mechanism are changed in one of the bases each.
    """
    study, value = BASES[name]
    table = () if study is FULL else ("domain",) if name in (*DOMAINS, "people") else ("mechanisms", "m")
    for path in entries(study):
        if path[: len(table)] == table:
            where = ".".join(path)
            if path != ("mechanisms", "m"):  # which the value is to go through
                yield Case(f"{name}, without {where}", changed(study, path), value)
            for unfit in UNFIT:
                yield Case(f"{name}, {where} = {toml(unfit):.40}", changed(study, path, to=unfit), value)
    strange = (
        "extra",
        "kind ",
        "domain",
        "box",
        "cell",
        "cells",
        "unit",
        "low",
        "north",
        "first",
        "size",
        "truncated",
        "",
    )
    for entry in strange:
        if (*table, entry) not in entries(study):
            yield Case(f"{name}, with {entry!r}", changed(study, (*table, entry), to=1), value)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", BASES)
def test_unfit_entries_are_taken_or_refused_alike(name: str, tmp_path: Path) -> None:
    seen = check_all(islice(unfit_entries(name), place(name), None, SOME), tmp_path)
    assert seen["refused"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
def test_all_unfit_entries_are_taken_or_refused_alike(name: str, tmp_path: Path) -> None:
    seen = check_all(unfit_entries(name), tmp_path)
    assert seen["refused"] > 50


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_odd_studies_that_are_fine_are_taken(case: Case, tmp_path: Path) -> None:
    assert check(case, tmp_path) == "taken"


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_studies_that_are_not_fine_are_refused(case: Case, tmp_path: Path) -> None:
    assert check(case, tmp_path) == "refused"


@pytest.mark.parametrize("limit", [1e-12, 1e-7, 500.0])
@pytest.mark.parametrize("kind", ["geometric", "truncated-geometric", "laplace", "rappor", "local-hashing"])
def test_epsilons_at_the_limits_are_taken_or_refused_alike(kind: str, limit: float, tmp_path: Path) -> None:
    for epsilon in (math.nextafter(limit, 0), limit, math.nextafter(limit, math.inf)):
        study = document(DOMAINS["integers"][0], {"kind": kind, "epsilon": epsilon})
        taken = (1e-7 if kind == "geometric" else 1e-12) <= epsilon <= 500
        assert check(Case(f"{kind}, {epsilon!r}", study, 5), tmp_path) == ("taken" if taken else "refused")


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["a\0b.toml", "x" * 5000, "/dev/zero", "/", "", "missing.toml", 17, None, b"study.toml"]
)
def test_a_path_without_a_study_is_refused(path: Any) -> None:
    with pytest.raises(ClientError, match=r"no such study file.*\n  where:.*\n  got:.*\n  expected:.*\n  remedy:"):
        Client(path)
    with pytest.raises(hb.StudyError):
        hb.read_study(path)


def test_a_study_file_of_more_than_its_limit_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole of a terabyte: nobody may read it
    for read, error in ((Client, ClientError), (hb.read_study, hb.StudyError)):
        with pytest.raises(error, match="too large"):
            read(path)


# -- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "taken"),
    [
        ({"kind": "integers", "low": 1, "high": 10**8}, True),
        ({"kind": "integers", "low": 0, "high": 10**8}, False),
        ({"kind": "integers", "low": 2**53 - 9, "high": 2**53}, True),
        ({"kind": "integers", "low": 2**53 - 9, "high": 2**53 + 1}, False),
        ({"kind": "integers", "low": -(2**53), "high": 9 - 2**53}, True),
        ({"kind": "integers", "low": 0, "high": 99_999_999_999}, False),
        ({"kind": "integers", "low": 5, "high": 5}, False),
        ({"kind": "integers", "low": 5, "high": 4}, False),
        ({"kind": "grid", "columns": 10**4, "rows": 10**4}, True),
        ({"kind": "grid", "columns": 10**4 + 1, "rows": 10**4}, False),
        ({"kind": "grid", "columns": 10**12, "rows": 10**12, "cells": [0, 1]}, False),
        ({"kind": "grid", "columns": 1, "rows": 1}, False),
    ],
)
def test_both_keep_the_same_limits(domain: Document, taken: bool, tmp_path: Path) -> None:
    """Without a draw: the library would fill gigabytes with the labels of a hundred million values."""
    path = tmp_path / "study.toml"
    path.write_text(study_text(document(domain, RESPONSE)))
    if taken:
        assert len(hb.read_study(path).domain) == len(Client(path)._values.labels)
        return
    with pytest.raises(ClientError, match="the study cannot be used"):
        Client(path)
    with pytest.raises(hb.StudyError):
        hb.read_study(path)


def test_a_hundred_million_values_are_not_listed_on_the_device(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    for domain in ({"kind": "integers", "low": 1, "high": 10**8}, {"kind": "grid", "columns": 10**4, "rows": 10**4}):
        path.write_text(study_text(document(domain, RESPONSE)))
        device = Client(path)
        assert isinstance(device._values.labels, range)
        assert int(device.privatize(10**7)) in device._values.labels


# -- values --------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DOMAINS)
def test_values_are_taken_or_refused_alike(name: str, tmp_path: Path) -> None:
    study, _ = BASES[name]
    seen = check_all((Case(f"{name}, {value!r:.60}", study, value) for value in VALUES), tmp_path)
    assert seen["taken"] > 3
    assert seen["refused"] > 40


def test_the_same_values_are_found(tmp_path: Path) -> None:
    """Cloaking draws nothing: each value has a region of its own, and both must name the same one."""
    path = tmp_path / "study.toml"
    for name, (domain, _) in DOMAINS.items():
        size = len(hb.read_study(_written(path, document(domain, RESPONSE))).domain)
        _written(path, document(domain, {"kind": "cloaking", "regions": [f"r{place}" for place in range(size)]}))
        found = 0
        for value in VALUES:
            try:
                theirs = library_output(path, value, "m")
            except hb.HubbubError:
                continue
            assert client_output(path, value, "m") == theirs, (name, value)
            found += 1
        assert found > 3, name


def _written(path: Path, study: Document) -> Path:
    path.write_text(study_text(study))
    return path


# -- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLED)
def test_the_one_difference_is_what_needs_tables(name: str, tmp_path: Path) -> None:
    study, value = BASES[name]
    path = _written(tmp_path / "study.toml", study)
    with pytest.raises(ClientError, match=r"(?s)needs a file of tables.*hubbub privatize STUDY --export-tables FILE"):
        client_output(path, value, "m")
    export_tables(path, tmp_path / "tables.json")
    output = client_output(path, value, "m", tmp_path / "tables.json")
    assert in_library_form(path, "m", output) == output
    for refused in VALUES:
        try:
            library_output(path, refused, "m")
        except hb.HubbubError:
            with pytest.raises(ClientError):
                client_output(path, refused, "m", tmp_path / "tables.json")


# -- drawn at random -----------------------------------------------------------------------------------------------


@examples(100)
@given(st.data())
def test_mutated_studies_are_taken_or_refused_alike(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    check(data.draw(mutated()), tmp_path_factory.mktemp("mutated"))


@pytest.mark.slow
@examples(10_000)
@given(st.data())
def test_many_mutated_studies_are_taken_or_refused_alike(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    check(data.draw(mutated(most=4)), tmp_path_factory.mktemp("mutated"))
