"""Simulate the studies that the explorer of the documentation shows, and write its tables.

Run from the repository's root: python scripts/make_explorer_tables.py [question ...]

Each setting (what is asked, mechanism, epsilon, users) is simulated a few times: people are drawn from the truth, their
values are privatized, and the reports are estimated. A study depends on its setting and its number alone, so that a run
that was stopped goes on where it was (build/explorer.jsonl keeps what is done), and a single study can be done again.
Where a report is a row of bits too long to enumerate, the collector keeps how often each bit was set, no more.

Tables are scripts, not JSON: a page that was opened from the disk may load a script, but not fetch a file.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hubbub as hb
from hubbub.core.arrays import Floats
from hubbub.domains import Domain
from hubbub.intake.study_entries import MECHANISMS
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.planning.candidates import candidates_from
from hubbub.planning.pattern_simulation import PatternTables
from hubbub.planning.support_simulation import draw_support
from hubbub.planning.truths import truths_from
from hubbub.reporting.noisy_shares import noisy_shares

TARGET = Path("docs/_static/explorer")
KEPT = Path("build/explorer.jsonl")
USERS = (100, 1_000, 10_000, 100_000, 1_000_000)
PLAIN = (0.5, 1.0, 2.0, 4.0)
SHOWN_DRAWS = 3
METHODS = ("auto", "inv-p")
COUNTED = "reports"  # the noisy counts, beside the methods
NOTHING = "equal shares"
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LEVELS = len(DIGITS) ** 2 - 1  # shares are written in two digits each, in parts of the largest
SEED = 25


@dataclass(frozen=True)
class Offer:
    """A kind of mechanism, with the epsilons to choose from: per unit of distance where the kind measures it."""

    kind: str
    title: str
    epsilons: Sequence[float] = PLAIN


# The first mechanism of a question is the one that it opens with, and that the page's tables have.
BITS = (Offer("rappor", "RAPPOR"), Offer("optimized-unary", "optimized unary encoding (OUE)"))
ANSWER = Offer("randomized-response", "randomized response")


@dataclass(frozen=True)
class Question:
    """What people are asked: a domain, the truth that is assumed, and what they may answer with."""

    key: str
    title: str
    chart: str  # bars, line or map
    domain: Domain
    study: str  # the domain in a study file
    shape: str  # of the truth, as in `hubbub plan --truth`
    offers: tuple[Offer, ...]
    runs: int
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def truth(self) -> Floats:
        """The shares that people are drawn from."""
        return truths_from(self.shape, self.domain)[0].probabilities


@dataclass(frozen=True)
class Setting:
    """One choice in the explorer."""

    question: Question
    offer: Offer
    epsilon: float
    users: int

    @property
    def key(self) -> str:
        """The setting in a table of its question."""
        return f"{self.offer.kind} {self.epsilon:g} {self.users}"

    @property
    def mechanism(self) -> hb.Mechanism:
        """The mechanism as a study file would build it."""
        built: hb.Mechanism = MECHANISMS[self.offer.kind](self.question.domain, epsilon=self.epsilon)  # type: ignore[call-arg]
        return built


def _labels(count: int) -> list[str]:
    return [f"item-{number}" for number in range(1, count + 1)]


def _categories(labels: Sequence[str]) -> str:
    return f'kind = "categories"\nlabels = {json.dumps(list(labels))}'


YES_NO, EIGHT, HUNDRED = ["no", "yes"], list("ABCDEFGH"), _labels(100)
QUESTIONS = (
    Question("yes-no", "Yes or no", "bars", hb.Categories(YES_NO), _categories(YES_NO), "zipf", (ANSWER, *BITS), 20),
    Question(
        "eight", "One of 8 categories", "bars", hb.Categories(EIGHT), _categories(EIGHT), "zipf", (ANSWER, *BITS), 20
    ),
    Question(
        key="hundred",
        title="One of 100 categories",
        chart="line",
        domain=hb.Categories(HUNDRED),
        study=_categories(HUNDRED),
        shape="zipf",
        offers=(BITS[1], BITS[0], ANSWER),
        runs=7,
    ),
    Question(
        key="line",
        title="A number from 0 to 99",
        chart="line",
        domain=hb.Integers(0, 99),
        study='kind = "integers"\nlow = 0\nhigh = 99',
        shape="bells",
        offers=(Offer("truncated-geometric", "truncated geometric noise", (0.05, 0.1, 0.2, 0.5)), ANSWER, BITS[1]),
        runs=7,
    ),
    Question(
        key="map",
        title="A place on a map of 12 x 8 cells",
        chart="map",
        domain=hb.Grid(12, 8, cell=0.5),
        study='kind = "grid"\ncolumns = 12\nrows = 8\ncell = 0.5\nunit = "km"',
        shape="bells",
        offers=(Offer("planar-geometric", "planar geometric noise"), ANSWER, BITS[1]),
        runs=7,
        extra={"columns": 12, "rows": 8},
    ),
)


def settings(question: Question) -> Iterator[Setting]:
    """Yield all settings of a question."""
    for offer in question.offers:
        for epsilon in offer.epsilons:
            for users in USERS:
                yield Setting(question, offer, epsilon, users)


# -- one study ---------------------------------------------------------------------------------------------


def draw(setting: Setting, number: int) -> hb.Reports:
    """Return the reports of one simulated study."""
    words = f"{SEED} {setting.question.key} {setting.key} {number}"
    rng = np.random.default_rng(list(hashlib.sha256(words.encode()).digest()))
    mechanism = setting.mechanism
    (candidate,) = candidates_from(mechanism)
    tables = PatternTables.of(candidate)
    if tables is not None:
        return tables.reports(tables.draw(setting.users, setting.question.truth, 1, rng)[0])
    if not isinstance(mechanism, UnaryEncoding):
        raise TypeError(f"{setting.offer.kind} has too many outputs, and they are not bits")
    ones = draw_support(mechanism, setting.users, setting.question.truth, 1, rng)[0]
    return hb.Reports.from_bit_counts(mechanism, ones, setting.users)


def study(setting: Setting, number: int) -> dict[str, Any]:
    """Simulate one study: its errors by method, and for those that are shown the shares."""
    reports = draw(setting, number)
    counted = noisy_shares(reports).shares
    assert counted is not None  # noqa: S101  # all kinds here answer with values or bits
    shares = {COUNTED: counted} | {method: hb.estimate(reports, method).probabilities for method in METHODS}
    done: dict[str, Any] = {
        name: [float(f"{distance:.4g}") for distance in _errors(theta, setting.question)]
        for name, theta in shares.items()
    }
    if number < SHOWN_DRAWS:
        done["shares"] = {name: encoded(theta) for name, theta in shares.items()}
    return done


def _errors(theta: Floats, question: Question) -> list[float]:
    """Return the total variation and, where values have distances, the earth mover's distance."""
    apart = [hb.total_variation(theta, question.truth)]
    if question.domain.unit is not None:
        apart.append(hb.earth_mover_distance(theta, question.truth, question.domain))
    return apart


def encoded(shares: Floats) -> list[Any]:
    """Return the largest share, and all shares in parts of it, two digits each."""
    largest = float(f"{shares.max():.4g}")
    numbers = np.clip(np.rint(shares / largest * LEVELS), 0, LEVELS).astype(int)
    return [largest, "".join(DIGITS[number // 64] + DIGITS[number % 64] for number in numbers)]


def decoded(written: Sequence[Any]) -> Floats:
    """Return shares that `encoded` wrote; the page does the same."""
    largest, text = written
    numbers = [64 * DIGITS.index(text[at]) + DIGITS.index(text[at + 1]) for at in range(0, len(text), 2)]
    return np.asarray(np.array(numbers) * (largest / LEVELS))


# -- all studies -------------------------------------------------------------------------------------------


def _name(setting: Setting, number: int) -> str:
    return f"{setting.question.key} {setting.key} {number}"


def _known() -> dict[str, dict[str, Any]]:
    if not KEPT.exists():
        return {}
    rows = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {row["study"]: row["done"] for row in rows}


def simulate(questions: Sequence[Question]) -> dict[str, dict[str, Any]]:
    """Simulate what is not yet known, the first study of every setting first, and show how far it is."""
    known = _known()
    wanted = [
        (setting, number)
        for number in range(max(question.runs for question in questions))
        for question in questions
        if number < question.runs
        for setting in settings(question)
        if _name(setting, number) not in known
    ]
    KEPT.parent.mkdir(exist_ok=True)
    begun = time.process_time()
    with KEPT.open("a", encoding="utf-8") as file:
        for count, (setting, number) in enumerate(wanted, start=1):
            name = _name(setting, number)
            known[name] = study(setting, number)
            file.write(json.dumps({"study": name, "done": known[name]}) + "\n")
            file.flush()
            if count % 20 == 0 or count == len(wanted):
                print(f"{count} of {len(wanted)} studies, {time.process_time() - begun:.0f} s of one core", flush=True)
    return known


# -- tables ------------------------------------------------------------------------------------------------


def table(question: Question, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the table of one question, as the page reads it."""
    equal = np.full(len(question.domain), 1.0 / len(question.domain))
    return {
        "key": question.key,
        "title": question.title,
        "chart": question.chart,
        "labels": [str(label) for label in question.domain.labels],
        "unit": question.domain.unit,
        "diameter": question.domain.diameter if question.domain.unit is not None else None,
        "study": question.study,
        "shape": question.shape,
        "runs": question.runs,
        "users": list(USERS),
        "truth": encoded(question.truth),
        "nothing": [float(f"{error:.3g}") for error in _errors(equal, question)],
        "mechanisms": [
            {
                "kind": offer.kind,
                "title": offer.title,
                "metric": MECHANISMS[offer.kind].metric,
                "epsilons": list(offer.epsilons),
            }
            for offer in question.offers
        ],
        "settings": {setting.key: _setting(setting, known) for setting in settings(question)},
        **question.extra,
    }


def _setting(setting: Setting, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the errors of a setting (mean, smallest, largest, for each distance) and the studies that are shown."""
    done = [known[_name(setting, number)] for number in range(setting.question.runs)]
    summary: dict[str, Any] = {
        name: [
            [float(f"{number:.3g}") for number in (np.mean(errors), min(errors), max(errors))]
            for errors in zip(*(each[name] for each in done), strict=True)
        ]
        for name in (*METHODS, COUNTED)
    }
    summary["draws"] = [[each["shares"][name] for name in (COUNTED, *METHODS)] for each in done[:SHOWN_DRAWS]]
    return summary


def script(content: dict[str, Any]) -> str:
    """Return a table as a script that hands it to the explorer."""
    return f"hubbubExplorer.receive({json.dumps(content, separators=(',', ':'))});\n"


def read_table(key: str, folder: Path = TARGET) -> dict[str, Any]:
    """Return a table that was written."""
    text = (folder / f"{key}.js").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text.removeprefix("hubbubExplorer.receive(").removesuffix(");\n"))
    return content


def main() -> None:
    """Simulate, and write one table for each question that was named, or for all."""
    named = sys.argv[1:] or [question.key for question in QUESTIONS]
    questions = [question for question in QUESTIONS if question.key in named]
    if len(questions) != len(named):
        sys.exit(f"questions are {', '.join(question.key for question in QUESTIONS)}; got {', '.join(named)}")
    known = simulate(questions)
    TARGET.mkdir(parents=True, exist_ok=True)
    for question in questions:
        path = TARGET / f"{question.key}.js"
        path.write_text(script(table(question, known)), encoding="utf-8")
        print(f"written: {path}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
