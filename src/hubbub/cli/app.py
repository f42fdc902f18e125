"""The program: its options, its errors and its exit codes (0 done, 1 the data or study is at fault, 2 wrong usage)."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated, Any

import typer

from hubbub.cli.commands import CommandGroup
from hubbub.cli.console import use_utf8
from hubbub.core.errors import HubbubError, SettingError
from hubbub.core.redaction import redact

USAGE_ERROR = typer.BadParameter.__base__ or Exception  # what Typer raises for every wrong call; it has no public name

app = typer.Typer(
    name="hubbub",
    cls=CommandGroup,
    help="Hear the crowd, not the person: recover a population's distribution from privatized reports.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from hubbub import __version__

        typer.echo(f"hubbub {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Hear the crowd, not the person: recover a population's distribution from privatized reports."""


def main() -> None:
    """Run a command; tell a mistake in five lines and no traceback."""
    use_utf8()
    try:
        code = app(standalone_mode=False)
    except HubbubError as error:
        typer.echo(f"hubbub: {error}", err=True)
        sys.exit(2 if isinstance(error, SettingError) else 1)
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if isinstance(error, typer.Abort) and not isinstance(error.__cause__, EOFError):
            typer.echo("hubbub: stopped", err=True)
            sys.exit(1)
        if not isinstance(error, USAGE_ERROR):
            typer.echo(redact("".join(traceback.format_exception(error))), err=True)
            sys.exit(1)
        sys.exit(_tell_usage(error))
    sys.exit(code if isinstance(code, int) else 0)


def _tell_usage(error: Any) -> int:
    """Say how a command was called wrongly; arguments may be addresses with passwords in them."""
    message, context = redact(error.format_message()), error.ctx
    if context is not None and message == redact(context.get_help()):  # no command was named
        typer.echo(message)
        return int(error.exit_code)
    if context is not None:
        typer.echo(context.get_usage(), err=True)
        typer.echo(f"Try '{context.command_path} --help' for help.\n", err=True)
    typer.echo(f"Error: {message}", err=True)
    return int(error.exit_code)
