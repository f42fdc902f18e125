"""The figures as pictures: legible, complete, the same bytes each time, and about the data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure as Page
from matplotlib.text import Text

from hubbub.domains import Grid
from hubbub.paper.drawing import draw, save
from hubbub.paper.drawing.guess_plots import interval
from hubbub.paper.drawing.heat_maps import borders_of
from hubbub.paper.drawing.plot_style import look, styled
from hubbub.paper.drawing.surface_plots import EM_UPDATES, maxima
from hubbub.paper.figure_specs import FIGURE_KINDS, Figure, parse_figure, read_figures
from hubbub.paper.likelihood_surfaces import surfaces_of
from hubbub.paper.places import Place
from hubbub.paper.results import Results
from hubbub.paper.run_tables import tables
from hubbub.paper.work_units import WorkUnit, parts_of

GRID = Grid(6, 4, cell=0.5)
TOUCHING = 1.0  # pixels that boxes around two texts may share: letters do not fill their boxes


def agg(page: Page) -> Any:
    """Return the canvas on which a page was drawn."""
    canvas: Any = FigureCanvasAgg(page)
    canvas.draw()
    return canvas


def overlaps(drawn: Page) -> list[tuple[str, ...]]:
    """Return the pairs of texts whose boxes overlap, and the texts that leave the canvas, as drawn by Agg."""
    seen: list[Text] = []
    plain = Text.draw

    def noted(self: Text, renderer: Any) -> None:
        seen.append(self)
        plain(self, renderer)

    with styled(), patch.object(Text, "draw", noted):
        canvas = agg(drawn)
        renderer = canvas.get_renderer()
        texts = list({id(text): text for text in seen if text.get_visible() and text.get_text().strip()}.values())
        boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    width, height = drawn.canvas.get_width_height()
    found: list[tuple[str, ...]] = [
        (words,) for words, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
    ]
    for (one, first), (other, second) in combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        along = min(first.y1, second.y1) - max(first.y0, second.y0)
        if min(across, along) > TOUCHING:
            found.append((one, other))
    return found


# -- figures with made-up results --------------------------------------------------------------------------


def made_up(figures: tuple[Figure, ...], place: Place, seed: int = 1) -> Results:
    """Return results of the right shape, without running anything."""
    rng = np.random.default_rng(seed)
    documents: dict[WorkUnit, Mapping[str, Any]] = {}
    for figure in figures:
        for part in parts_of(figure):
            documents.setdefault(part, _document(part, place, rng))
    return Results(place=place, seed=seed, quick=True, documents=documents)


def _document(part: WorkUnit, place: Place, rng: np.random.Generator) -> Mapping[str, Any]:
    if part.task == "guesses":
        options = json.loads(part.options)
        ((name, epsilon),) = options["mechanisms"]
        reports = options["reports"]
        wrong = [float(rng.random() / count) for count in reports[:-1]] + [0.0]
        return {"name": name, "epsilon": epsilon, "people": options["people"], "reports": reports, "wrong": wrong} | {
            bound: [1.0] * (len(reports) - 1) + [0.2] for bound in ("union", "types")
        }
    assert part.setting is not None
    if part.task == "path":
        updates = [1, 3, 10, 30, 100]
        stops = {
            method: {"iterations": [20 * rank + 5] * part.count, "tv": [0.2 / rank] * part.count}
            for rank, method in enumerate(part.setting.methods, 1)
        }
        return {"updates": updates, "tv": (rng.random((part.count, 5)) / 2 + 0.01).tolist(), "stops": stops}
    methods = part.setting.methods if part.task == "runs" else part.setting.beyond
    rows = [
        {"run": part.first + run, "method": method, "iterations": None, "gap": None, "zero_values": 0}
        | {"tv": float(rng.random() ** 3 + 0.01), "emd": float(rng.random() * 10 + 0.001), "empty_values": 0}
        for run in range(part.count)
        for method in methods
    ]
    values = len(part.setting.truth.domain(place))
    shapes = {method: rng.dirichlet(np.full(values, 0.1)).tolist() for method in ("truth", *methods)}
    return {"rows": rows, "shapes": shapes if part.first == 0 else {}}


def some_place(name: str = "somewhere", *, synthetic: bool = False) -> Place:
    counts = np.arange(24) * (np.arange(24) % 5 > 0)
    return Place(grid=GRID, counts=counts, name=name, source="made up", synthetic=synthetic, sha256="0" * 64)


ON_PLACE = {"truth": {"kind": "place"}, "mechanism": "planar-geometric", "epsilons": [0.5, 1.0]}
ON_LINE = {"truth": {"kind": "binomial", "values": 12}, "users": 1000, "mechanism": "laplace", "epsilons": [0.5]}
SIX: dict[str, Any] = {
    "runs": 12,
    "beyond_runs": 3,
    "methods": ["noisy", "inv-n", "inv-p"],
    "deltas": [0.1, 0.001],
    "beyond": ["mle", "auto"],
    "distances": ["tv", "emd"],
    "show": ["noisy", "inv-n", "inv-p", "em 0.1", "em 0.001", "mle", "auto"],
}
THIRDS = [["1/2", "1/3", "1/6"], ["1/3", "1/3", "1/3"], ["1/6", "1/3", "1/2"]]
RESPONSE = [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "1/2"]]
RIDGE = {"name": "1, 2, 3", "matrix": THIRDS, "counts": [1, 1, 1], "starts": [[0.8, 0.1, 0.1]]}
CORNER = {"name": "1, 2, 2, 3", "matrix": RESPONSE, "counts": [1, 2, 1], "starts": [[0.8, 0.1, 0.1]], "note": "so!"}
TINY: dict[str, dict[str, Any]] = {
    "place": {"options": {"holes": True}},
    "shapes": {**SIX, "show": ["inv-p", "em 0.1", "mle", "auto"], "measure": [ON_LINE, ON_LINE | {"epsilons": [2.0]}]},
    "surfaces": {"options": {"surfaces": [RIDGE, CORNER]}},
    "maps": {**SIX, "show": ["noisy", "em 0.1", "mle", "auto"], "measure": [ON_PLACE | {"epsilons": [1.0]}]},
    "boxes": {**SIX, "measure": [ON_PLACE]},
    "guesses": {
        "options": {"values": 4, "people": 400, "reports": [1, 5, 20], "mechanisms": [["rappor", 1.0], ["twins", 1.0]]}
    },
    "paths": {**SIX, "methods": [], "show": [], "options": {"updates": 100}, "measure": [ON_PLACE, ON_LINE]},
}


def tiny(kind: str) -> Figure:
    about = {"title": f"Something about {kind}", "where": "nowhere", "shows": "nothing", "kind": kind}
    return parse_figure(kind, {**about, **TINY[kind]}, quick=False)


@cache
def first_drawn(kind: str) -> Page:
    """Return a picture that several tests look at, and none changes."""
    return drawn(kind)


def drawn(kind: str, *, seed: int = 1, place: Place | None = None) -> Page:
    figure = tiny(kind)
    return draw(figure, made_up((figure,), place or some_place(), seed))


def words(page: Page) -> str:
    return "\n".join(text.get_text() for text in page.findobj(Text) if isinstance(text, Text))


# -- what pictures must be ---------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", FIGURE_KINDS)
def test_no_words_overlap_or_leave_the_picture_and_none_are_too_small(kind: str) -> None:
    page = first_drawn(kind)
    assert overlaps(page) == []
    sizes = [float(text.get_fontsize()) for text in page.findobj(Text) if isinstance(text, Text) and text.get_text()]
    assert min(sizes) >= 9.0
    assert page.get_figwidth() == 11.5


def test_overlapping_and_leaving_words_are_found() -> None:
    page = drawn("guesses")
    page.text(0.5, 0.5, "planted")
    page.text(0.505, 0.5, "over it")
    page.text(0.98, 0.99, "leaves the picture")
    found = overlaps(page)
    assert ("planted", "over it") in found
    assert ("leaves the picture",) in found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["line", "general-model", "iterations"])
def test_the_fullest_figures_have_room_for_all_words(name: str) -> None:
    (figure,) = read_figures([name])
    assert overlaps(draw(figure, made_up((figure,), some_place("all the check-ins of a very large city.txt.gz")))) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", FIGURE_KINDS)
def test_the_same_bytes_each_time(kind: str, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first = save(first_drawn(kind), tmp_path, kind)
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 9, "savefig.dpi": 33, "svg.hashsalt": None}):
        again = save(drawn(kind), tmp_path / "again", kind)
        assert mpl.rcParams["font.size"] == 20  # what the user has set is left alone
    assert [path.name for path in first] == [f"{kind}.png", f"{kind}.svg"]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    text = first[1].read_text(encoding="utf-8")
    assert "<dc:date>" not in text
    assert "<text" not in text  # letters are shapes: no font is needed


@pytest.mark.parametrize("kind", ["shapes", "maps", "boxes", "paths"])
def test_every_shown_method_is_named(kind: str) -> None:
    page = first_drawn(kind)
    legends = [*page.legends, *(legend for axes in page.axes if (legend := axes.get_legend()) is not None)]
    named = [text.get_text() for legend in legends for text in legend.get_texts()]
    named += [axes.get_title("left") for axes in page.axes]
    for method in tiny(kind).show or ("mle", "auto"):
        assert any(name.startswith(look(method).label) for name in named)
    assert "exact maximum and auto: first 3 runs" in words(page)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["place", "shapes", "maps", "boxes", "guesses", "paths"])
def test_other_data_make_another_picture(kind: str) -> None:
    counts = np.roll(some_place().counts, 7)
    other = drawn(kind, seed=2, place=replace(some_place(), counts=counts))
    assert pixels(first_drawn(kind)) != pixels(other)


def pixels(page: Page) -> bytes:
    """Return the picture without its words, which would differ anyway."""
    with styled(), patch.object(Text, "draw", lambda self, renderer: None):
        return bytes(agg(page).buffer_rgba())


def test_the_small_print_says_where_it_comes_from() -> None:
    said = words(drawn("boxes", place=some_place("a $place$ of 城\n", synthetic=True), seed=7))
    assert "Data: a $place$ of ??, synthetic, 226 people. 12 runs" in said
    assert "Seed 7." in said
    assert "Data: 1,000 inputs drawn in each run" in words(first_drawn("shapes"))


def test_a_shown_method_that_was_not_measured_is_told() -> None:
    about = {"title": "x", "where": "x", "shows": "x", "kind": "boxes"}
    figure = parse_figure("x", {**about, **TINY["boxes"], "beyond": ["mle"]}, quick=False)
    said = words(draw(figure, made_up((figure,), some_place())))
    assert "not measured here: auto" in said


def test_spikes_that_are_cut_off_are_counted() -> None:
    figure = tiny("shapes")
    results = made_up((figure,), some_place())
    flat, spiky = np.full(12, 1 / 12), np.eye(12)[3] * 0.9 + 0.1 / 12
    for document in results.documents.values():
        for method in document["shapes"]:
            document["shapes"][method] = (spiky if method == "inv-p" else flat).tolist()
    assert words(draw(figure, results)).count("1 cut off,\nup to 0.908") == len(figure.settings)


def test_every_simulated_error_is_inside_its_panel_with_its_interval() -> None:
    figure = tiny("guesses")
    found = made_up((figure,), some_place()).guesses(figure)
    page = first_drawn("guesses")
    for axes, one in zip(page.axes, found, strict=True):
        wrong = np.array(one["wrong"])
        below, above = interval(wrong, 100)
        assert axes.get_ylim()[0] < np.where(wrong > 0, below, above).min()
        assert (below <= wrong).all()
        assert (wrong < above).all()


# -- what is computed for them -----------------------------------------------------------------------------


def test_holes_are_outlined_along_their_cells() -> None:
    empty = np.isin(np.arange(24), [0, 1, 7, 14]).reshape(4, 6)
    borders = borders_of(empty)
    assert len(borders) == 8 + 4  # around three cells in an angle, and around one
    assert ((1, 0), (1, 1)) not in borders  # between cells 0 and 1
    assert ((2, 2), (2, 3)) in borders  # west of cell 14


def test_empty_cells_are_left_white_and_outlined() -> None:
    place = some_place()
    page = first_drawn("place")
    (mesh,) = (found for found in page.axes[0].collections if isinstance(found, QuadMesh))
    (lines,) = (found for found in page.axes[0].collections if isinstance(found, LineCollection))
    assert np.ma.getmaskarray(np.ma.asarray(mesh.get_array())).ravel().tolist() == (place.counts == 0).tolist()
    assert len(lines.get_segments()) == len(borders_of((place.counts == 0).reshape(4, 6)))


def test_the_derivatives_at_the_corner_are_exact_and_the_papers_is_an_erratum() -> None:
    four, five = surfaces_of(next(figure for figure in read_figures(["corner"])))
    assert four.slopes_at(1) == {0: Fraction(0), 2: Fraction(0)}  # the paper prints -0.5
    assert five.slopes_at(1) == {0: Fraction(-1, 2), 2: Fraction(-1, 2)}
    for surface in (four, five):
        assert maxima(surface).tolist() == [[0.0, 1.0, 0.0]]
        assert surface.em_iterates(surface.starts[0], EM_UPDATES)[-1] == pytest.approx([0, 1, 0], abs=2e-3)
    page = draw(*_corner())
    assert "∂L/∂θ₁ = 0\n∂L/∂θ₃ = 0\nprinted in the paper: -0.5" in words(page)
    assert "∂L/∂θ₁ = -1/2\n∂L/∂θ₃ = -1/2" in words(page)


def _corner() -> tuple[Figure, Results]:
    (figure,) = read_figures(["corner"])
    return figure, made_up((figure,), some_place())


def test_the_ridge_goes_from_border_to_border() -> None:
    (surface,) = surfaces_of(next(figure for figure in read_figures(["ridge"])))
    ends = sorted(maxima(surface).tolist())
    assert ends == [pytest.approx([0, 1, 0], abs=1e-9), pytest.approx([0.5, 0, 0.5], abs=1e-9)]
    steps = surface.log_likelihood(surface.em_iterates(surface.starts[0], EM_UPDATES))
    assert np.diff(steps).min() > -1e-12  # EM never goes down
    assert steps[-1] == pytest.approx(surface.log_likelihood(np.array(ends))[0], abs=1e-12)


def test_the_table_of_paths_has_all_that_is_drawn() -> None:
    figure = tiny("paths")
    results = made_up((figure,), some_place())
    rows = list(csv.DictReader(io.StringIO(tables(figure, results)["paths.csv"].decode())))
    for setting in figure.settings:
        asked = (setting.truth.name, str(setting.epsilon))
        own = [row for row in rows if (row["truth"], row["epsilon"]) == asked]
        for method in (*setting.methods, *setting.beyond):
            runs = figure.runs if method in setting.methods else figure.beyond_runs
            assert [row["run"] for row in own if row["method"] == method] == [str(run) for run in range(runs)]
        assert sum(row["method"] == "" for row in own) == figure.runs * len(results.path(figure, setting)["updates"])
