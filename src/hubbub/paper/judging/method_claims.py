"""Judge claims about methods and settings: which is closer to the truth, and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError
from hubbub.core.text import plural
from hubbub.paper.claims import Parameters
from hubbub.paper.judging.claim_evidence import FAILS, HOLDS, NO_SUCH_SETTING, OPEN, ClaimEvidence, Finding
from hubbub.paper.judging.paired_comparisons import (
    AGREES,
    REVERSED,
    TIE,
    UNCLEAR,
    Judgement,
    PairedComparison,
    judge,
    with_early_stopping,
)
from hubbub.paper.judging.paired_statistics import min_runs
from hubbub.paper.settings import Setting
from hubbub.paper.wording import method_in_sentence

METHOD_PATTERN = r"[a-z][a-z-]*(?: [\d.]+)?"
TEST_PATTERN = re.compile(
    rf"(?P<first>{METHOD_PATTERN}) (?P<sign>[<~]) (?:(?P<factor>[\d.]+) )?(?P<second>{METHOD_PATTERN}) "
    r"in (?P<distance>tv|emd)"
)
TALLY_WORDS = {AGREES: "agree", REVERSED: "do not", TIE: "tied", UNCLEAR: "unclear"}
METHOD_NOT_TRIED = "not measured: a method of this claim was not tried in this run"


@dataclass(frozen=True)
class ClaimTest:
    """One line of a claim's tests, taken apart."""

    first: str
    second: str
    distance: str
    factor: float
    equal: bool

    @property
    def about_em(self) -> bool:
        """Whether one of the methods is EM, at whatever delta."""
        return "em" in (self.first, self.second)


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


def compare(evidence: ClaimEvidence) -> Finding:
    """Judge whether one method is nearer to the truth than another, or as near, at every setting."""
    wanted = evidence.parameters
    tests = [parse_claim_test(text, evidence.claim.id) for text in wanted.tests]

    def comparisons(em: str) -> Iterator[PairedComparison]:
        for test, setting in product(tests, evidence.settings):
            if em == "mle" and not test.about_em:
                continue
            first, second = (em if method == "em" else method for method in (test.first, test.second))
            yield PairedComparison(
                evidence.short(setting, test.distance),
                (method_in_sentence(first), method_in_sentence(second)),
                evidence.column(setting, first, test.distance),
                evidence.column(setting, second, test.distance),
                wanted.margin if test.equal else None,
                test.factor,
                wanted.floor,
            )

    return _judged(evidence, comparisons, about_em=any(test.about_em for test in tests))


def along(evidence: ClaimEvidence) -> Finding:
    """Judge whether the distance of every method falls from each setting to the next."""
    rows: dict[tuple[str, str], list[Setting]] = {}
    for setting in sorted(evidence.settings, key=lambda setting: getattr(setting, evidence.parameters.along)):
        rows.setdefault((setting.truth.name, setting.mechanism), []).append(setting)
    return _judged_pairs(evidence, [(later, earlier) for row in rows.values() for earlier, later in pairwise(row)])


def between(evidence: ClaimEvidence) -> Finding:
    """Judge whether every method is nearer to the truth with one mechanism than with another, all else equal."""
    pairs = []
    for kinds, better, worse in product(evidence.parameters.pairs, evidence.settings, evidence.settings):
        alike = (better.truth, better.users) == (worse.truth, worse.users)
        by_kind = (better.mechanism, worse.mechanism) == kinds and better.epsilon == worse.epsilon
        if alike and (by_kind or (better.reporting, worse.reporting) == kinds):
            pairs.append((better, worse))
    return _judged_pairs(evidence, pairs)


def lead(evidence: ClaimEvidence) -> Finding:
    """Judge whether the lead of EM, inversion's distance less EM's, is larger at small epsilons than at the others."""
    wanted = evidence.parameters
    small = [setting for setting in evidence.settings if (setting.epsilon or 0.0) < wanted.small]
    large = [setting for setting in evidence.settings if setting not in small]

    def comparisons(em: str) -> Iterator[PairedComparison]:
        for method, distance, low, high in product(wanted.over, wanted.distances, small, large):
            yield PairedComparison(
                f"{method_in_sentence(em)} over {method_in_sentence(method)}, {distance.upper()}",
                (f"lead at {high.epsilon:g}", f"lead at {low.epsilon:g}"),
                _lead(evidence, high, em, method, distance),
                _lead(evidence, low, em, method, distance),
            )

    return _judged(evidence, comparisons, about_em=True)


def _lead(evidence: ClaimEvidence, setting: Setting, near: str, far: str, distance: str) -> Floats:
    """Return how much nearer to the truth a method is than another, in the runs that have both."""
    own, others = evidence.column(setting, near, distance), evidence.column(setting, far, distance)
    count = min(len(own), len(others))
    return others[:count] - own[:count]


def _judged_pairs(evidence: ClaimEvidence, pairs: Sequence[tuple[Setting, Setting]]) -> Finding:
    """Judge whether each of the claim's methods is nearer to the truth in the first setting of each pair."""
    wanted = evidence.parameters

    def comparisons(em: str) -> Iterator[PairedComparison]:
        methods = [em if method == "em" else method for method in wanted.methods if em != "mle" or method == "em"]
        for method, distance, (better, worse) in product(methods, wanted.distances, pairs):
            truth = "" if better.truth.kind == "place" else f"{better.truth.name}, "
            by_users = better.users != worse.users
            yield PairedComparison(
                f"{method_in_sentence(method)}, {truth}{distance.upper()}",
                (f"{better.users:,} users", f"{worse.users:,} users")
                if by_users
                else (better.reporting, worse.reporting),
                evidence.column(better, method, distance),
                evidence.column(worse, method, distance),
            )

    return _judged(evidence, comparisons, about_em="em" in wanted.methods)


def _judged(
    evidence: ClaimEvidence, comparisons: Callable[[str], Iterable[PairedComparison]], *, about_em: bool
) -> Finding:
    """Return the finding of comparisons; a claim about EM is judged at every delta, and at the exact maximum.

    `comparisons` yields them for a method in EM's place; for the exact maximum, it leaves out those without EM.
    """
    if not evidence.settings:
        return evidence.finding(OPEN, NO_SUCH_SETTING)
    wanted = evidence.parameters
    judgements: dict[str, Judgement] = {}
    for em in [*evidence.deltas, "mle"] if about_em else [""]:
        built = list(comparisons(em))
        if built and all(len(each.first) and len(each.second) for each in built):  # a claim is judged as a whole
            judgements[em] = judge(built, wanted)
    if about_em:
        return _judged_with_em(evidence, judgements)
    if not judgements:
        return evidence.finding(OPEN, METHOD_NOT_TRIED)
    judgement = judgements[""]
    few = _too_few(judgement, wanted)
    measured = f"{judgement.sentence}; {few}" if few else judgement.sentence
    return evidence.finding(judgement.verdict, measured, [_rule(wanted), *judgement.details])


def _judged_with_em(evidence: ClaimEvidence, judgements: Mapping[str, Judgement]) -> Finding:
    """Return the finding of a claim about EM: stopped where it suits the claim best, elsewhere, and at the maximum."""
    wanted = evidence.parameters
    details = [
        (method_in_sentence(method), f"{judgement.verdict}, over {plural(judgement.runs, 'run')}: {_tally(judgement)}")
        for method, judgement in judgements.items()
    ]
    stuck = _where_stuck(evidence)
    best = _best(judgements, f"em {wanted.delta:g}")
    absent = [method_in_sentence(method) for method in (best, "mle") if method not in judgements]
    if absent:
        return evidence.finding(OPEN, ". ".join([f"{' and '.join(absent)} was not measured", *stuck]), details)
    stopped, maximum = judgements[best], judgements["mle"]
    leaning = maximum.verdict == OPEN and maximum.leans(wanted.level)
    verdict_of_maximum = "agrees in every median, though not beyond chance" if leaning else maximum.verdict
    measured = [
        f"{method_in_sentence(best)}: {stopped.verdict}, {stopped.sentence}",
        f"The exact maximum: {verdict_of_maximum}, {_too_few(maximum, wanted) or maximum.sentence}",
    ]
    for verdict in (HOLDS, FAILS, OPEN):
        others = [name for name, each in judgements.items() if each.verdict == verdict and name not in (best, "mle")]
        if others:
            measured.append(f"EM with delta {', '.join(name.removeprefix('em ') for name in others)}: {verdict}")
    verdict = with_early_stopping(stopped.verdict, HOLDS if leaning else maximum.verdict)
    details = [_rule(wanted), *details, *stopped.details, *maximum.details]
    return evidence.finding(verdict, ". ".join([*measured, *stuck]), details)


def _best(judgements: Mapping[str, Judgement], own: str) -> str:
    """Return the delta with the best verdict; among equals the claim's own."""
    rank = (HOLDS, OPEN, FAILS)
    stopped = [own, *(method for method in judgements if method not in (own, "mle"))]
    measured = [method for method in stopped if method in judgements]
    return min(measured, key=lambda method: rank.index(judgements[method].verdict), default=own)


def _tally(judgement: Judgement) -> str:
    counts = [(word, len(judgement.which(outcome))) for outcome, word in TALLY_WORDS.items()]
    return ", ".join(f"{count} {word}" for word, count in counts if count)


def _too_few(judgement: Judgement, wanted: Parameters) -> str:
    least = min_runs(wanted.level)
    if judgement.runs >= least:
        return ""
    return f"{plural(judgement.runs, 'run')}, too few to decide at {wanted.level:.0%} (at least {least})"


def _rule(wanted: Parameters) -> tuple[str, str]:
    return "level", f"{wanted.level:.0%} for the claim as a whole; medians within {wanted.tie:.0%} may be a tie"


def _where_stuck(evidence: ClaimEvidence) -> list[str]:
    """Return a sentence on where EM stops at once, if it does: the uniform start is no estimate."""
    stuck: dict[str, list[str]] = {}
    for setting, method in product(evidence.settings, evidence.deltas):
        updates = evidence.column(setting, method, "iterations")
        if len(updates) and np.median(updates) <= 1:
            where = evidence.short(setting, "tv").removesuffix(", TV")
            stuck.setdefault(where, []).append(method.removeprefix("em "))
    places = "; ".join(f"{where} (delta {', '.join(deltas)})" for where, deltas in stuck.items())
    return [f"EM stops after one update, at the uniform start, at {places}"] if stuck else []


CHECKS = (compare, along, between, lead)
