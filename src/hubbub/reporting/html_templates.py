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

OWN_PACKAGE = "hubbub.reporting"  # with base.html, which the pages of all packages extend


@cache
def read_asset(package: str, name: str) -> str:
    """Return the text of a file that ships with a package; `name` may have folders, separated by slashes."""
    return files(package).joinpath(*name.split("/")).read_text(encoding="utf-8")


@cache
def environment(package: str) -> Environment:
    """Return the templates of a package, and the base template that all pages extend."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # takes 50 milliseconds to load

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(OWN_PACKAGE)]),
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
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
