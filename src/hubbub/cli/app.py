"""The program: its options, its errors and its exit codes (0 done, 1 the data or study is at fault, 2 wrong usage)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hubbub.cli.commands import CommandGroup
from hubbub.cli.console import use_utf8
from hubbub.cli.failure import tell

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
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        sys.exit(tell(error, sys.argv[1:]))
    sys.exit(code if isinstance(code, int) else 0)
