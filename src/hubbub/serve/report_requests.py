"""Bodies of `POST /reports`: JSON to columns of keys, mechanisms, outputs and tokens; other forms are refused.

Requests are looked at by the column. Only a request in which something is wrong is looked at report by report, to say
what. Outputs themselves are checked later, all of a group at once (report_check.py).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

from hubbub.core.errors import HubbubError, IntakeError, shorten
from hubbub.core.text import nearest_name
from hubbub.intake.attribute_roles import PREFIX, attribute_spaces
from hubbub.intake.reject_causes import Fault, row_fault, unknown_mechanism
from hubbub.intake.study import Study
from hubbub.mechanisms.attribute_outputs import AttributeOutputs
from hubbub.serve.request_errors import MAX_FAULTS, ReportFault, RequestRefusedError, refused, reports_refused
from hubbub.serve.typed_requests import SentReport, typed_request

KEY_BYTES = (string.ascii_letters + string.digits + "-_").encode()
KEY_LENGTHS = range(8, 65)
REPORT_MEMBERS = ("mechanism", "output", "key", "user")
MAX_NAME_LETTERS = 64  # of an unknown name that is compared with those there are
WHERE = "POST /reports"
EXAMPLE = '{"fingerprint": "…", "reports": [{"mechanism": "…", "output": "…", "key": "…"}]}'
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of pairs: no text of a database holds them


@dataclass(frozen=True)
class ReportBatch:
    """The reports of one request, by the column."""

    keys: list[str]
    mechanisms: list[str]
    outputs: Mapping[str, Sequence[str | None]]  # by role: output, or output.NAME for each attribute
    users: list[str] | None  # tokens, where the study wants them

    def __len__(self) -> int:
        return len(self.keys)


class _NotJsonError(ValueError):
    """JSON that has two meanings, or none."""


class RequestForm:
    """What requests to the collector of a study look like."""

    def __init__(self, study: Study, *, wants_users: bool) -> None:
        self._fingerprint, self._wants_users = study.fingerprint, wants_users
        self._mechanisms = list(study.mechanisms)
        self._only = self._mechanisms[0] if len(self._mechanisms) == 1 else None
        spaces = attribute_spaces(study.mechanisms)
        self._attributes = [name for name, _ in spaces[0].parts] if spaces else []
        self._over_attributes = frozenset(
            name for name, each in study.mechanisms.items() if isinstance(each.output_space, AttributeOutputs)
        )
        self._roles = [PREFIX + name for name in self._attributes]
        if len(spaces) < len(study.mechanisms):
            self._roles.append("output")

    def parse(self, body: bytes) -> ReportBatch:
        """Return the reports of a request; refuse one that is not in the form."""
        typed = typed_request(body)
        batch = None if typed is None or typed.fingerprint != self._fingerprint else self._typed_batch(typed.reports)
        if batch is not None:
            return batch
        reports = self._reports(_document(body))
        batch = self._untyped_batch(reports)
        if batch is None:
            faults = islice(self._faults(reports), MAX_FAULTS)
            raise reports_refused([ReportFault(place, fault.error) for place, fault in faults])
        return batch

    def _reports(self, document: object) -> list[Any]:
        """Return the reports of a document: those in its list, or the document itself."""
        if not isinstance(document, dict):
            raise _not_a_request(f"a document of type {_type(document)}")
        is_stamped = "fingerprint" in document
        fingerprint = document.pop("fingerprint", None)
        if "reports" not in document:
            reports: Any = [document]
        else:
            reports = document.pop("reports")
            if document:
                raise _not_a_request(f"a member {shorten(next(iter(document)))} beside reports")
            if not isinstance(reports, list) or not reports:
                raise _not_a_request("no reports" if reports == [] else f"reports of type {_type(reports)}")
            if not is_stamped:
                raise _not_a_request("no fingerprint")
        if is_stamped and fingerprint != self._fingerprint:
            raise refused(
                "other-study",
                "the reports were made for another study",
                where=f"{WHERE}, fingerprint",
                got=shorten(fingerprint, 100),
                expected=self._fingerprint,
                remedy="fetch the study again from this collector, and make new reports with it",
            )
        return list(reports)

    def _typed_batch(self, reports: Sequence[SentReport]) -> ReportBatch | None:
        """Return reports of the right types by the column; None if one of them is at fault."""
        keys, outputs = [report.key for report in reports], [report.output for report in reports]
        mechanisms = [report.mechanism or self._only for report in reports]
        users = [report.user for report in reports]
        if not self._wants_users and any(users):
            return None
        return self._batch(keys, mechanisms, outputs, users if self._wants_users else None)

    def _untyped_batch(self, reports: list[Any]) -> ReportBatch | None:
        """Return reports of any types by the column; None if one of them is at fault."""
        if set(map(type, reports)) != {dict}:
            return None
        users = [report.get("user") for report in reports] if self._wants_users else None
        known = 2 * len(reports) + sum("mechanism" in report for report in reports) + len(users or ())
        if sum(map(len, reports)) != known:
            return None  # something is missing, or there is more
        keys, outputs = ([report.get(name) for report in reports] for name in ("key", "output"))
        return self._batch(keys, [report.get("mechanism", self._only) for report in reports], outputs, users)

    def _batch(
        self, keys: list[Any], mechanisms: list[Any], outputs: list[Any], users: list[Any] | None
    ) -> ReportBatch | None:
        if not _are_keys(keys) or not _are_texts(mechanisms) or not set(mechanisms) <= set(self._mechanisms):
            return None
        if users is not None and not _are_texts(users):
            return None
        divided = self._divided(mechanisms, outputs)
        return None if divided is None else ReportBatch(keys, mechanisms, divided, users)

    def _divided(self, mechanisms: list[str], outputs: list[Any]) -> Mapping[str, Sequence[str | None]] | None:
        """Return outputs by role; None if one is not a text, or not an object where there are several attributes."""
        if not self._over_attributes:
            return {"output": outputs} if _are_texts(outputs) else None
        columns: dict[str, list[str | None]] = {role: [None] * len(outputs) for role in self._roles}
        for place, (mechanism, output) in enumerate(zip(mechanisms, outputs, strict=True)):
            if mechanism in self._over_attributes:
                entries = self._entries(output)
                if isinstance(entries, Fault):
                    return None
                for name, entry in entries.items():
                    columns[PREFIX + name][place] = entry
            elif not _are_texts([output]):
                return None
            else:
                columns["output"][place] = output
        return columns

    def _entries(self, output: Any) -> Mapping[str, str] | Fault:
        """Return the entries of an output about several attributes: an object, or a text with one."""
        entries = output
        if isinstance(output, str):
            try:
                entries = JSON.decode(output)
            except (ValueError, RecursionError):
                entries = None
        names = ", ".join(f'"{name}": "…"' for name in self._attributes)
        remedy = "write the output of each attribute as a text, in an object"
        if not isinstance(entries, dict) or not _are_texts(list(entries.values())):
            what = "the output is not an object with a text for each attribute"
        elif unknown := [name for name in entries if name not in self._attributes]:
            what = f"{shorten(unknown[0])} is no attribute of the study"
            remedy = nearest_name(unknown[0][:MAX_NAME_LETTERS], self._attributes, "name the attributes of the study")
        elif not any(entries.values()):
            what = "the output has no entry"
        else:
            return entries
        return row_fault(
            "not-attributes", what, got=shorten(output), expected=f"{{{names}}}", remedy=remedy, column="output"
        )

    # -- what is wrong, report by report -------------------------------------------------------------

    def _faults(self, reports: list[Any]) -> Iterator[tuple[int, Fault]]:
        for place, report in enumerate(reports):
            fault = self._fault(report)
            if fault is not None:
                yield place, fault

    def _fault(self, report: Any) -> Fault | None:
        if not isinstance(report, dict):
            return _bad_report("a report is not an object", f"something of type {_type(report)}", EXAMPLE)
        for name in report:
            if name not in REPORT_MEMBERS:
                return _bad_report("a report has an unknown member", shorten(name), ", ".join(REPORT_MEMBERS))
        key = report.get("key")
        if not _are_keys([key]):
            return _request_fault(
                "bad-key",
                "the report has no key" if key is None else "the key cannot be used",
                got=shorten(key),
                expected="8 to 64 letters, digits, - and _",
                remedy="draw 128 random bits once for each report, and keep them for when it is sent again",
            )
        mechanism = report.get("mechanism", self._only)
        if not isinstance(mechanism, str) or mechanism not in self._mechanisms:
            return unknown_mechanism(mechanism, self._mechanisms)
        output = report.get("output")
        if output is None or output == "":
            return row_fault(
                "no-output",
                "the report has no output",
                got="nothing",
                expected='"output": "…"',
                remedy="send what the client made of the value",
            )
        fault = self._entries(output) if mechanism in self._over_attributes else _text_fault(output)
        return fault if isinstance(fault, Fault) else self._user_fault(report)

    def _user_fault(self, report: Mapping[str, Any]) -> Fault | None:
        if not self._wants_users and "user" in report:
            return _request_fault(
                "unwanted-user",
                "the study takes no tokens",
                got="a member user",
                expected="reports that say nothing about who sends them",
                remedy="leave user out",
            )
        if self._wants_users and not _are_texts([report.get("user")]):
            return _request_fault(
                "no-token",
                "the report has no token",
                got=f"something of type {_type(report.get('user'))}",
                expected='"user": "the token that the person was given"',
                remedy="ask whoever runs the study for a token",
            )
        return None


def token_fault() -> HubbubError:
    """Return what is wrong with a report whose token this collector did not issue."""
    return _request_fault(
        "bad-token",
        "the token is not valid",
        got="a token that was not issued for this study by this collector",
        expected="a token as it was issued, letter by letter",
        remedy="check that it was copied in full, or ask whoever runs the study for another one",
    ).error


def _are_texts(entries: list[Any]) -> bool:
    """Whether all entries are texts that databases can hold, and not empty."""
    if set(map(type, entries)) != {str} or not all(entries):
        return False
    joined = "".join(entries)
    return "\0" not in joined if joined.isascii() else not UNSTORABLE.search(joined)


def _are_keys(entries: list[Any]) -> bool:
    """Whether all entries are keys."""
    if set(map(type, entries)) != {str}:
        return False
    joined = "".join(entries)
    return (
        KEY_LENGTHS.start <= min(map(len, entries))
        and max(map(len, entries)) < KEY_LENGTHS.stop
        and joined.isascii()
        and not joined.encode().translate(None, KEY_BYTES)
    )


def _text_fault(output: Any) -> Fault | None:
    if not isinstance(output, str):
        code = "nested-entry" if isinstance(output, dict | list) else "not-an-output"
        what, got = "the output is not a text", f"something of type {_type(output)}"
    elif UNSTORABLE.search(output):
        code, what, got = "not-utf-8", "the output has characters that cannot be stored", shorten(output)
    else:
        return None
    return row_fault(
        code, what, got=got, expected="a text", remedy="send what the client made of the value, as it wrote it"
    )


def _document(body: bytes) -> object:
    try:
        return JSON.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise _not_json("the body is not UTF-8") from None
    except RecursionError:
        raise _not_json("lists and objects are nested too deeply") from None
    except _NotJsonError as error:
        raise _not_json(str(error)) from None
    except ValueError as error:  # its message names a place, and nothing of the body
        raise _not_json(str(error)[:100]) from None


def _distinct_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _NotJsonError("a member of an object is there twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is not a JSON number")


def _type(entry: object) -> str:
    """Return what JSON calls the type of something."""
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return kinds.get(type(entry), "null")


def _not_json(got: str) -> RequestRefusedError:
    return refused(
        "not-json",
        "the body is not JSON",
        where=f"{WHERE}, body",
        got=got,
        expected=f"{EXAMPLE}, in UTF-8",
        remedy="write the body with a JSON library",
    )


def _not_a_request(got: str) -> RequestRefusedError:
    return refused(
        "bad-report",
        "the body is not a request of this collector",
        where=f"{WHERE}, body",
        got=got,
        expected=f"{EXAMPLE}; or one report by itself",
        remedy="send the reports in a list, with the study's fingerprint beside it",
    )


def _bad_report(what: str, got: str, expected: str) -> Fault:
    return _request_fault("bad-report", what, got=got, expected=expected, remedy="correct the report")


def _request_fault(code: str, what: str, *, got: str, expected: str, remedy: str) -> Fault:
    error = IntakeError(what, where="", got=got, expected=expected, remedy=remedy, code=code)
    return Fault("", error)


JSON = json.JSONDecoder(object_pairs_hook=_distinct_members, parse_constant=_refuse_constant)
