"""``hubbub demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hubbub.cli.show import err, out
from hubbub.core.progress import finish
from hubbub.demo import Result, prepare, run, write

BUSIEST = 8


def command(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")] = Path("hubbub-demo"),
) -> None:
    """Privatize a city's places, recover the map by every method, and compare with the truth."""
    prepare(output)
    result = _follow()
    paths = write(result, output)
    console = out()
    console.print(_shares(result), _distances(result), sep="\n")
    console.print(_verdict(result))
    for what, path in paths.items():
        console.print(f"{what + ':':<11}{path}", soft_wrap=True)
    console.print(f"Next: hubbub estimate {paths['study']} {paths['reports']}", soft_wrap=True)
    console.print(f"Open {paths['report']} in a browser: what the crowd said, and how far to trust it.", soft_wrap=True)


def _follow() -> Result:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    console = err()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting")

        def tell(step: tuple[int, int, str]) -> None:
            done, total, what = step
            progress.update(task, completed=done, total=total, description=what)

        return finish(run(), tell)


def _shares(result: Result) -> Table:
    """Return the busiest cells, by every method."""
    table = Table(title=f"Share of people in the {BUSIEST} busiest cells, in %", title_justify="left")
    table.add_column("cell", justify="right")
    table.add_column("true", justify="right", style="bold")
    for row in result.rows:
        table.add_column(row.name, justify="right")
    for cell in result.city.shares.argsort(kind="stable")[::-1][:BUSIEST]:
        shares = [result.city.shares[cell], *(row.probabilities[cell] for row in result.rows)]
        table.add_row(str(result.city.grid.labels[cell]), *(f"{100 * share:.2f}" for share in shares))
    return table


def _distances(result: Result) -> Table:
    """Return how far each answer is from the truth."""
    table = Table(title="Distance from the truth", title_justify="left")
    table.add_column("method")
    table.add_column("total variation", justify="right")
    table.add_column("earth mover (km)", justify="right")
    table.add_column("status", overflow="fold")
    for row in result.rows:
        table.add_row(row.name, f"{row.total_variation:.4f}", f"{row.earth_mover:.4f}", row.status)
    return table


def _verdict(result: Result) -> str:
    noisy = result.rows[0]
    best = min(result.rows[1:], key=lambda row: row.total_variation)
    if best.total_variation >= noisy.total_variation:
        return "\nNo method came closer to the truth than the noisy reports themselves."
    wrong, right = 100 * noisy.total_variation, 100 * best.total_variation
    return (
        f"\nCounting the noisy reports puts {wrong:.0f}% of the people where they are not; "
        f"{best.name} brings that down to {right:.0f}%. Nobody's own place is certain from the reports."
    )
