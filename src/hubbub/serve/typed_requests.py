"""Well-formed requests, read straight into typed fields: no type has to be looked at afterwards.

Whatever else is sent is read again, by code that can say what is wrong with it (report_requests.py).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.json import Decoder


class SentReport(Struct, forbid_unknown_fields=True, gc=False):
    """A report as it is sent, with empty texts for members that are left out."""

    output: str | dict[str, str]
    key: str
    mechanism: str = ""
    user: str = ""


class SentReports(Struct, forbid_unknown_fields=True, gc=False):
    """A request: reports, and the study that they were made for."""

    fingerprint: str
    reports: list[SentReport]


DECODER = Decoder(SentReports)


def typed_request(body: bytes) -> SentReports | None:
    """Return a request; None if it is in another form, or could be.

    JSON lets a member of an object be there twice, and then nobody knows which one counts. Without escapes, all
    quotation marks are those around texts: if there are two for each text that was read, none was left out.
    """
    if b"\\" in body:
        return None
    try:
        request = DECODER.decode(body)
    except (ValueError, RecursionError):
        return None
    texts = 3 + 4 * len(request.reports)  # fingerprint, its value, reports; output, key and their values
    texts += 2 * sum(report.mechanism != "" for report in request.reports)
    texts += 2 * sum(report.user != "" for report in request.reports)
    texts += sum(2 * len(report.output) - 1 for report in request.reports if type(report.output) is dict)
    return request if body.count(b'"') == 2 * texts else None
