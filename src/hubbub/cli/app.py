"""The program: commands, errors and exit codes (0 done, 1 the data or study is at fault, 2 wrong usage)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hubbub import __version__
from hubbub.cli import audit, check, collect, demo, estimate, merge, new, plan, privatize, report, reproduce
from hubbub.cli.show import use_utf8
from hubbub.errors import HubbubError, SettingError

app = typer.Typer(
    name="hubbub",
    help="Hear the crowd, not the person: recover a population's distribution from privatized reports.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hubbub {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Hear the crowd, not the person: recover a population's distribution from privatized reports."""


app.command("demo")(demo.command)
app.command("new")(new.command)
app.command("privatize")(privatize.command)
app.command("collect")(collect.command)
app.command("merge")(merge.command)
app.command("estimate")(estimate.command)
app.command("check")(check.command)
app.command("plan")(plan.command)
app.command("audit")(audit.command)
app.command("report")(report.command)
app.command("reproduce")(reproduce.command)


def main() -> None:
    """Run a command; tell a mistake in five lines and no traceback."""
    use_utf8()
    try:
        app()
    except HubbubError as error:
        typer.echo(f"hubbub: {error}", err=True)
        sys.exit(2 if isinstance(error, SettingError) else 1)
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        sys.stderr.close()
        sys.exit(0)
