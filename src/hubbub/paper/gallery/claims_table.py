"""The claims on the page: counts of verdicts, the table, and the list beside each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubbub.core.errors import SettingError, shorten
from hubbub.paper.claims import Claim
from hubbub.paper.figure_specs import Figure
from hubbub.paper.gallery.gallery_text import address, anchor, text
from hubbub.paper.judging import Finding
from hubbub.paper.paper_references import printed_place


@dataclass(frozen=True)
class ClaimVerdict:
    """How a verdict is shown: never by its colour alone."""

    style: str  # its class in page.css, and the name of its mark in page.html
    many: str  # what a number of such claims do
    means: str


VERDICTS: Mapping[str, ClaimVerdict] = {
    "holds": ClaimVerdict("holds", "hold", "What we measured agrees with it."),
    "holds only with early stopping": ClaimVerdict(
        "early", "hold only with early stopping", "True of EM while it is stopped early, not of the likeliest answer."
    ),
    "does not hold": ClaimVerdict("fails", "do not hold", "What we measured contradicts it."),
    "not decided": ClaimVerdict("open", "not decided", "Too few runs to tell, or nothing here to compare with."),
}


def checked(findings: Sequence[Finding], figures: Sequence[Figure]) -> None:
    """Refuse findings that the page could not show: nothing may be left out silently."""
    names = [figure.name for figure in figures]
    for finding in findings:
        for what, got, known in (
            ("no such verdict", finding.verdict, list(VERDICTS)),
            ("the figure of a claim is not on the page", finding.claim.figure, names),
        ):
            if got not in known:
                raise SettingError(
                    what,
                    where=f"gallery, claim {finding.claim.id}",
                    got=shorten(got),
                    expected=", ".join(known) or "no claims at all where there are no figures",
                    remedy="give the gallery the figures whose claims were checked, and verdicts among these",
                )


def badge(verdict: str) -> str:
    """Return a verdict as symbol, word and colour."""
    style = VERDICTS[verdict].style
    mark = f'<svg class="mark" aria-hidden="true"><use href="#mark-{style}"/></svg>'
    return f'<span class="badge {style}">{mark}<span>{text(verdict)}</span></span>'


def counts(findings: Sequence[Finding]) -> str:
    """Return how often each verdict was reached. Each count narrows the table to its claims, by CSS alone."""
    tiles = [_tile("all", len(findings), "claims checked", _whose(findings), chosen=True)]
    for name, verdict in VERDICTS.items():
        number = sum(finding.verdict == name for finding in findings)
        said = name if number == 1 else verdict.many
        tiles.append(_tile(verdict.style, number, said, verdict.means))
    return "\n".join(tiles)


def _whose(findings: Sequence[Finding]) -> str:
    """Return whose claims were checked."""
    ours = sum(finding.claim.ours for finding in findings)
    if not findings:
        return "No claim belongs to these figures."
    if ours == len(findings):
        return "None of them is a claim of the paper: they are our own."
    if ours == 0:
        return "All of them are claims of the paper."
    papers = len(findings) - ours
    return f"{papers} {'claim' if papers == 1 else 'claims'} of the paper, {ours} of our own."


def table(findings: Sequence[Finding], figures: Sequence[Figure]) -> str:
    """Return the rows of the table of claims, in their order."""
    by_name = {figure.name: figure for figure in figures}
    if not findings:
        return '<tr role="row"><td role="cell" colspan="4">No claim belongs to these figures.</td></tr>'
    groups = [[f for f in findings if f.claim.ours == ours] for ours in (False, True)]
    rows = [[_row(finding, by_name[finding.claim.figure]) for finding in group] for group in groups]
    if rows[1]:
        rows[1].insert(
            0, '<tr role="row" class="group"><th role="rowheader" colspan="4">Beyond the paper: ours</th></tr>'
        )
    return "\n".join(row for group in rows for row in group)


def verdicts_of(figure: Figure, findings: Sequence[Finding]) -> str:
    """Return the verdicts on one figure's claims, each with a link to its row."""
    own = [finding for finding in findings if finding.claim.figure == figure.name]
    if not own:
        return ""
    items = "\n".join(
        f'<li>{badge(finding.verdict)} <a href="#{anchor("claim", finding.claim.id)}">{text(finding.claim.says)}</a>'
        f" <span>{text(finding.measured)}</span></li>"
        for finding in own
    )
    return f'<h4>{"Its claim" if len(own) == 1 else "Its claims"}</h4>\n<ul class="own">\n{items}\n</ul>'


def _tile(style: str, number: int, said: str, means: str, *, chosen: bool = False) -> str:
    mark = "" if style == "all" else f'<svg class="mark" aria-hidden="true"><use href="#mark-{style}"/></svg>'
    return (
        f'<label class="tile {style}"><input type="radio" name="verdict" id="only-{style}"'
        f"{' checked' if chosen else ''}>"
        f'<span class="count">{mark}{number}</span> <span class="said">{text(said)}</span>'
        f' <span class="means">{text(means)}</span></label>'
    )


def _row(finding: Finding, figure: Figure) -> str:
    claim = finding.claim
    picture = address("figures", f"{figure.name}.png")
    return f"""<tr role="row" class="claim {VERDICTS[finding.verdict].style}" id="{anchor("claim", claim.id)}">
<th role="rowheader" scope="row">{text(claim.says)} <span class="where">{text(_where(claim))}</span></th>
<td role="cell" data-head="We measured">{text(finding.measured)}{_details(finding)}</td>
<td role="cell" data-head="Verdict">{badge(finding.verdict)}</td>
<td role="cell" data-head="Figure"><a class="thumb" href="#{anchor("figure", figure.name)}">\
<img src="{picture}" alt=""><span>{text(figure.title)}</span></a></td>
</tr>"""


def _where(claim: Claim) -> str:
    """Return where a claim stands in the paper, as the beginning of a line."""
    said = printed_place(claim.where)
    return said[:1].upper() + said[1:]


def _details(finding: Finding) -> str:
    if not finding.details:
        return ""
    pairs = "\n".join(f"<div><dt>{text(name)}</dt><dd>{text(said)}</dd></div>" for name, said in finding.details)
    number = len(finding.details)
    return f"""
<details><summary>{number} {"detail" if number == 1 else "details"}</summary>
<dl class="details">
{pairs}
</dl></details>"""
