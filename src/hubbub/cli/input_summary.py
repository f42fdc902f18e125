"""The input of a command, and what is said of it: what users spent, what was not used, which rows were rejected."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.cli.console import err, out, printable
from hubbub.cli.options import ReadingOptions
from hubbub.cli.progress_bar import follow
from hubbub.intake.privacy_loss_summary import spending_lines
from hubbub.intake.reject_causes import rejected_lines
from hubbub.intake.study_input import StudyInput, read_input
from hubbub.intake.tallies.tally_summary import Summary

if TYPE_CHECKING:
    from distributed import Client


def read_and_print_notes(
    study: Path, sources: list[str] | None, reading: ReadingOptions, cluster: Client | None = None
) -> StudyInput:
    """Read a study's sources, or a tally, and say what was not used."""
    study_input = follow(
        read_input.steps(study, sources or [], cluster=cluster, **reading.keywords()), "reading reports"
    )
    print_notes(study_input.summary.notes)
    return study_input


def print_summary(summary: Summary) -> None:
    """Say what users spent, and which rows were left out."""
    spending = spending_lines(summary.spent, summary.study, users_named=summary.named)
    for line in (*spending, *rejected_lines(summary.rejected)):
        out().print(line, soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Say what was not used, and what could not be checked."""
    for note in notes:
        err().print(f"note: {printable(note, most=10 * len(note))}", soft_wrap=True)
