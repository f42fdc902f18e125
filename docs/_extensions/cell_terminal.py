"""The terminal in which cells of the site run their commands: what IPython does, with two differences.

A command that fails stops the build. And letters of several bytes stay whole: IPython decodes what has come so far,
and shows three question marks where a piece ends within a letter.
"""

from __future__ import annotations

import sys
from subprocess import CalledProcessError
from typing import Any

import pexpect

ROWS, COLUMNS = 24, 80


def use_terminal(shell: Any) -> None:
    """Let `!command` of a shell run in such a terminal."""

    def system(command: str) -> None:
        expanded = shell.var_expand(command, depth=1)
        child = pexpect.spawn(
            "/bin/sh",
            ["-c", expanded],
            encoding="utf-8",
            codec_errors="replace",
            dimensions=(ROWS, COLUMNS),
            timeout=None,
        )
        child.expect(pexpect.EOF)
        print(child.before, end="")  # noqa: T201
        sys.stdout.flush()
        child.close()
        status = child.exitstatus if child.signalstatus is None else -child.signalstatus
        shell.user_ns["_exit_code"] = status
        if status:
            raise CalledProcessError(status, command)

    shell.system = system
