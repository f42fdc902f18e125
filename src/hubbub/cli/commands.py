"""The commands, imported when they are called, and their help: values named as in the documentation, no types.

A command is the function `command` in the module of its name, with underscores for hyphens. Only the one that is called
is imported, and it imports what it works with when it runs: help waits for none of the libraries.

Typer shows the type of every parameter beside its name: `<path>`, `<list[str]>`, and `<bool>` beside flags, which take
no value. Here options show what stands for their value, and arguments only their names.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import typer
from typer import Context
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

COMMANDS = (
    "demo",
    "new",
    "privatize",
    "export-client",
    "serve",
    "collect",
    "merge",
    "estimate",
    "check",
    "resolve",
    "compare",
    "trend",
    "independence",
    "discover",
    "design",
    "plan",
    "audit",
    "report",
    "synthesize",
    "reproduce",
)  # in the order of the help: first look, then the way of a study
LISTING = "hubbub.cli.commands.LISTING"  # in the memory of a call: its commands are shown, not run
METAVARS = {"Path": "PATH", "int": "N", "float": "X", "str": "TEXT"}  # where an option names nothing better


def module_of(name: str) -> str:
    """Return the module of a command."""
    return f"hubbub.cli.{name.replace('-', '_')}"


class Command(TyperCommand):
    """A command whose help reads as the documentation does."""

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]  # Typer's own classes have no public name
        """Return the parameters, each with what is shown of it."""
        return [_shown(parameter) for parameter in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Context) -> list[str]:  # type: ignore[override]
        """Return the words of the usage line: options, then arguments in capitals."""
        arguments = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, TyperArgument)]
        return [self.options_metavar or "", *(_usage(argument) for argument in arguments)]

    def format_options(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """Show the arguments, the command's own options, and below them the options that it shares with others."""
        panels: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            panel = "Arguments" if isinstance(parameter, TyperArgument) else parameter.rich_help_panel or "Options"
            if record := parameter.get_help_record(ctx):
                panels.setdefault(panel, []).append(record)
        for panel in sorted(panels, key=("Arguments", "Options").__contains__, reverse=True):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


class CommandGroup(TyperGroup):
    """The program itself: its commands, and its own flags."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, name: str) -> Any:  # type: ignore[override]
        """Import one command; None where there is none of that name."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(module_of(name)).command
        if LISTING in ctx.meta:
            return TyperCommand(name, short_help=(inspect.getdoc(command) or "").partition("\n\n")[0])
        program = typer.Typer(add_completion=False, rich_markup_mode=None)
        program.command(name, cls=Command)(_with_shared_options(command))
        return typer.main.get_command(program)

    def format_help(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """Show what each command does; building their parameters, too, would take most of the time."""
        ctx.meta[LISTING] = True
        super().format_help(ctx, formatter)

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]
        """Return the parameters, each with what is shown of it."""
        return [_shown(parameter) for parameter in super().get_params(ctx)]


def _with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the fields of a dataclass as options, wherever a parameter is a dataclass."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }

    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    parameters = []
    for name, parameter in signature.parameters.items():
        options = inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [parameter]
        parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    run.__doc__ = command.__doc__
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    return run


def _shown(parameter: Any) -> Any:
    """Return a parameter with what stands for its value in the help instead of the type that Typer would show."""
    if isinstance(parameter, TyperArgument):
        vars(parameter)["display_type_rich"] = lambda ctx: None  # noqa: ARG005  # an argument's metavar is its name
    elif isinstance(parameter, TyperOption) and parameter.is_flag:
        parameter.metavar = ""
        parameter.default = bool(parameter.default)  # --help has None, for which Typer would load its validation
    elif isinstance(parameter, TyperOption) and parameter.metavar is None:
        parameter.metavar = METAVARS[parameter.bare_type()]
    return parameter


def _usage(argument: TyperArgument) -> str:
    name = (argument.metavar or argument.name or "").removesuffix("...").upper()
    several = "..." if argument.nargs != 1 else ""
    return f"{name}{several}" if argument.required else f"[{name}]{several}"
