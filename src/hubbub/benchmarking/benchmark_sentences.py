"""A benchmark in words: who is best where, whether it is beyond noise, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub.benchmarking.paired_differences import PairedDifference, SettingRanking
from hubbub.core.text import listed, plural, whole_percent
from hubbub.planning.answers import DISTANCE_NAMES
from hubbub.planning.number_format import two_digits

if TYPE_CHECKING:
    from hubbub.benchmarking.result import BenchmarkCell

MAX_NAMED = 4  # cells in one sentence
MAX_MESSAGE_LETTERS = 200


def benchmark_sentences(
    cells: Sequence[BenchmarkCell], ranked: Sequence[SettingRanking], distance: str, level: float, unit: str | None
) -> list[str]:
    """Return a paragraph for each truth and number of users, one on failures, and how noise was judged."""
    suffix = f" {unit}" if distance == "emd" and unit not in (None, "unit") else ""
    lines = [_setting_sentence(each, distance, suffix) for each in ranked]
    lines += _failure_sentences(cells)
    if any(each.differences for each in ranked):
        lines.append(
            "Intervals are of paired differences (Student's t) and hold for all pairs of one truth and number of users "
            f"together, with {whole_percent(level)} probability."
        )
    return lines


def _setting_sentence(ranking: SettingRanking, distance: str, suffix: str) -> str:
    start = f"{ranking.truth}, {ranking.users:,} users:"
    best = ranking.best
    if best is None:
        return f"{start} nothing can be compared; all estimates failed."
    error = f"mean {DISTANCE_NAMES[distance]} {two_digits(best.mean(distance))}{suffix}"
    if not ranking.differences:
        return f"{start} {best.label}, {error}."
    clear = [each for each in ranking.differences if each.is_clear]
    close = [each for each in ranking.differences if not each.is_clear]
    if not close:
        verdict = f"Beyond noise: every other has a larger error, the next {_difference(clear[0], suffix)}."
    else:
        names = listed([f"{each.other.label} ({_difference(each, suffix)})" for each in close], most=MAX_NAMED)
        verdict = f"Not told apart from it: {names}."
        if clear:
            verdict += (
                f" {plural(len(clear), 'other')} {'has' if len(clear) == 1 else 'have'} a larger error beyond noise."
            )
    return f"{start} the smallest error has {best.label}, {error}. {verdict}"


def _difference(each: PairedDifference, suffix: str) -> str:
    low, high = (f"{'+' if end > 0 else ''}{two_digits(end)}" for end in (each.low, each.high))
    name = f"{each.other.label} by " if each.is_clear else ""
    return f"{name}{low} to {high}{suffix}"


def _failure_sentences(cells: Sequence[BenchmarkCell]) -> list[str]:
    """Say once for each method and message how many runs failed, and of which mechanisms."""
    failed: dict[tuple[str, str], list[BenchmarkCell]] = {}
    for cell in cells:
        for message in dict.fromkeys(filter(None, cell.messages)):
            failed.setdefault((cell.method, message), []).append(cell)
    sentences = []
    for (method, message), own in failed.items():
        count = sum(cell.messages.count(message) for cell in own)
        names = listed(list(dict.fromkeys(cell.mechanism_label for cell in own)), most=MAX_NAMED)
        total = plural(sum(len(cell.messages) for cell in own), "run")
        sentences.append(f"{method} failed in {count:,} of {total} of {names}: {message[:MAX_MESSAGE_LETTERS]}")
    return sentences
