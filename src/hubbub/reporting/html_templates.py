"""HTML from Jinja templates that escape everything they insert, and the policy under which a page's scripts may run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from hubbub.core.text import percent, plural
from hubbub.reporting.visible_text import visible, visible_lines

if TYPE_CHECKING:
    from jinja2 import Environment

BASE_TEMPLATE = "base.html"  # of this package: the pages of all packages extend it


@cache
def read_asset(package: str, name: str) -> str:
    """Return the text of a file that ships with a package; `name` may have folders, separated by slashes."""
    return files(package).joinpath(*name.split("/")).read_text(encoding="utf-8")


@cache
def environment(package: str) -> Environment:
    """Return the templates of a package, and the base template that all pages extend."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # takes a twentieth of a second to load

    def load(name: str) -> str:
        return read_asset("hubbub.reporting" if name == BASE_TEMPLATE else package, f"templates/{name}")

    made = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"visible": visible, "visible_lines": visible_lines, "percent": percent, "plural": plural}
    return made


def render(package: str, template: str, **content: object) -> str:
    """Return a page: the same text for the same content and version."""
    return environment(package).get_template(template).render(version=version("hubbub"), **content)


def content_policy(scripts: Sequence[str]) -> str:
    """Return the Content-Security-Policy under which exactly these scripts run and nothing is fetched.

    Styles are allowed: the charts set their own, which cannot be known in advance. Pictures are drawn from data of the
    page itself.
    """
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
