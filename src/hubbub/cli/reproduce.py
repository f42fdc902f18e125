"""``hubbub reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import err, out
from hubbub.cli.progress_bar import follow

if TYPE_CHECKING:
    from hubbub.paper import Reproduction


def command(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="FIGURE...", help="Names of figures (default: all).")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the gallery.")] = Path(
        "hubbub-paper"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Few runs and settings: about a minute.")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check-ins as SNAP publishes them, or points with lat and lon.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Counts per cell, a table x,y,count, instead of --data.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option(metavar="SOUTH,WEST,NORTH,EAST", help="Part of the map; the paper's if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed: the same seed gives the same files.")] = 1,
    processes: Annotated[int, typer.Option(help="Number of worker processes.")] = 2,
) -> None:
    """Run every experiment of the paper and compare its claims with the results, in a gallery to open in a browser.

    If it is interrupted, the same command continues where it stopped.
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
        result = follow(run, "reproducing the paper", log=True)
    except KeyboardInterrupt:
        run.close()
        err().print(
            f"\nStopped. What was measured is kept in {output}: the same command continues there.", soft_wrap=True
        )
        raise typer.Exit(130) from None
    _show(result)


def _show(result: Reproduction) -> None:
    from hubbub.paper.judging import VERDICTS

    console = out()
    if result.place.synthetic:
        invented = "The people are synthetic, so the paper's numbers for San Francisco cannot be compared"
        console.print(f"{invented} (see --data, --counts).", soft_wrap=True)
    for verdict in VERDICTS:
        claims = [finding.claim for finding in result.findings if finding.verdict == verdict]
        if claims:
            console.print(f"\n{verdict.capitalize()}: {len(claims)} of {len(result.findings)} claims", style="bold")
            console.print(*(f"  {claim.says} ({claim.figure})" for claim in claims), sep="\n", soft_wrap=True)
    console.print(f"\nWhat was measured, with every figure: open {result.folder.gallery} in a browser.", soft_wrap=True)
