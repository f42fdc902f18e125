"""`Plan`, the result of `plan`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hubbub.core.serialization import Portable
from hubbub.planning.answers import Needed, Question, SettingResult
from hubbub.planning.plan_data import COLUMNS, plan_document, plan_rows
from hubbub.planning.plan_plot import draw_plan
from hubbub.planning.plan_sentences import answer_sentences, assumption_sentence, plan_notes
from hubbub.planning.plan_tables import TextTable, plan_tables
from hubbub.planning.truths import AssumedTruth
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Plan(Portable):
    """The errors to expect of a study, the users or epsilon that a target takes, or the power to detect a difference.

    `sentence` is the answer in plain words and `explain` adds all notes; `to_frame`, `to_json` and `plot` give the same
    as a table, a JSON document and a picture.

    Attributes
    ----------
    question : Question
        What was asked: users, target, truths, method, distance and all other keywords.
    settings : tuple of SettingResult
        The error to expect for each candidate and number of users. Of several truths this is the worst; the results
        for the others are in `others`.
    needed : tuple of Needed
        What was looked for: the users that each candidate needs to reach the target or to detect the difference; with
        `users` the epsilon it needs, or its power to detect the difference. Empty without a target or a difference.
    truths : tuple of AssumedTruth
        The distributions that were assumed.

    Examples
    --------
    >>> import hubbub as hb
    >>> kinds = ["randomized-response", "optimized-unary"]
    >>> result = hb.plan(kinds, domain=hb.Categories(["yes", "no"]), epsilon=1.0, difference=0.05)
    >>> print(result.to_frame()[["candidate", "epsilon", "users"]])
                 candidate  epsilon    users
    0  randomized-response      1.0   7343.0
    1      optimized-unary      1.0  14686.0
    """

    question: Question
    settings: tuple[SettingResult, ...]
    needed: tuple[Needed, ...]
    truths: tuple[AssumedTruth, ...]

    @property
    def method(self) -> str:
        """The method of `estimate` that was simulated."""
        return self.question.method

    @property
    def distance(self) -> str:
        """The distance of the errors and the target: "tv" or "emd"."""
        return self.question.distance

    @property
    def runs(self) -> int | None:
        """The number of simulated studies per error; None: as many as it took, see each setting."""
        return self.question.runs

    @property
    def seed(self) -> int | str:
        """The seed of the simulated studies, or a note that the caller passed a generator."""
        return self.question.seed

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """The answer in plain words: one sentence for each epsilon, or for the first and the last of many."""
        return tuple(answer_sentences(self.question, self.settings, self.needed))

    @cached_property
    def assumed(self) -> str:
        """What the answer assumes."""
        return assumption_sentence(self.question, self.settings)

    @property
    def sentence(self) -> str:
        """The answer in plain words, and what it assumes."""
        return " ".join([*self.answers, self.assumed])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know besides, the most important first."""
        return tuple(plan_notes(self.question, self.settings, self.needed))

    @property
    def tables(self) -> list[TextTable]:
        """The tables that people read."""
        return plan_tables(self.question, self.settings, self.needed)

    def explain(self) -> str:
        """Return the answer and all notes.

        Returns
        -------
        str
            One paragraph each.
        """
        return "\n".join([self.sentence, *self.notes])

    def facts(self) -> list[Fact]:
        """Return the answer, its assumptions and all notes, as labels with texts."""
        return [
            Fact("answer", "\n".join(self.answers)),
            Fact("assumed", self.assumed),
            *(Fact("note", note) for note in self.notes),
        ]

    def __str__(self) -> str:
        return "\n\n".join([*(table.as_text() for table in self.tables), self.explain()])

    def __repr__(self) -> str:
        return f"Plan({self.question.looks_for}, {len(self.settings)} settings, {len(self.needed)} needed)"

    def _repr_html_(self) -> str:
        tables = (facts_html([Fact(table.title, "")]) + table_html(table.header, table.rows) for table in self.tables)
        return "".join(tables) + facts_html(self.facts())

    def rows(self) -> list[dict[str, Any]]:
        """Return the complete table as a list of rows.

        Returns
        -------
        list of dict
            The rows of `to_frame`; what is unknown is None.
        """
        return plan_rows(self.question, self.settings, self.needed)

    def to_frame(self) -> pd.DataFrame:
        """Return the complete table: each setting with its errors, and what was searched for with its interval.

        Returns
        -------
        pandas.DataFrame
            One row for each candidate, number of users and truth.
        """
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With a version; numbers that are not finite are None.
        """
        return plan_document(self.question, self.settings, self.needed, self.sentence, self.notes)

    def to_json(self) -> str:
        """Return the plan as one JSON document.

        Returns
        -------
        str
            Numbers that are not finite are null.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw errors against users or epsilon, or the users needed, with bands for the error of the simulation.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        axes = axes_or_new(axes)
        draw_plan(self.question, self.settings, self.needed, axes)
        return axes
