"""Answers to requests that are refused: a status, and for each fault the five parts of a message and a code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hubbub.core.errors import PARTS, HubbubError

MAX_ERRORS = 20  # told of one request
MAX_FAULTS = 100  # looked for in one request: to say what is wrong with a report takes long
UNFIT = 422  # the status of reports that the study does not allow
RETRY_SECONDS = 2  # after which a client may try again, where the collector is at fault
MEMBERS = ("report", *PARTS)  # of each error

# The codes of requests, with their status. Reports themselves have the codes of rejected rows, with 422.
REQUESTS = {
    "not-json": (400, "the body is not JSON, or not UTF-8"),
    "bad-request": (400, "the request is not valid HTTP"),
    "no-token": (401, "the study wants a token with each report, and there is none"),
    "no-results-token": (401, "the results are for those with their token"),
    "bad-token": (403, "the token was not issued for this study by this collector"),
    "too-many-reports": (403, "the person with this token has sent all the reports that the study allows"),
    "other-origin": (403, "a page of a site that the study does not name"),
    "no-such-page": (404, "there is nothing at this path"),
    "wrong-method": (405, "this path does not take this method"),
    "too-slow": (408, "the request took too long to arrive"),
    "other-study": (409, "the reports were made for another study"),
    "too-large": (413, "the request is larger than the study allows"),
    "wrong-type": (415, "the body is not declared as JSON, or is compressed"),
    "key-reused": (422, "another report was stored under the same key"),
    "bad-key": (422, "the key of a report is missing, or is not 8 to 64 letters, digits, - and _"),
    "bad-report": (422, "a report lacks something, has something unknown, or is not an object"),
    "unwanted-user": (422, "the study takes no tokens, and the report has one"),
    "too-many-requests": (429, "too many requests from one address within a minute"),
    "headers-too-large": (431, "the headers of the request are too large"),
    "our-mistake": (500, "the collector failed; the report was not stored"),
    "busy": (503, "too many requests at once"),
    "storage": (503, "the database does not take reports at present: gone, locked, or full"),
    "no-results-yet": (503, "no reports have been counted for the results yet"),
    "stopping": (503, "the collector is being stopped"),
}


class RequestRefusedError(Exception):
    """A request that is not fulfilled, with its status and what is wrong."""

    def __init__(
        self, status: int, errors: Sequence[Mapping[str, Any]], *, retry_after: int | None = None, allow: str = ""
    ) -> None:
        super().__init__(f"status {status}")  # never what was sent
        self.status = status
        self.errors = list(errors)
        self.retry_after = retry_after
        self.allow = allow  # the methods that would have been taken

    @property
    def body(self) -> bytes:
        """The JSON document of the answer."""
        told = self.errors[:MAX_ERRORS]
        document = {"accepted": 0, "errors": told}
        if len(told) < len(self.errors):
            document["more_errors"] = len(self.errors) - len(told)
        return json.dumps(document, ensure_ascii=True).encode("ascii")


@dataclass(frozen=True)
class ReportFault:
    """What is wrong with one report of a request."""

    report: int
    error: HubbubError = field(repr=False)

    def document(self) -> dict[str, Any]:
        """Return the members of an error."""
        where = f"report {self.report}" + (f", {self.error.where}" if self.error.where else "")
        parts = {name: getattr(self.error, name) for name in PARTS}
        return {"report": self.report, **parts, "where": where}


def refused(
    code: str,
    what: str,
    *,
    where: str,
    got: object,
    expected: str,
    remedy: str,
    retry_after: int | None = None,
    allow: str = "",
) -> RequestRefusedError:
    """Return the refusal of a request as a whole."""
    status, _ = REQUESTS[code]
    error = HubbubError(what, where=where, got=got, expected=expected, remedy=remedy, code=code)
    parts = {name: getattr(error, name) for name in PARTS}
    return RequestRefusedError(status, [{"report": None, **parts}], retry_after=retry_after, allow=allow)


def reports_refused(faults: Sequence[ReportFault]) -> RequestRefusedError:
    """Return the refusal of a request of which some reports are at fault."""
    statuses = {REQUESTS[fault.error.code][0] if fault.error.code in REQUESTS else UNFIT for fault in faults}
    status = statuses.pop() if len(statuses) == 1 else UNFIT
    return RequestRefusedError(status, [fault.document() for fault in faults])
