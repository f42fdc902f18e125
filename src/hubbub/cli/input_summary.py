"""What a command says of its input: what users spent, what was not used, and which rows were rejected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubbub.cli.console import err, out, printable
from hubbub.core.text import plural
from hubbub.intake.epsilon_totals import spending_lines
from hubbub.intake.reject_causes import CAUSES
from hubbub.intake.tallies.tally_summary import Summary


def tell_given(summary: Summary) -> None:
    """Say what users spent, and which rows were left out."""
    console = out()
    for line in spending_lines(summary.spent, summary.study, users_named=summary.named):
        console.print(line, soft_wrap=True)
    tell_rejected(summary.rejected)


def tell_notes(notes: Iterable[str]) -> None:
    """Say what was not used, and what could not be checked."""
    for note in notes:
        err().print(f"note: {printable(note, most=10 * len(note))}", soft_wrap=True)


def tell_rejected(rejected: Mapping[str, int]) -> None:
    """Say which rows were left out, and why."""
    for code, count in sorted(rejected.items()):
        out().print(f"{plural(count, 'row')} rejected, {code}: {CAUSES[code]}", soft_wrap=True)
