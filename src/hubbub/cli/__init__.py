"""The terminal: one thin module for each command."""

from hubbub.cli.app import main

__all__ = ["main"]
