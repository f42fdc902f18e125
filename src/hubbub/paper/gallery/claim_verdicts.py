"""The verdicts on the paper's claims: how each is shown, and which findings the gallery can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import plural
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging import Finding


@dataclass(frozen=True)
class ClaimVerdict:
    """How a verdict is shown: by a mark and a word, never by its colour alone."""

    style: str  # its class in gallery.css
    mark: str  # the symbol of the template: mark-...
    plural: str  # what several such claims do
    meaning: str


VERDICTS: Mapping[str, ClaimVerdict] = {
    "holds": ClaimVerdict("holds", "good", "hold", "What we measured agrees with it."),
    "holds only with early stopping": ClaimVerdict(
        "early",
        "early",
        "hold only with early stopping",
        "True of EM as long as it is stopped early, but not of the maximum-likelihood answer.",
    ),
    "does not hold": ClaimVerdict("fails", "bad", "do not hold", "What we measured contradicts it."),
    "not decided": ClaimVerdict("open", "unknown", "not decided", "Too few runs to tell, or nothing to compare with."),
}


def check_findings(findings: Sequence[Finding], figures: Sequence[Figure]) -> None:
    """Refuse findings that the page could not show: nothing may be left out silently."""
    names = [figure.name for figure in figures]
    for finding in findings:
        for what, value, allowed in (
            ("no such verdict", finding.verdict, list(VERDICTS)),
            ("the figure of a claim is not on the page", finding.claim.figure, names),
        ):
            if value not in allowed:
                raise SettingError(
                    what,
                    where=f"gallery, claim {finding.claim.id}",
                    got=shorten(value),
                    expected=", ".join(allowed) or "no claims, because there are no figures",
                    remedy="pass the figures whose claims were checked, and these verdicts only",
                )


def origin_of_claims(findings: Sequence[Finding]) -> str:
    """Return how many claims are the paper's, and how many our own."""
    ours = sum(finding.claim.ours for finding in findings)
    if not findings:
        return "No claim belongs to these figures."
    if ours == len(findings):
        return "All of them are our own, none the paper's."
    if ours == 0:
        return "All of them are claims of the paper."
    return f"{plural(len(findings) - ours, 'claim')} of the paper, {ours} of our own."
