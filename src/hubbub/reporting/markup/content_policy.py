"""What the page may do: run its own scripts, and nothing else; fetch nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence


def policy(scripts: Sequence[str]) -> str:
    """Return the Content-Security-Policy under which exactly these scripts run.

    Charts need styles of their own, which cannot be known in advance; pictures are drawn from data of the page.
    """
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
