"""Judge every claim whose figure was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hubbub.paper.claims import Claim, read_claims
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging import method_claims, number_claims, small_example_claims
from hubbub.paper.judging.claim_evidence import ClaimEvidence, Finding
from hubbub.paper.results import Results

JUDGES: Mapping[str, Callable[[ClaimEvidence], Finding]] = {
    check.__name__.replace("_", "-"): check  # as `claims.toml` names them
    for check in (*method_claims.CHECKS, *number_claims.CHECKS, *small_example_claims.CHECKS)
}


def judge_claims(
    figures: Sequence[Figure], results: Results, claims: Sequence[Claim] | None = None
) -> tuple[Finding, ...]:
    """Return the finding about each claim whose figure was measured; without `claims`, about all of `claims.toml`."""
    known = {figure.name: figure for figure in figures}
    chosen = read_claims() if claims is None else claims
    return tuple(JUDGES[claim.check](ClaimEvidence(claim, known, results)) for claim in chosen if claim.figure in known)
