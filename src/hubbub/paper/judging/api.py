"""Judge every claim whose figure was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hubbub.paper.claims import Claim, read_claims
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.finding import Finding, sentence_case
from hubbub.paper.judging.guess_claims import errors_stay, errors_vanish
from hubbub.paper.judging.method_claims import along, between, compare, lead
from hubbub.paper.judging.number_claims import certified, empty, holes, one_delta, published, turning
from hubbub.paper.judging.small_examples import (
    border,
    derivatives,
    ideal,
    only_maximum,
    ridge,
)
from hubbub.paper.results import Results

Check = Callable[[Claim, Mapping[str, Figure], Results], Finding]

JUDGES: Mapping[str, Check] = {
    "compare": compare,
    "along": along,
    "between": between,
    "lead": lead,
    "published": published,
    "one-delta": one_delta,
    "empty": empty,
    "holes": holes,
    "certified": certified,
    "turning": turning,
    "errors-vanish": errors_vanish,
    "errors-stay": errors_stay,
    "ridge": ridge,
    "ideal": ideal,
    "only-maximum": only_maximum,
    "derivatives": derivatives,
    "border": border,
}


def judge_claims(
    figures: Sequence[Figure], results: Results, claims: Sequence[Claim] | None = None
) -> tuple[Finding, ...]:
    """Return the finding about each claim whose figure was measured; without `claims`, about all of `claims.toml`."""
    known = {figure.name: figure for figure in figures}
    chosen = read_claims() if claims is None else claims
    findings = (JUDGES[claim.check](claim, known, results) for claim in chosen if claim.figure in known)
    return tuple(replace(finding, measured=sentence_case(finding.measured)) for finding in findings)
