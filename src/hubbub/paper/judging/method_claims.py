"""Judge claims about methods and settings: which is closer to the truth, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError
from hubbub.paper.claims import Along, Between, Claim, Compare, Lead
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.claim_evidence import ClaimEvidence, reporting
from hubbub.paper.judging.finding import Finding, undecided
from hubbub.paper.judging.judgement import Comparison, judged_alone, judged_with_em
from hubbub.paper.method_names import method_in_sentence
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting

METHOD_PATTERN = r"[a-z][a-z-]*(?: [\d.]+)?"
TEST_PATTERN = re.compile(
    rf"(?P<first>{METHOD_PATTERN}) (?P<sign>[<~]) (?:(?P<factor>[\d.]+) )?(?P<second>{METHOD_PATTERN}) "
    r"in (?P<distance>tv|emd)"
)
NO_SUCH_SETTING = "not measured: this run has none of the settings that the claim is about"
METHOD_NOT_TRIED = "not measured: a method of this claim was not tried in this run"


@dataclass(frozen=True)
class ClaimTest:
    """One line of a claim's tests, taken apart."""

    first: str
    second: str
    distance: str
    factor: float
    equal: bool


def parse_claim_test(text: str, claim: str) -> ClaimTest:
    """Return what a line such as "em < 0.5 inv-n in tv" says."""
    match = TEST_PATTERN.fullmatch(text)
    if match is None:
        raise SettingError(
            "a test of a claim is not understood",
            where=f"claims.toml, {claim}, tests",
            got=text,
            expected='a line such as "em < inv-n in tv", "em < 0.5 inv-n in tv" or "em ~ inv-p in emd"',
            remedy="correct the file",
        )
    return ClaimTest(
        match["first"], match["second"], match["distance"], float(match["factor"] or 1), match["sign"] == "~"
    )


def compare(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether one method is nearer to the truth than another, or as near, at every setting."""
    wanted = cast(Compare, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    tests = [parse_claim_test(text, claim.id) for text in wanted.tests]

    def build(method: str) -> list[Comparison]:
        used = [test for test in tests if method != "mle" or "em" in (test.first, test.second)]
        comparisons = []
        for test in used:
            first, second = (method if name == "em" else name for name in (test.first, test.second))
            margin = wanted.margin if test.equal else None
            comparisons += [
                Comparison(
                    evidence.short(setting, test.distance),
                    (method_in_sentence(first), method_in_sentence(second)),
                    evidence.column(setting, first, test.distance),
                    evidence.column(setting, second, test.distance),
                    margin,
                    test.factor,
                    wanted.floor,
                )
                for setting in evidence.settings
            ]
        return _all_or_none(comparisons)

    finding = _judged(claim, evidence, build, any("em" in (test.first, test.second) for test in tests))
    own = tuple(("the paper's numbers", text) for text in wanted.published)
    return Finding(claim, finding.verdict, finding.measured, own + finding.details)


def along(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether the distance of every method falls from each setting to the next."""
    wanted = cast(Along, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    rows: dict[tuple[str, str], list[Setting]] = {}
    for setting in sorted(evidence.settings, key=lambda setting: getattr(setting, wanted.along)):
        rows.setdefault((setting.truth.name, setting.mechanism), []).append(setting)
    pairs = [(later, earlier) for row in rows.values() for earlier, later in pairwise(row)]
    return _pairs(claim, evidence, pairs, wanted.methods, wanted.distances)


def between(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether every method is nearer to the truth with one mechanism than with another, all else equal."""
    wanted = cast(Between, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    pairs = []
    for better, worse in wanted.pairs:
        for setting in evidence.settings:
            for other in evidence.settings:
                alike = (setting.truth, setting.users) == (other.truth, other.users)
                kinds = (setting.mechanism, other.mechanism) == (better, worse) and setting.epsilon == other.epsilon
                if alike and (kinds or (reporting(setting), reporting(other)) == (better, worse)):
                    pairs.append((setting, other))
    return _pairs(claim, evidence, pairs, wanted.methods, wanted.distances)


def lead(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:
    """Judge whether the lead of EM, inversion's distance less EM's, is larger at small epsilons than at the others."""
    wanted = cast(Lead, claim.parameters)
    evidence = ClaimEvidence.of(claim, figures, results)
    small = [setting for setting in evidence.settings if (setting.epsilon or 0.0) < wanted.small]
    others = [setting for setting in evidence.settings if setting not in small]

    def build(method: str) -> list[Comparison]:
        comparisons = []
        for other in wanted.over:
            for distance in wanted.distances:
                comparisons += [
                    Comparison(
                        f"{method_in_sentence(method)} over {method_in_sentence(other)}, {distance.upper()}",
                        (f"lead at {setting.epsilon:g}", f"lead at {low.epsilon:g}"),
                        _lead(evidence, setting, method, other, distance),
                        _lead(evidence, low, method, other, distance),
                    )
                    for low in small
                    for setting in others
                ]
        return _all_or_none(comparisons)

    return _judged(claim, evidence, build, about_em=True)


def _lead(evidence: ClaimEvidence, setting: Setting, method: str, other: str, distance: str) -> Floats:
    """Return how much nearer to the truth a method is than another, in the runs that have both."""
    near, far = (evidence.column(setting, each, distance) for each in (method, other))
    count = min(len(near), len(far))
    return far[:count] - near[:count]


def _pairs(
    claim: Claim,
    evidence: ClaimEvidence,
    pairs: Sequence[tuple[Setting, Setting]],
    methods: Sequence[str],
    distances: Sequence[str],
) -> Finding:
    """Judge whether each method is nearer to the truth in the first setting of each pair."""

    def build(method: str) -> list[Comparison]:
        used = [name for name in methods if method != "mle" or name == "em"]
        return _all_or_none(
            [
                Comparison(
                    f"{method_in_sentence(own)}, {_truth(better)}{distance.upper()}",
                    (_distinct(better, worse), _distinct(worse, better)),
                    evidence.column(better, own, distance),
                    evidence.column(worse, own, distance),
                )
                for own in (method if name == "em" else name for name in used)
                for distance in distances
                for better, worse in pairs
            ]
        )

    return _judged(claim, evidence, build, "em" in methods)


def _distinct(setting: Setting, other: Setting) -> str:
    """Return what sets a setting apart from another."""
    return f"{setting.users:,} users" if setting.users != other.users else reporting(setting)


def _truth(setting: Setting) -> str:
    return "" if setting.truth.kind == "place" else f"{setting.truth.name}, "


def _all_or_none(comparisons: list[Comparison]) -> list[Comparison]:
    """Return all of the comparisons, or none if one lacks a column: a claim is judged as a whole."""
    return comparisons if all(len(each.first) and len(each.second) for each in comparisons) else []


def _judged(claim: Claim, evidence: ClaimEvidence, build: Callable[[str], list[Comparison]], about_em: bool) -> Finding:
    if about_em:
        finding = (
            judged_with_em(claim, build, evidence.deltas) if evidence.settings else undecided(claim, NO_SUCH_SETTING)
        )
    else:
        built = build("")
        finding = (
            judged_alone(claim, built)
            if built
            else undecided(claim, METHOD_NOT_TRIED if evidence.settings else NO_SUCH_SETTING)
        )
    stuck = _where_stuck(evidence) if about_em else ""
    return evidence.marked(replace(finding, measured=f"{finding.measured}. {stuck}") if stuck else finding)


def _where_stuck(evidence: ClaimEvidence) -> str:
    """Return where EM stops at once, with an answer that is the uniform start: such an answer is no estimate."""
    stuck: dict[str, list[str]] = {}
    for setting in evidence.settings:
        where = evidence.short(setting, "tv").removesuffix(", TV")
        for method in evidence.deltas:
            updates = evidence.column(setting, method, "iterations")
            if len(updates) and np.median(updates) <= 1:
                stuck.setdefault(where, []).append(method.removeprefix("em "))
    if not stuck:
        return ""
    places = "; ".join(f"{where} (delta {', '.join(deltas)})" for where, deltas in stuck.items())
    return f"EM stops after one update, at the uniform start, at {places}"
