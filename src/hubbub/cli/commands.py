"""The commands, imported when they are called, and their help: arguments named as in the documentation, no types.

A command is the function `command` in the module of its name. Only the one that is called is imported, so that none
waits for the libraries of the others.

Typer shows the type of every parameter beside its name. A flag takes no value, so `<bool>` misleads, and
`<list[str]>` repeats in Python's words what the dots after a name say.
"""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer import Context
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

COMMANDS = (
    "demo",
    "new",
    "privatize",
    "collect",
    "merge",
    "estimate",
    "check",
    "plan",
    "audit",
    "report",
    "reproduce",
)  # in the order of the help: first look, then the way of a study


class Command(TyperCommand):
    """A command whose help reads as the documentation does."""

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]  # Typer's own classes have no public name
        """Return the parameters, each with what is shown of it."""
        return [_shown(parameter) for parameter in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Context) -> list[str]:  # type: ignore[override]
        """Return the words of the usage line: options, then arguments in capitals."""
        arguments = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, TyperArgument)]
        return [self.options_metavar or "", *(_usage(argument) for argument in arguments)]


class CommandGroup(TyperGroup):
    """The program itself: its commands, and its own flags."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, name: str) -> Any:  # type: ignore[override]  # noqa: ARG002
        """Import one command; None where there is none of that name."""
        if name not in COMMANDS:
            return None
        program = typer.Typer(add_completion=False)
        program.command(name, cls=Command)(importlib.import_module(f"hubbub.cli.{name}").command)
        return typer.main.get_command(program)

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]
        """Return the parameters, each with what is shown of it."""
        return [_shown(parameter) for parameter in super().get_params(ctx)]


def _shown(parameter: Any) -> Any:
    """Return a parameter without the type that Typer would show for a flag or for a list of arguments."""
    if isinstance(parameter, TyperOption) and parameter.is_flag:
        parameter.metavar = ""
    elif isinstance(parameter, TyperArgument) and parameter.nargs != 1:
        vars(parameter)["display_type_rich"] = lambda ctx: None  # noqa: ARG005  # an argument's metavar is its name
    return parameter


def _usage(argument: TyperArgument) -> str:
    name = (argument.metavar or argument.name or "").removesuffix("...").upper()
    several = "..." if argument.nargs != 1 else ""
    return f"{name}{several}" if argument.required else f"[{name}]{several}"
