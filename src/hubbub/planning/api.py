"""`plan`: which mechanism, which epsilon, how many users, asked before anybody reports anything."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hubbub.core import validation
from hubbub.core.arrays import Positions
from hubbub.core.errors import SettingError
from hubbub.core.portable import Portable
from hubbub.core.progress import Progress, finish
from hubbub.domains import Domain
from hubbub.intake.study import Study
from hubbub.planning.answers import needing, simulating, simulating_each
from hubbub.planning.candidates import Candidate, candidates_from
from hubbub.planning.caveats import assumed, notes
from hubbub.planning.explanation import main_sentences
from hubbub.planning.parallel import in_part
from hubbub.planning.plan_json import document_of
from hubbub.planning.plan_tables import COLUMNS, ShownColumn, as_lines, rows_of, tables_of
from hubbub.planning.plots import draw_plan
from hubbub.planning.question import USERS, Question, key_of
from hubbub.planning.result import Needed, SettingResult
from hubbub.planning.truths import AssumedTruth, truths_from
from hubbub.planning.validation import check_meaning, check_method, check_runs, check_target, check_users, check_values
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.sampling import Randomness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Plan(Portable):
    """What to expect of a study, or what it takes: `settings` are errors, `needed` is what reaches the target.

    `sentence` says it in plain words, `explain` with all notes; the same as a table (`to_frame`), as JSON and as a
    picture.
    """

    question: Question
    settings: tuple[SettingResult, ...]
    needed: tuple[Needed, ...]
    truths: tuple[AssumedTruth, ...]

    @property
    def method(self) -> str:
        """How reports will be estimated."""
        return self.question.method

    @property
    def distance(self) -> str:
        """The distance that `target` is about: "tv" or "emd"."""
        return self.question.distance

    @property
    def runs(self) -> int | None:
        """How many studies were asked for; None: as many as it took, which each setting says."""
        return self.question.runs

    @property
    def seed(self) -> int | str:
        """What decides the simulated studies."""
        return self.question.seed

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """The answer in plain words: a sentence for each privacy, or for the first and the last of many."""
        return tuple(main_sentences(self.question, self.settings, self.needed))

    @cached_property
    def assumed(self) -> str:
        """What the answer rests on."""
        return assumed(self.question, self.settings)

    @property
    def sentence(self) -> str:
        """The answer in plain words, and what it rests on."""
        return " ".join([*self.answers, self.assumed])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know besides."""
        return tuple(notes(self.question, self.settings, self.needed))

    @property
    def tables(self) -> list[ShownColumn]:
        """The tables that people read, as texts."""
        return tables_of(self.question, self.settings, self.needed)

    def explain(self) -> str:
        """Return the answer and all notes, a paragraph each."""
        return "\n".join([self.sentence, *self.notes])

    def facts(self) -> list[Fact]:
        """Return the answer, what was assumed and all notes, labelled."""
        return [
            Fact("answer", "\n".join(self.answers)),
            Fact("assumed", self.assumed),
            *(Fact("note", note) for note in self.notes),
        ]

    def __str__(self) -> str:
        return "\n\n".join([*(as_lines(table) for table in self.tables), self.explain()])

    def __repr__(self) -> str:
        return f"Plan({self.question.looks_for}, {len(self.settings)} settings, {len(self.needed)} needed)"

    def _repr_html_(self) -> str:
        shown = "".join(
            facts_html([Fact(table.title, "")]) + table_html(table.header, table.rows) for table in self.tables
        )
        return shown + facts_html(self.facts())

    def rows(self) -> list[dict[str, Any]]:
        """Return the whole table, a mapping for each line; what is not known is None."""
        return rows_of(self.settings, self.needed)

    def to_frame(self) -> pd.DataFrame:
        """Return the whole table: each setting with its errors, and what was looked for with its range."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes; numbers that are not finite are None."""
        return document_of(self.question, self.settings, self.needed, self.sentence, self.notes)

    def to_json(self) -> str:
        """Return one JSON document."""
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw errors against users or epsilon, or users needed, with bands of simulation error; return the axes."""
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(layout="constrained")
        draw_plan(self.question, self.settings, self.needed, axes)
        return axes


def plan(
    mechanisms: object,
    *,
    users: object = None,
    target: float | None = None,
    truth: object = "uniform",
    distance: str = "tv",
    reports_per_user: object = 1,
    method: str = "auto",
    runs: int | None = None,
    rng: Randomness = None,
    domain: Domain | None = None,
    epsilon: object = None,
    radius: float | None = None,
    confidence: float = 0.5,
    level: float = 0.95,
    values: object = None,
) -> Plan:
    """Say how large the error will be, how many users it takes, or which epsilon, by simulated studies.

    `mechanisms`: one, a list, {name: mechanism}, a study, a mixture across users [(mechanism, share), ...], or kinds:
    classes or names as in study files, together with `domain` and `epsilon` (one or several). That epsilon is the plain
    budget of a user, so that kinds are compared at equal privacy: `reports_per_user` reports share it, and where a
    kind's epsilon is per unit of distance, it is divided by `radius` (left out: the domain's diameter). Mechanisms keep
    their own epsilon for each report.

    * ``users=`` one or several: the errors to expect.
    * ``target=``: the users that each way to report needs for a median error of `target`, or for one that the share
      `confidence` of studies stays below.
    * both: the epsilon it takes, and the errors.

    `distance` is "tv" (total variation) or "emd" (earth mover's distance, in the domain's unit). `truth` is assumed:
    the name of a shape ("uniform", "bell", "bells", "zipf", "block", "dominant"), shares in the order of
    ``domain.labels``, {value: count}, an estimate, a list of these of which the worst counts, or "worst" for all
    shapes. `method` is that of `estimate`, `level` that of the intervals whose width is told, for `values` (a list, or
    "all"; left out, all of at most 32, and of more the three with the largest, the median and the smallest share).
    ``runs=None`` simulates until the median is known well enough; ``rng=None`` is a fixed, recorded seed.

    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> answer = hb.plan(coin, users=1000, truth={"yes": 30, "no": 70}, method="inv-p", runs=100)
    >>> 0.01 < answer.settings[0].tv.median < 0.04
    True
    """
    return finish(
        planning_for(
            mechanisms,
            users=users,
            target=target,
            truth=truth,
            distance=distance,
            reports_per_user=reports_per_user,
            method=method,
            runs=runs,
            rng=rng,
            domain=domain,
            epsilon=epsilon,
            radius=radius,
            confidence=confidence,
            level=level,
            values=values,
        )
    )


def planning_for(
    mechanisms: object,
    *,
    users: object = None,
    target: float | None = None,
    truth: object = "uniform",
    distance: str = "tv",
    reports_per_user: object = 1,
    method: str = "auto",
    runs: int | None = None,
    rng: Randomness = None,
    domain: Domain | None = None,
    epsilon: object = None,
    radius: float | None = None,
    confidence: float = 0.5,
    level: float = 0.95,
    values: object = None,
) -> Generator[Progress, None, Plan]:
    """Do what `plan` does, yielding progress on the way; what is wrong is told at once."""
    counts = check_users(users)
    aim = check_target(target, distance)
    if not counts and aim is None:
        raise SettingError(
            "neither users nor a target is given",
            where="plan(users=, target=)",
            got="neither",
            expected="users= for the error to expect, target= for the users it takes, or both for the epsilon",
            remedy="pass users=10_000, or target=0.05",
        )
    check_method(method)
    share = validation.share(confidence, "confidence", "plan")
    level = validation.level(level, "plan")
    runs = None if runs is None else check_runs(runs)
    _, seed = validation.generator(rng, "plan")
    if isinstance(mechanisms, Study):
        domain = mechanisms.domain if domain is None else domain  # another one is refused with the mechanisms
        mechanisms = dict(mechanisms.mechanisms)
    candidates = candidates_from(
        mechanisms, domain=domain, epsilon=epsilon, radius=radius, reports_per_user=reports_per_user
    )
    over = candidates[0].parts[0][0].domain
    if distance == "emd" and over.unit is None:
        raise SettingError(
            "these values have no distances",
            where="plan(distance=)",
            got="'emd'",
            expected="'tv': the earth mover's distance needs values with places",
            remedy="leave distance out",
        )
    check_meaning(candidates, radius=radius, confidence=share, target=aim)
    truths = truths_from(truth, over)
    question = Question(
        users=counts,
        target=aim,
        truths=tuple(one.name for one in truths),
        method=method,
        distance=distance,
        confidence=share,
        level=level,
        runs=runs,
        radius=radius,
        unit=over.unit,
        seed=seed,
    )
    return _planning(question, candidates, truths, seed if rng is None else rng, check_values(values, over))


def _planning(
    question: Question,
    candidates: Sequence[Candidate],
    truths: Sequence[AssumedTruth],
    rng: Any,
    places: Positions | None,
) -> Generator[Progress, None, Plan]:
    common: dict[str, Any] = {
        "method": question.method,
        "distance": question.distance,
        "runs": question.runs,
        "rng": rng,
    }
    needed: list[Needed] = []
    searches = [] if question.target is None else list(question.users or (None,))
    parts = len(searches) + 1
    for number, count in enumerate(searches):
        assert question.target is not None  # noqa: S101  # otherwise there are no searches
        search = needing(candidates, question.target, truths, users=count, confidence=question.confidence, **common)
        needed += yield from in_part(search, number, parts)
    if question.looks_for == USERS:
        # The error at the number that was found, so that nine studies of ten and the intervals can be told too.
        by_key = {(one.name, one.epsilon, one.reports_per_user): one for one in candidates}
        by_name = {one.name: one for one in truths}
        asked = [
            (by_key[key_of(one)], math.ceil(one.value), by_name[one.truth]) for one in needed if one.value is not None
        ]
        last = simulating_each(asked, level=question.level, places=places, **common)
    else:
        last = simulating(candidates, question.users, truths, level=question.level, places=places, **common)
    settings = yield from in_part(last, parts - 1, parts)
    return Plan(question, settings, tuple(needed), tuple(truths))
