"""The program: commands, errors and exit codes (0 done, 1 the data or study is at fault, 2 wrong usage)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hubbub import __version__
from hubbub.cli import audit, check, collect, demo, estimate, merge, new, plan, privatize, report, reproduce
from hubbub.cli.help_layout import Command, Group
from hubbub.errors import HubbubError, SettingError

app = typer.Typer(
    name="hubbub",
    cls=Group,
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


app.command("demo", cls=Command)(demo.command)
app.command("new", cls=Command)(new.command)
app.command("privatize", cls=Command)(privatize.command)
app.command("collect", cls=Command)(collect.command)
app.command("merge", cls=Command)(merge.command)
app.command("estimate", cls=Command)(estimate.command)
app.command("check", cls=Command)(check.command)
app.command("plan", cls=Command)(plan.command)
app.command("audit", cls=Command)(audit.command)
app.command("report", cls=Command)(report.command)
app.command("reproduce", cls=Command)(reproduce.command)


def main() -> None:
    """Run a command; tell a mistake in five lines and no traceback."""
    try:
        app()
    except HubbubError as error:
        typer.echo(f"hubbub: {error}", err=True)
        sys.exit(2 if isinstance(error, SettingError) else 1)
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        sys.stderr.close()
        sys.exit(0)
