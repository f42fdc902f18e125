"""Pages about commands, from the program itself: what `--help` says is what they say.

Directives: `{command} NAME` is the usage line, what the command does, and its arguments; `{command-options} NAME` its
options; `{reading-options}` those that all commands take that read reports, described once; `{command-list}` a table of
all commands.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, ClassVar

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer import Context
from typer.core import TyperArgument, TyperOption

from hubbub.cli.app import app
from hubbub.cli.commands import COMMANDS
from hubbub.cli.options import READING, ReadingOptions

READING_PAGE = "reading-options.md"
READERS = frozenset(field.name for field in fields(ReadingOptions))
HOW_TO = {
    "Run every night": "nightly",
    "Use a cluster": "cluster",
    "Shares of districts": "maps",
}  # as the help names them
FLAG = re.compile(r"(?<![`\w-])(--?[a-z][a-z-]*)")  # in a sentence, where two hyphens would become a dash


class HelpOf:
    """What the program says of one command."""

    def __init__(self, name: str) -> None:
        program: Any = typer.main.get_command(app)
        outer = Context(program, info_name="hubbub")
        command = program.get_command(outer, name)
        if command is None:
            raise ValueError(f"hubbub has no command {name}")
        self.name = name
        self._context = Context(command, info_name=name, parent=outer)
        self.usage: str = command.get_usage(self._context).removeprefix("Usage: ")
        self.text: str = command.help or ""
        parameters = command.get_params(self._context)
        self.arguments = [each for each in parameters if isinstance(each, TyperArgument)]
        options = [each for each in parameters if isinstance(each, TyperOption) and each.name != "help"]
        self.reads_reports = {option.name for option in options} >= READERS
        is_shared = {option.name: self.reads_reports and option.rich_help_panel == READING for option in options}
        self.options = [option for option in options if not is_shared[option.name]]
        self.shared = [option for option in options if is_shared[option.name]]

    def lead(self) -> str:
        """Return usage, what the command does, and its arguments as Markdown."""
        arguments = "\n\n".join(
            f"`{(each.metavar or each.name or '').removesuffix('...')}`{'' if each.required else ' (optional)'}"
            f"{', one or more' if each.nargs != 1 and each.required else ''}\n: {_sentence(each.help)}"
            for each in self.arguments
        )
        return f"{_sentence(self.text)}\n\n```text\n{self.usage}\n```\n\n{arguments}"

    def option_list(self) -> str:
        """Return the options as Markdown, with a link to those that are described once."""
        text = self.list_of(self.options, f"hubbub {self.name}")
        if self.shared:
            names = ", ".join(f"`{_long(option)}`" for option in self.shared)
            text += f"\nAnd the [options that say how reports are read]({READING_PAGE}): {names}."
        return text

    def list_of(self, options: list[TyperOption], program: str) -> str:
        """Return options as Markdown, each with what it takes, what it does, and its default."""
        return f":::{{program}} {program}\n:::\n" + "".join(
            f"\n::::{{option}} {', '.join(sorted(option.opts, key=len))} {option.metavar or ''}\n"
            f"{_sentence(option.help)}{self._default(option)}\n::::\n"
            for option in options
        )

    def _default(self, option: TyperOption) -> str:
        default = option.get_default(self._context)
        if option.required:
            return " Required."
        if option.is_flag or default in (None, (), []):
            return ""
        return f" Default: `{default}`."


def _long(option: TyperOption) -> str:
    return max(option.opts, key=len)


def _sentence(text: str | None) -> str:
    """Return what the help says as Markdown: names of options are code, and end with a full stop."""
    marked = FLAG.sub(r"`\1`", (text or "").strip())
    marked = re.sub(r"how-to page: ([^)]+)", lambda match: f"[{match[1]}](../../how-to/{HOW_TO[match[1]]}.md)", marked)
    return marked if marked.endswith((".", ":")) else f"{marked}."


class CommandLead(SphinxDirective):
    """Usage, what a command does, and its arguments."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return what the program says."""
        return self.parse_text_to_nodes(HelpOf(self.arguments[0]).lead())


class CommandOptions(SphinxDirective):
    """The options of a command."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return what the program says."""
        return self.parse_text_to_nodes(HelpOf(self.arguments[0]).option_list())


class SharedOptions(SphinxDirective):
    """The options that all commands take that read reports."""

    def run(self) -> list[nodes.Node]:
        """Return what the program says of them, for any such command: they are the same objects."""
        estimate = HelpOf("estimate")
        return self.parse_text_to_nodes(estimate.list_of(estimate.shared, "hubbub"))


class CommandList(SphinxDirective):
    """A table of all commands."""

    def run(self) -> list[nodes.Node]:
        """Return a row for each command, with the first sentence of what it does."""
        rows = []
        for name in COMMANDS:
            first = _sentence(HelpOf(name).text.partition("\n\n")[0])
            rows.append(f"| [`{name}`]({name}.md) | {first} |\n")
        return self.parse_text_to_nodes("| command | what it does |\n|---|---|\n" + "".join(rows))


def setup(app: Sphinx) -> dict[str, bool]:
    """Name the directives."""
    app.add_directive("command", CommandLead)
    app.add_directive("command-options", CommandOptions)
    app.add_directive("reading-options", SharedOptions)
    app.add_directive("command-list", CommandList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
