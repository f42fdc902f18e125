"""The page that asks a study's question, by itself and in a frame of another site, and the policies of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.intake.study import Study
from hubbub.reporting.html_templates import render
from hubbub.serve.noise_words import noise_sentences

PACKAGE = "hubbub.serve"
DEFAULT_TITLE = "A question"


def question_page(study: Study, document: Mapping[str, Any], *, embedded: bool) -> bytes:
    """Return the page of a study that has a question; `document` is what clients read of the study.

    It holds words alone. Its scripts make the control, from the document that the page pins by its digest.
    """
    question = dict(study.question or {})
    mechanism = question.get("mechanism") or next(iter(study.mechanisms))
    text = render(
        PACKAGE,
        "question.html",
        title=question["text"][:200] or DEFAULT_TITLE,
        name=study.name,
        question={"help": "", "thanks": "", **question},
        noise=noise_sentences(study.mechanisms[mechanism]),
        promise=document["mechanisms"][mechanism]["promise"],
        mechanism=mechanism,
        access=(study.collector or {})["access"],
        fingerprint=document["fingerprint"],
        digest=document["digest"],
        embedded=embedded,
    )
    return text.encode("utf-8")


def page_headers(*, frames: Sequence[str] = (), forms: bool = False, frame_source: bool = False) -> dict[str, str]:
    """Return the headers of a page: its own scripts and styles run, it talks to its collector, and to nobody else.

    `frames` are the sites that may show it in a frame; `forms` lets it send forms to its own collector.
    """
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "data:",
        "connect-src": "'self'",
        "frame-src": "'self'" if frame_source else "'none'",
        "base-uri": "'none'",
        "form-action": "'self'" if forms else "'none'",
        "frame-ancestors": " ".join(frames) or "'none'",
        "require-trusted-types-for": "'script'",  # no text can become markup
        "trusted-types": "'none'",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {allowed}" for name, allowed in policy.items()),
        "referrer-policy": "same-origin" if forms else "no-referrer",
        "permissions-policy": "geolocation=(), camera=(), microphone=(), browsing-topics=(), idle-detection=()",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin" if not frames else "cross-origin",
        "cache-control": "no-cache",
        "x-dns-prefetch-control": "off",
    }
