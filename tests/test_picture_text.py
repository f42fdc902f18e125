"""Words in pictures: titles say what is shown, long labels wrap, every script is drawn or told, and nothing warns."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, findfont, fontManager

import hubbub as hb
from hubbub.exporting.result_files import write_comparison, write_resolution, write_result
from hubbub.rendering import picture_bytes, picture_text
from hubbub.rendering.picture_text import (
    HINT,
    MAX_LINES,
    SQUARE,
    legible,
    names_below,
    names_beside,
    picture_title,
    set_title,
    wrapped,
)
from terminal import hubbub

LONG = [f"{word} is the label of an answer that goes on for sixty letters" for word in ("One", "Two", "Three", "Four")]
AS_IT_IS = {"parse_math": False}
NOWHERE = "\U000f0000"  # of a private plane: no font draws it
SCRIPTS = {
    "chinese": ["北京市朝阳区", "上海", "广州"],
    "arabic": ["السلام عليكم", "القاهرة", "نعم"],
    "hindi": ["नमस्ते दुनिया", "हाँ", "नहीं"],
    "emoji": ["😀 happy", "👩‍👩‍👧 family", "neutral"],
    "signs of mathematics": ["$x^2$", r"$\alpha", "a_b"],
    "long": LONG,
    "line breaks": ["a\nb", "c\td", "e"],
}


def picture(labels: list[str]) -> tuple[hb.Reports, Axes]:
    """Return reports over some labels, and the axes of their estimate."""
    mechanism = hb.RandomizedResponse(hb.Categories(labels), 2.0)
    rng = np.random.default_rng(3)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize([labels[0]] * 300 + [labels[1]] * 200, rng=rng))
    axes = Figure(figsize=(8, 5), layout="constrained").subplots()
    return reports, hb.estimate(reports, method="mle").plot(axes)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("script", SCRIPTS)
def test_no_script_warns_and_what_cannot_be_drawn_is_told(
    script: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    labels = SCRIPTS[script]
    reports, axes = picture(labels)
    figure = axes.figure
    assert isinstance(figure, Figure)
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        estimate = hb.estimate(reports, method="mle")
        write_result(estimate, {}, tmp_path / "e.png", study=labels[0])
        write_result(estimate, {}, tmp_path / "e.svg", study=labels[0])
        write_comparison(hb.compare(reports, reports), {}, tmp_path / "c.png", title=labels[1])
        write_resolution(hb.resolve(reports), {}, tmp_path / "r.png", title=labels[1])
        picture_bytes(figure, ".png")
    assert caplog.records == []
    shown = "".join(tick.get_text() for tick in axes.get_xticklabels())
    hint = figure.get_supxlabel()
    assert (hint == HINT) == (SQUARE in shown)
    installed = {letter for font in picture_text._families() for letter in picture_text._letters_of(font)}
    drawable = all(
        ord(letter) in installed or letter.isspace() for text in labels for letter in text if letter != "\u200d"
    )
    assert (SQUARE in shown) == (not drawable)


def test_a_letter_that_no_font_has_becomes_a_square_and_one_sentence() -> None:
    words = legible([f"a{NOWHERE}b", "c"])
    assert words.texts == [f"a{SQUARE}b", "c"]
    _, axes = picture([f"x{NOWHERE}", "y", f"z{NOWHERE}"])
    figure = axes.figure
    assert isinstance(figure, Figure)
    assert figure.get_supxlabel() == HINT
    _, plain = picture(["x", "y"])
    assert plain.figure.get_supxlabel() == ""


@pytest.fixture
def only_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that says which fonts are installed: Matplotlib's default, and another one under some name.

    Which ones Matplotlib lists depends on its version, and on how the list came about that it keeps for all programs.
    """
    remembered = (picture_text._files, picture_text._families, picture_text._letters_of, picture_text._font_with)

    def forget() -> None:
        for function in remembered:
            function.cache_clear()

    def install(name: str) -> None:
        files = {"DejaVu Sans": findfont("DejaVu Sans"), name: findfont("STIXGeneral")}
        fonts = [FontEntry(fname=file, name=font, style="normal", weight=400) for font, file in files.items()]
        monkeypatch.setattr(fontManager, "ttflist", fonts)
        forget()

    yield install
    monkeypatch.undo()
    forget()


def test_a_font_that_has_the_letter_is_chosen_and_one_of_frames_never(only_fonts: Callable[..., None]) -> None:
    only_fonts("Noto Sans Letters")
    letter = chr(min(picture_text._letters_of("Noto Sans Letters") - picture_text._letters_of("DejaVu Sans")))
    assert legible([f"a{letter}"]) == ([f"a{letter}"], {"fontfamily": ["DejaVu Sans", "Noto Sans Letters"], **AS_IT_IS})
    assert legible(["plain"]).style["fontfamily"] == ["DejaVu Sans"]
    for name in ("Last Resort High-Efficiency", "LastResort", "Adobe Blank 2"):
        only_fonts(name)
        assert ord(letter) in picture_text._letters_of(name)
        assert legible([f"a{letter}"]) == ([f"a{SQUARE}"], {"fontfamily": ["DejaVu Sans"], **AS_IT_IS})


def test_long_labels_wrap_and_nothing_is_lost_that_has_room() -> None:
    for label in LONG:
        lines = wrapped(label, 21).split("\n")
        assert " ".join(lines) == label
        assert max(map(len, lines)) <= 21
    assert wrapped("北京市朝阳区的居民们都说", 8) == "北京市朝\n阳区的居\n民们都说"  # two places each
    assert wrapped("word " * 100, 10).endswith("…")
    assert wrapped("word " * 100, 10).count("\n") == MAX_LINES - 1
    few, many = names_below(LONG), names_below([f"{label} {n}" for n in range(5) for label in LONG])
    assert "rotation" not in few.style
    assert [" ".join(text.split("\n")) for text in few.texts] == LONG
    assert many.style["rotation"] == 45
    assert all("\n" not in text for text in many.texts)
    assert [" ".join(text.split("\n")) for text in names_beside(LONG).texts] == LONG


def test_labels_side_by_side_do_not_overlap() -> None:
    _, axes = picture(LONG)
    figure = axes.figure
    assert isinstance(figure, Figure)
    picture_bytes(figure, ".png")
    boxes = [tick.get_window_extent() for tick in axes.get_xticklabels()]
    assert not any(left.overlaps(right) for left, right in pairwise(boxes))
    assert all(box.y0 >= 0 for box in boxes)


def test_titles_name_the_study_its_users_and_the_level() -> None:
    assert picture_title("trips", users=1, level=0.9) == "trips\n1 user, 90% intervals"
    assert picture_title(users=1200, method="mle") == "1,200 users, by mle"
    assert picture_title("trips") == "trips"
    assert picture_title() == ""
    axes = Figure().subplots()
    set_title(axes, "a study with a name " * 10 + "\n500 users")
    lines = axes.get_title().split("\n")
    assert (len(lines), lines[-1]) == (4, "500 users")
    set_title(axes, "نعم is more frequent")
    assert axes.get_title().startswith("\u200e")  # the sentence is ours, and goes from left to right


def test_pictures_of_the_terminal_have_the_title(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\nname = "Anreise & Ärger"\n[domain]\nkind = "categories"\nlabels = ["bus", "tram", "bike"]\n'
        '[mechanisms.m]\nkind = "krr"\nepsilon = 2.0\n',
        encoding="utf-8",
    )
    (tmp_path / "r.csv").write_text("output\n" + "bus\n" * 300 + "tram\n" * 150 + "bike\n" * 50)
    for command, options, words in (
        ("estimate", [], "500 users, by auto, 95% intervals"),
        ("resolve", ["--level", "0.9"], "500 users, 90% intervals"),
    ):
        done = hubbub(command, "study.toml", "r.csv", *options, "-o", f"{command}.svg", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        text = (tmp_path / f"{command}.svg").read_text(encoding="utf-8")
        assert f"<!-- {words} -->" in text
        assert "<!-- Anreise &amp; Ärger -->" in text
    done = hubbub(
        "plan", "study.toml", "--users", "100", "--method", "inv-p", "--runs", "2", "-o", "p.svg", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "<!-- Anreise &amp; Ärger -->" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_plots_in_a_notebook_close_cleanly() -> None:
    reports, _ = picture(["x", "y"])
    estimate = hb.estimate(reports)
    hb.band(reports)
    assert estimate.plot().get_title() == "500 users, by auto, 95% intervals"
    plt.close("all")


def test_a_figure_of_its_own_is_wide_enough_for_the_title() -> None:
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), p=0.75)
    men = hb.Reports.from_counts(coin, {"yes": 520, "no": 700, "unsure": 280})
    women = hb.Reports.from_counts(coin, {"yes": 830, "no": 690, "unsure": 280})
    axes = hb.compare(men, women, names=("men", "women")).plot()
    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    title = axes.title.get_window_extent()
    assert title.x0 >= 0
    assert title.x1 <= figure.bbox.x1
    low, high = axes.get_ylim()
    assert low <= -0.5  # rows keep off the frame
    assert high >= 2.5
    plt.close("all")


def test_short_names_are_not_turned() -> None:
    trees = ["Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Oak", "Pine"]
    assert names_below(trees).texts == trees
    assert "rotation" not in names_below(trees).style
    assert names_below([f"{name}, planted" for name in trees]).style["rotation"] == 45
    assert not picture_text._fit_side_by_side(["北京市朝阳"] * 8)  # wide letters take two places
    assert picture_text._fit_side_by_side(["北京市"] * 8)
