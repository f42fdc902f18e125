"""What a command's help shows: its arguments by the names of the documentation, and no Python types.

Typer puts the type of every parameter beside its name. A flag takes no value, so that `<bool>` misleads, and
`<list[str]>` repeats in Python's words what the dots after a name say.
"""

from __future__ import annotations

from typing import Any

from typer import Context
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


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
