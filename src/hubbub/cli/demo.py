"""``hubbub demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out
from hubbub.cli.progress_bar import follow

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.demo import DemoResult
    from hubbub.serve.web_demo import WebDemo

SHOWN_CELLS = 8


def command(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the files.")] = Path(
        "hubbub-demo"
    ),
    web: Annotated[
        bool, typer.Option("--web", help="Instead: a question page, its collector, and live results, in a browser.")
    ] = False,
    people: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="--web: how many simulated people answer; 1,000 by default."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0, help="--web: within how many seconds; 60 by default.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="--web: the port to listen at; any that is free by default.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="--web: open the question page in a browser.")] = False,
) -> None:
    """Privatize the locations of a city's people, recover the map by every method, and compare with the truth."""
    if web:
        _run_web(output, 1000 if people is None else people, 60.0 if seconds is None else seconds, port or 0, open_page)
        return
    if open_page or any(option is not None for option in (people, seconds, port)):
        raise typer.BadParameter(
            "these are about the demo in a browser", param_hint="--people, --seconds, --port, --open without --web"
        )
    from hubbub.demo import prepare_folder, run_demo, write_demo

    prepare_folder(output)
    result = follow(run_demo.steps(), "demo")
    paths = write_demo(result, output)
    console = out()
    console.print(_shares_table(result), _distances_table(result), sep="\n")
    console.print(_verdict(result))
    for what, path in paths.items():
        console.print(f"{what + ':':<11}{path}", soft_wrap=True)
    console.print(f"Next: hubbub estimate {paths['study']} {paths['reports']}", soft_wrap=True)
    console.print(f"Open {paths['report']} in a browser to see the map and how far to trust it.", soft_wrap=True)


def _run_web(folder: Path, people: int, seconds: float, port: int, open_page: bool) -> None:
    """Serve the demo in a browser until it is stopped."""
    from hubbub.cli.serve import needs_packages

    with needs_packages("hubbub demo --web"):
        from hubbub.serve.web_demo import run_web_demo
    console = out()

    def ready(demo: WebDemo) -> None:
        console.print(f"the question:  {demo.url}/", soft_wrap=True)
        console.print(f"live results:  {demo.url}/results", soft_wrap=True)
        console.print(f"their token:   {demo.token}", soft_wrap=True, highlight=False, markup=False)
        console.print(
            f"{people:,} simulated people answer within {seconds:g} s, with the {demo.client} client. Ctrl+C stops."
        )
        if open_page:
            import webbrowser

            webbrowser.open_new_tab(f"{demo.url}/")

    def log(sentence: str) -> None:
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)

    run_web_demo(folder, people=people, seconds=seconds, port=port, ready=ready, log=log)


def _shares_table(result: DemoResult) -> Table:
    """Return the shares of the busiest cells, by every method."""
    from rich.table import Column, Table

    title = f"Share of people in the {SHOWN_CELLS} busiest cells, in %"
    methods = (Column(method.name, justify="right") for method in result.methods)
    columns = (Column("cell", justify="right"), Column("true", justify="right", style="bold"), *methods)
    table = Table(*columns, title=title, title_justify="left")
    for cell in result.city.shares.argsort(kind="stable")[::-1][:SHOWN_CELLS]:
        shares = [result.city.shares[cell], *(method.probabilities[cell] for method in result.methods)]
        table.add_row(str(result.city.grid.labels[cell]), *(f"{100 * share:.2f}" for share in shares))
    return table


def _distances_table(result: DemoResult) -> Table:
    """Return how far each method's result is from the truth."""
    from rich.table import Column, Table

    distances = (Column(name, justify="right") for name in ("total variation", "earth mover (km)"))
    columns = (Column("method"), *distances, Column("status", overflow="fold"))
    table = Table(*columns, title="Distance from the truth", title_justify="left")
    for method in result.methods:
        table.add_row(method.name, f"{method.total_variation:.4f}", f"{method.earth_mover:.4f}", method.status)
    return table


def _verdict(result: DemoResult) -> str:
    noisy, *methods = result.methods
    best = min(methods, key=lambda method: method.total_variation)
    if best.total_variation >= noisy.total_variation:
        return "\nNo method came closer to the truth than the noisy reports themselves."
    return (
        f"\nCounting the noisy reports puts {100 * noisy.total_variation:.0f}% of the people in the wrong cell; "
        f"{best.name} brings this down to {100 * best.total_variation:.0f}%. "
        "No report reveals with certainty where a person is."
    )
