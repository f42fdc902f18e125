"""Progress: the time left is a forecast from the present phase, and the terminal shows it."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator

import pytest
from rich.console import Console

from hubbub.cli import progress_bar
from hubbub.core.progress import Forecast, Progress, time_left


@pytest.mark.parametrize(("seconds", "words"), [(0.1, "1 s"), (5, "5 s"), (240, "4 minutes"), (9_000, "2.5 hours")])
def test_the_time_left_is_said_in_words(seconds: float, words: str) -> None:
    assert time_left(seconds) == f"about {words} left"


def test_each_phase_has_a_forecast_of_its_own() -> None:
    # Seconds since the start, done, total: four steps a second, then slower work, then the first kind again.
    phases = [(0, 0, 40), (1, 4, 40), (5, 20, 40), (6, 2, 3_000), (16, 12, 3_000), (17, 0, 40), (20, 40, 40)]
    now = 0.0
    forecast = Forecast(lambda: now)
    said = []
    for seconds, done, total in phases:
        now = seconds
        said.append(forecast.after(Progress(done, total, "working")))
    assert said == ["", "", "about 5 s left", "", "about 50 minutes left", "", ""]


def test_nobody_can_say_how_long_work_without_a_number_of_steps_takes() -> None:
    ticks: Iterator[float] = iter(range(0, 1_000, 10))
    forecast = Forecast(lambda: next(ticks))
    assert [forecast.after(Progress(done, 0, "reading")) for done in (0, 5, 9)] == ["", "", ""]


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("log", [True, False])
def test_the_terminal_shows_the_time_left_and_a_log_its_tenths(
    monkeypatch: pytest.MonkeyPatch, *, watched: bool, log: bool
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(progress_bar, "err", lambda: Console(file=shown, force_terminal=watched, markup=False))
    monkeypatch.setattr("hubbub.core.progress.MIN_FORECAST_SECONDS", 0.0)

    def work() -> Generator[Progress, None, str]:
        yield Progress(0, 0, "looking around")
        for done in range(20):
            yield Progress(done, 20, "counting [red]")
        return "result"

    assert progress_bar.follow(work(), "work", log=log) == "result"
    text = shown.getvalue()
    assert ("s left" in text) == watched
    assert ("looking around\n" in text.replace("\r", "")) == log
    assert ("50%: counting [red]\n" in text) == (log and not watched)
    assert text.count("%:") == (9 if log and not watched else 0)
    assert bool(text) == (watched or log)
