"""Judge every claim whose figure was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hubbub.paper.claims import Claim, read_claims
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.claim_evidence import ClaimEvidence, Finding
from hubbub.paper.judging.method_claims import along, between, compare, lead
from hubbub.paper.judging.number_claims import (
    certified,
    empty,
    errors_stay,
    errors_vanish,
    holes,
    one_delta,
    published,
    turning,
)
from hubbub.paper.judging.small_examples import border, derivatives, ideal, only_maximum, ridge
from hubbub.paper.results import Results

CHECKS = (compare, along, between, lead)
CHECKS += (published, one_delta, empty, holes, certified, turning, errors_vanish, errors_stay)
CHECKS += (ridge, ideal, only_maximum, derivatives, border)
JUDGES: Mapping[str, Callable[[ClaimEvidence], Finding]] = {
    check.__name__.replace("_", "-"): check
    for check in CHECKS  # as `claims.toml` names them
}


def judge_claims(
    figures: Sequence[Figure], results: Results, claims: Sequence[Claim] | None = None
) -> tuple[Finding, ...]:
    """Return the finding about each claim whose figure was measured; without `claims`, about all of `claims.toml`."""
    known = {figure.name: figure for figure in figures}
    chosen = read_claims() if claims is None else claims
    return tuple(JUDGES[claim.check](ClaimEvidence(claim, known, results)) for claim in chosen if claim.figure in known)
