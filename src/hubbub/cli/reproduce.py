"""``hubbub reproduce``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.progress import TimeRemainingColumn as TimeLeft

from hubbub.cli.console import err, out
from hubbub.core.progress import Progress, finish

if TYPE_CHECKING:
    from hubbub.paper import Reproduction

SILENT_TENTHS = 10  # without a terminal, a line at each tenth of the work


def command(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE...", help="Names of figures; none: all.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the gallery.")] = Path("hubbub-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Few runs and settings: about a minute.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check-ins as SNAP publishes them, or points with lat and lon.")
    ] = None,
    counts: Annotated[Path | None, typer.Option(metavar="FILE", help="A table x,y,count instead.")] = None,
    zone: Annotated[
        str | None, typer.Option(metavar="SOUTH,WEST,NORTH,EAST", help="Part of the map; the paper's if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides every number: the same seed gives the same files.")] = 1,
    processes: Annotated[int, typer.Option(help="Number of measuring processes.")] = 2,
) -> None:
    """Run every experiment of the paper and compare its claims with the results, in a gallery to open in a browser.

    Stopped and started again, it continues where it was.
    """
    # Half of the experiments' modules are of no use to any other command.
    from hubbub.paper import PAPER_ZONE, parse_zone, reproduce

    run = reproduce.steps(
        output,
        figures or (),
        quick=quick,
        data=data,
        counts=counts,
        zone=PAPER_ZONE if zone is None else parse_zone(zone),
        seed=seed,
        processes=processes,
    )
    try:
        with _telling() as tell:
            found = finish(run, tell)
    except KeyboardInterrupt:
        run.close()
        err().print(
            f"\nStopped. What was measured is kept in {output}: the same command continues there.", soft_wrap=True
        )
        raise typer.Exit(130) from None
    _show(found)


@contextmanager
def _telling() -> Iterator[Callable[[Progress], None]]:
    """Show a bar with the time left; where nobody watches a terminal, a line now and then."""
    console = err()
    if not console.is_terminal:
        told: dict[str, int] = {"tenths": 0, "total": 0}

        def say(step: Progress) -> None:
            if step.total == 0:
                console.print(step.what, soft_wrap=True)
            tenths = SILENT_TENTHS * step.done // max(step.total, 1)
            if step.total == told["total"] and tenths > told["tenths"]:
                console.print(f"{100 * step.done // step.total}%: {step.what}", soft_wrap=True)
            told.update(tenths=tenths, total=step.total)

        yield say
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), BarColumn(bar_width=24), TaskProgressColumn(), TimeElapsedColumn(), TimeLeft(), text)
    with ProgressBar(*columns, console=console, transient=True, speed_estimate_period=120.0) as progress:
        bars: dict[int, object] = {}  # one for each kind of work: each has its own total

        def draw(step: Progress) -> None:
            if step.total == 0:
                console.print(step.what, soft_wrap=True)
                return
            if step.total not in bars:
                for old in progress.task_ids:
                    progress.remove_task(old)
                bars[step.total] = progress.add_task(step.what, total=step.total)
            progress.update(progress.task_ids[0], completed=step.done, description=step.what)

        yield draw


def _show(found: Reproduction) -> None:
    from hubbub.paper.judging import VERDICTS

    console = out()
    place = found.place
    if place.synthetic:
        told = (
            "These people are invented: the paper's numbers of San Francisco cannot be compared (see --data, --counts)."
        )
        console.print(told, soft_wrap=True)
    for verdict in VERDICTS:
        own = [finding.claim for finding in found.findings if finding.verdict == verdict]
        if own:
            console.print(f"\n{verdict.capitalize()}: {len(own)} of {len(found.findings)} claims", style="bold")
            console.print(*(f"  {claim.says} ({claim.figure})" for claim in own), sep="\n", soft_wrap=True)
    console.print(f"\nWhat was measured, with every figure: open {found.folder.gallery} in a browser.", soft_wrap=True)
