"""The paper's figures as data: one file each, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hubbub.core.errors import SettingError, shorten
from hubbub.core.portable import ReadOnly
from hubbub.paper.settings import Group, MeasuredTruth, Setting

FIGURE_KINDS = ("place", "shapes", "surfaces", "maps", "boxes", "guesses", "paths")
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
        what = {"place": "the counts", "surfaces": "where EM ends", "guesses": "how often guesses fail"}
        tables = [(what.get(self.kind, "every run"), f"{self.name}.csv")]
        if self.kind in ("shapes", "maps"):
            tables.append(("the answers drawn", f"{self.name}-answers.csv"))
        return tuple(tables)

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
    known = figure_names()
    for name in names:
        if name not in known:
            raise SettingError(
                "no such figure",
                where="hubbub reproduce FIGURE",
                got=shorten(name),
                expected=", ".join(known),
                remedy="leave figures out for all of them",
            )
    texts = {name: path.read_text(encoding="utf-8") for name, path in zip(known, _files(), strict=True)}
    return tuple(
        parse_figure(name, tomllib.loads(texts[name]), quick=quick) for name in known if not names or name in names
    )


def parse_figure(name: str, text: Mapping[str, Any], *, quick: bool) -> Figure:
    """Return the figure that a file describes."""
    document = dict(text)
    less = document.pop("quick", {})
    if quick:
        document.update({field: value for field, value in less.items() if field != "epsilons"})
    unknown = set(document) - FIGURE_FIELDS
    if unknown or document.get("kind") not in FIGURE_KINDS:
        raise SettingError(
            "the file of a figure is not understood",
            where=f"figures, {name}",
            got=f"kind {document.get('kind')!r}, fields {sorted(unknown) or 'known'}",
            expected=f"a kind among {', '.join(FIGURE_KINDS)}; fields among {', '.join(sorted(FIGURE_FIELDS))}",
            remedy="correct the file",
        )
    deltas = tuple(f"em {delta:g}" for delta in document.get("deltas", ()))
    methods = tuple(document.get("methods", ())) + deltas
    settings: list[Setting] = []
    for measured in document.get("measure", ()):
        settings += _settings(name, measured, less.get("epsilons") if quick else None, methods, document)
    return Figure(
        name=name,
        title=document["title"],
        where=document["where"],
        shows=document["shows"],
        kind=document["kind"],
        settings=tuple(settings),
        runs=int(document.get("runs", 0)),
        beyond_runs=int(document.get("beyond_runs", 0)),
        distances=tuple(document.get("distances", ())),
        show=tuple(document.get("show", ())),
        options=ReadOnly(document.get("options", {})),
    )


def _settings(
    name: str,
    measured: Mapping[str, Any],
    epsilons: Sequence[float] | None,
    methods: tuple[str, ...],
    document: Mapping[str, Any],
) -> list[Setting]:
    unknown = set(measured) - MEASURE_FIELDS
    if unknown:
        raise SettingError(
            "the file of a figure is not understood",
            where=f"figures, {name}, measure",
            got=", ".join(sorted(unknown)),
            expected=", ".join(sorted(MEASURE_FIELDS)),
            remedy="correct the file",
        )
    if "groups" in measured:
        ways = [
            tuple(
                Group(float(group["share"]), tuple((kind, float(epsilon)) for kind, epsilon in group["mechanisms"]))
                for group in measured["groups"]
            )
        ]
    else:
        ways = [
            (Group(1.0, ((measured["mechanism"], float(epsilon)),)),) for epsilon in epsilons or measured["epsilons"]
        ]
    return [
        Setting(
            truth=MeasuredTruth(**measured["truth"]),
            users=int(measured.get("users", 0)),
            groups=groups,
            methods=methods,
            beyond=tuple(document.get("beyond", ())),
            distances=tuple(document.get("distances", ())),
        )
        for groups in ways
    ]


def _files() -> list[Any]:
    """Return the figures' files in order: their names begin with a number."""
    folder = files("hubbub.paper").joinpath("figures")
    return sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
