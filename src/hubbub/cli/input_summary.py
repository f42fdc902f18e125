"""The input of a command, and what is said of it: what users spent, what was not used, which rows were rejected."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.cli.console import err, out, printable
from hubbub.cli.options import ReadingOptions
from hubbub.cli.progress_bar import follow

if TYPE_CHECKING:
    from distributed import Client

    from hubbub.intake.study_input import StudyInput
    from hubbub.intake.tallies.tally_summary import Summary

ALL_USERS = ""  # the one group if the reports are not divided


def read_and_print_notes(
    study: Path, sources: list[str] | None, reading: ReadingOptions, cluster: Client | None = None
) -> StudyInput:
    """Read a study's sources, or a tally, and say what was not used."""
    from hubbub.intake.study_input import read_input

    load_named_code([study], reading)
    study_input = follow(
        read_input.steps(study, sources or [], cluster=cluster, **reading.keywords()), "reading reports"
    )
    print_notes(study_input.summary.notes)
    return study_input


def read_groups_and_print_notes(
    study: Path, sources: list[str] | None, by: list[str], min_group: int, reading: ReadingOptions
) -> dict[str, StudyInput]:
    """Read each group by itself, and say what was not used, and which groups are small."""
    from hubbub.core import validation
    from hubbub.intake.group_input import read_input_groups

    validation.whole(min_group, "min_group", "--min-group")
    load_named_code([study], reading)
    run = read_input_groups.steps(study, sources or [], tuple(by), min_group, **reading.keywords())
    groups = follow(run, "reading reports")
    print_notes(dict.fromkeys(note for own in groups.values() for note in own.summary.notes))
    return groups


def load_named_code(inputs: Iterable[str | Path], reading: ReadingOptions) -> None:
    """Import the classes that studies and tallies name, where that is allowed: what reads these then knows them."""
    from hubbub.intake import read_study, read_tally
    from hubbub.intake.tallies.tally import ENDING

    if reading.allow_code:
        for each in map(str, inputs):
            if each.endswith(ENDING):
                read_tally(each, allow_code=True)
            elif each.lower().endswith(".toml"):
                read_study(each, allow_code=True)


def print_summary(summary: Summary) -> None:
    """Say what users spent, and which rows were left out."""
    from hubbub.intake.privacy_loss_summary import spending_lines
    from hubbub.intake.reject_causes import rejected_lines

    for label, text in summary.known_dates.lines():
        out().print(f"{label}: {printable(text, most=len(text))}", soft_wrap=True)
    spending = spending_lines(summary.spent, summary.study, users_named=summary.named)
    for line in (*spending, *rejected_lines(summary.rejected)):
        out().print(line, soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Say what was not used, and what could not be checked."""
    for note in notes:
        err().print(f"note: {printable(note, most=10 * len(note))}", soft_wrap=True)
