"""The paper's figures as data: one file each, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from hubbub.core.errors import SettingError, shorten
from hubbub.core.serialization import ReadOnly
from hubbub.paper.settings import Group, MeasuredTruth, Setting


class FigureKind(NamedTuple):
    """How figures of one kind are described."""

    picture: str  # what the picture looks like
    table: str = "every run"  # what is in its table
    has_answers: bool = False  # whether a second table holds the answers drawn


FIGURE_KINDS = {
    "place": FigureKind("Heat map", "the counts"),
    "shapes": FigureKind("Distributions as bars and lines, a panel for each method", has_answers=True),
    "surfaces": FigureKind("Contours over the triangle of all distributions on three values", "where EM ends"),
    "maps": FigureKind("Heat maps side by side", has_answers=True),
    "boxes": FigureKind("Box plots by method"),
    "guesses": FigureKind("Curves over the number of reports", "how often guesses fail"),
    "paths": FigureKind("Curves over the number of updates"),
}
FIGURE_FIELDS = frozenset(
    "title where shows kind runs beyond_runs methods deltas beyond distances show measure quick options".split()  # noqa: SIM905
)
MEASURE_FIELDS = frozenset(("truth", "users", "mechanism", "epsilons", "groups"))


@dataclass(frozen=True)
class Figure:
    """One figure: what is measured for it, and how it is drawn."""

    name: str
    title: str
    where: str  # the labels of the paper's source; "beyond the paper" where it has none
    shows: str
    kind: str
    settings: tuple[Setting, ...]
    runs: int
    beyond_runs: int  # runs on which the costly methods are tried, too
    distances: tuple[str, ...]
    show: tuple[str, ...]  # methods, in the order in which they are drawn
    options: Mapping[str, Any]  # what only this kind of figure needs

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """The tables behind it, as (what is in it, name of the file)."""
        kind = FIGURE_KINDS[self.kind]
        answers = (("the answers drawn", f"{self.name}-answers.csv"),) if kind.has_answers else ()
        return ((kind.table, f"{self.name}.csv"), *answers)

    @property
    def plain(self) -> bool:
        """Whether every user sends one output of the same mechanism, in all settings."""
        return all(setting.plain for setting in self.settings)

    @property
    def beyond(self) -> tuple[str, ...]:
        """The costly methods."""
        return tuple(dict.fromkeys(method for setting in self.settings for method in setting.beyond))

    @property
    def first_runs(self) -> str:
        """The runs on which the costly methods are tried, in words; empty if these are all of them."""
        if not self.beyond or self.beyond_runs >= self.runs:
            return ""
        return "first run" if self.beyond_runs == 1 else f"first {self.beyond_runs} runs"


def figure_names() -> tuple[str, ...]:
    """Return the names of all figures, in the paper's order."""
    return tuple(path.name.removesuffix(".toml").split("-", 1)[1] for path in _files())


def read_figures(names: Sequence[str] = (), *, quick: bool = False) -> tuple[Figure, ...]:
    """Return the figures of these names, or all; with fewer runs and settings if it must be quick."""
    paths = dict(zip(figure_names(), _files(), strict=True))
    for name in names:
        if name not in paths:
            raise SettingError(
                "no such figure",
                where="hubbub reproduce FIGURE",
                got=shorten(name),
                expected=", ".join(paths),
                remedy="leave figures out for all of them",
            )
    return tuple(
        parse_figure(name, tomllib.loads(path.read_text(encoding="utf-8")), quick=quick)
        for name, path in paths.items()
        if not names or name in names
    )


def parse_figure(name: str, text: Mapping[str, Any], *, quick: bool) -> Figure:
    """Return the figure that a file describes."""
    document = dict(text)
    less = document.pop("quick", {})
    if quick:
        document.update({field: value for field, value in less.items() if field != "epsilons"})
    unknown = set(document) - FIGURE_FIELDS
    if unknown or document.get("kind") not in FIGURE_KINDS:
        raise _not_understood(
            name,
            f"kind {document.get('kind')!r}, fields {sorted(unknown) or 'known'}",
            f"a kind among {', '.join(FIGURE_KINDS)}; fields among {', '.join(sorted(FIGURE_FIELDS))}",
        )
    deltas = tuple(f"em {delta:g}" for delta in document.get("deltas", ()))
    distances = tuple(document.get("distances", ()))
    measured = (tuple(document.get("methods", ())) + deltas, tuple(document.get("beyond", ())), distances)
    settings: list[Setting] = []
    for entry in document.get("measure", ()):
        if set(entry) - MEASURE_FIELDS:
            unknown = set(entry) - MEASURE_FIELDS
            raise _not_understood(f"{name}, measure", ", ".join(sorted(unknown)), ", ".join(sorted(MEASURE_FIELDS)))
        truth, users = MeasuredTruth(**entry["truth"]), int(entry.get("users", 0))
        epsilons = less.get("epsilons") if quick else None
        settings += [Setting(truth, users, groups, *measured) for groups in _groups(entry, epsilons)]
    return Figure(
        name=name,
        title=document["title"],
        where=document["where"],
        shows=document["shows"],
        kind=document["kind"],
        settings=tuple(settings),
        runs=int(document.get("runs", 0)),
        beyond_runs=int(document.get("beyond_runs", 0)),
        distances=distances,
        show=tuple(document.get("show", ())),
        options=ReadOnly(document.get("options", {})),
    )


def _groups(entry: Mapping[str, Any], epsilons: Sequence[float] | None) -> list[tuple[Group, ...]]:
    """Return the groups of users of each setting: those of the entry, or all users with each epsilon."""
    if "groups" not in entry:
        mechanism = entry["mechanism"]
        return [(Group(1.0, ((mechanism, float(epsilon)),)),) for epsilon in epsilons or entry["epsilons"]]
    return [
        tuple(
            Group(float(group["share"]), tuple((kind, float(epsilon)) for kind, epsilon in group["mechanisms"]))
            for group in entry["groups"]
        )
    ]


def _not_understood(where: str, got: str, expected: str) -> SettingError:
    return SettingError(
        "the file of a figure is not understood",
        where=f"figures, {where}",
        got=got,
        expected=expected,
        remedy="correct the file",
    )


def _files() -> list[Any]:
    """Return the figures' files in order: their names begin with a number."""
    folder = files("hubbub.paper").joinpath("figures")
    return sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
