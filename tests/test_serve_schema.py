"""Drawn requests: what the collector takes is what its schema describes, and nothing breaks it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import hubbub as hb
from collectors import STUDY, RunningCollector
from hubbub.serve import bounded_http, report_requests, web_app
from hubbub.serve.report_check import ReportCheck
from hubbub.serve.report_requests import RequestForm
from hubbub.serve.request_errors import REQUESTS, RequestRefusedError

SCHEMA = json.loads(files("hubbub.serve").joinpath("assets", "reports.schema.json").read_text(encoding="utf-8"))
VALID = Draft202012Validator(SCHEMA)
QUICK = settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> hb.Study:
    path = tmp_path_factory.mktemp("schema") / "study.toml"
    path.write_text(STUDY)
    return hb.read_study(path)


def drawn_from(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Documents that a schema describes, as far as ours uses the language."""
    if "$ref" in schema:
        return drawn_from(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return st.one_of([drawn_from(each) for each in schema["anyOf"]])
    if schema["type"] == "array":
        return st.lists(drawn_from(schema["items"]), min_size=schema["minItems"], max_size=4)
    if schema["type"] == "string":
        if "pattern" in schema:
            return st.from_regex(schema["pattern"].removesuffix("$") + r"\Z")
        return st.text(min_size=schema["minLength"], max_size=12)
    if "properties" not in schema:
        return st.dictionaries(st.text(max_size=5), drawn_from(schema["additionalProperties"]), min_size=1, max_size=3)
    entries = {name: drawn_from(each) for name, each in schema["properties"].items()}
    required = {name: entries.pop(name) for name in schema["required"]}
    return st.fixed_dictionaries(required, optional=entries)


def taken(form: RequestForm, document: Any) -> RequestRefusedError | None:
    try:
        form.parse(json.dumps(document).encode())
    except RequestRefusedError as refusal:
        found = refusal
    else:
        return None
    assert found.status in {status for status, _ in REQUESTS.values()}
    assert json.loads(found.body)["errors"]
    return found


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@settings(QUICK, max_examples=25)
@given(data=st.data())
def test_what_the_schema_describes_is_refused_for_its_content_alone(study: hb.Study, data: st.DataObject) -> None:
    document = data.draw(drawn_from(SCHEMA))
    assert VALID.is_valid(document)
    refusal = taken(RequestForm(study, wants_users=False), document)
    if refusal is not None:
        allowed = {"other-study", "unknown-mechanism", "no-mechanism", "nested-entry", "not-utf-8", "unwanted-user"}
        assert {error["code"] for error in refusal.errors} <= allowed


@QUICK
@given(document=JSON | st.lists(JSON, max_size=2).map(lambda reports: {"fingerprint": "", "reports": reports}))
def test_what_the_schema_does_not_describe_is_refused(study: hb.Study, document: Any) -> None:
    if isinstance(document, dict) and document.get("fingerprint") == "":
        document["fingerprint"] = study.fingerprint
    refusal = taken(RequestForm(study, wants_users=False), document)
    assert refusal is not None or VALID.is_valid(document)


REPORTS = st.fixed_dictionaries(
    {"output": st.integers(-3, 12).map(str) | st.text(max_size=6), "key": st.uuids().map(str)},
    optional={"mechanism": st.sampled_from(["strong", "light", "weak"]), "user": st.text(max_size=3)},
)


@QUICK
@given(reports=st.lists(REPORTS | JSON, min_size=1, max_size=6))
def test_reports_that_are_taken_fit_the_schema_and_can_be_counted(study: hb.Study, reports: list[Any]) -> None:
    document = {"fingerprint": study.fingerprint, "reports": reports}
    refusal = taken(RequestForm(study, wants_users=False), json.loads(json.dumps(document)))
    if refusal is not None:
        return
    assert VALID.is_valid(document)
    batch = RequestForm(study, wants_users=False).parse(json.dumps(document).encode())
    faults = {place for place, _ in ReportCheck(study).faults(batch.mechanisms, batch.outputs)}
    for place, each in enumerate(reports):
        mechanism, number = each["mechanism"], _whole(each["output"])
        fit = number is not None and (mechanism == "light" or 0 <= number <= 7)
        assert (place not in faults) == fit, each


def _whole(text: str) -> int | None:
    """Return the whole number that a text is in plain digits, perhaps with .0 as floats are written."""
    plain = text.removesuffix(".0") if text.isascii() else ""
    digits = plain.removeprefix("-").removeprefix("+") if plain[:2] not in ("-+", "+-", "--", "++") else ""
    return int(plain) if digits.isdecimal() else None


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCollector]:
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "study.toml").write_text(STUDY)
    running = RunningCollector(folder / "study.toml", f"sqlite:///{folder}/reports.db")
    yield running
    assert running.stop() == 0
    assert running.logged() == []


@settings(QUICK, max_examples=40)
@given(data=st.data())
def test_the_collector_survives_what_is_drawn(collector: RunningCollector, data: st.DataObject) -> None:
    document = data.draw(drawn_from(SCHEMA) | JSON)
    status, answer = collector.post(json.dumps(document).encode())
    assert status in (200, 400, 409, 422), answer


def test_damaged_bytes(collector: RunningCollector) -> None:
    whole = json.dumps({"fingerprint": collector.study.fingerprint, "reports": [{"output": "3", "key": "k" * 9}]})
    for place in range(0, len(whole), 3):
        damaged = whole.encode()[:place] + secrets.token_bytes(2) + whole.encode()[place + 1 :]
        assert collector.post(damaged)[0] in (400, 409, 422), damaged


def test_the_page_has_the_schema_the_codes_and_the_limits_that_are_used() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "collector.md").read_text(encoding="utf-8")
    assert "src/hubbub/serve/assets/reports.schema.json" in page
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    codes = {row[0].strip("`"): (int(row[1]), row[2]) for row in rows if row[1].isdecimal()}
    assert codes == REQUESTS
    members = {name for each in SCHEMA["$defs"].values() for name in each.get("properties", ())} - {"reports"}
    assert members <= {row[0].strip("`") for row in rows}
    numbers = (
        bounded_http.MAX_HEADER_BYTES,
        bounded_http.MAX_CONNECTIONS,
        bounded_http.MAX_WAITING_REQUESTS,
        web_app.MIN_HELD_BYTES,
    )
    assert all(f"{number:,}" in page for number in numbers)
    assert f"within {bounded_http.HEADER_SECONDS:g} s" in page
    assert f"within {bounded_http.MESSAGE_SECONDS:g} s" in page


ENTRIES = ['"3"', '"é"', '""', '"aaaaaaaa"', '"strong"', "null", "3", '{"age": "1", "age": "2"}', '"\\u0033"']
MEMBERS = st.tuples(
    st.sampled_from(['"output"', '"key"', '"mechanism"', '"user"', '"other"']), st.sampled_from(ENTRIES)
)
BODIES = st.lists(st.lists(MEMBERS, max_size=3), min_size=1, max_size=3)


@QUICK
@given(drawn=BODIES, wants_users=st.booleans())
def test_both_ways_to_read_a_request_agree(
    study: hb.Study, drawn: list[list[tuple[str, str]]], wants_users: bool
) -> None:
    """Members may be there twice: then the quick way must leave the request to the other one, which refuses it."""
    fit = [('"output"', '"3"'), ('"key"', '"bbbbbbbb"'), ('"mechanism"', '"light"')]
    reports = [", ".join(": ".join(member) for member in [*fit, *members]) for members in drawn]
    body = (
        f'{{"fingerprint": "{study.fingerprint}", "reports": [{", ".join(f"{{{one}}}" for one in reports)}]}}'.encode()
    )
    form = RequestForm(study, wants_users=wants_users)

    def read() -> object:
        try:
            return form.parse(body)
        except RequestRefusedError as refusal:
            return refusal.body

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_requests, "typed_request", lambda _: None)
        thorough = read()
    assert read() == thorough
