"""Hiding passwords in messages.

The address of a database may be passed in a wrong place: as a study, an output file or the name of a column. Any of
these may end up in a message. So every message is redacted when it is made, whatever it is about.
"""

from __future__ import annotations

import re

HIDDEN = "***"

# `Path` turns // into /, hence one slash or more; those of a database are known without any.
_SCHEME = r"(?:[A-Za-z][A-Za-z0-9+.-]{1,30}:/+|(?:postgres|postgresql|mysql|mariadb|mongodb):)"
# `scheme://name:password@host`. A password that was not encoded may hold anything, so it ends at the last @ of the
# line, but never inside another address. Hiding too much is better than showing a password.
_LOGIN = re.compile(rf"({_SCHEME}[^\s'\"/@:]*):(?:(?!{_SCHEME})[^\n])*@")
# `scheme://name:password`, where the rest was cut off or forgotten; up to five digits, or the word, are a port.
_CUT = re.compile(rf"({_SCHEME}[^\s'\"/@:\[\]]+):(?!(?:\d{{1,5}}|(?i:port))(?:[/?#,)\]\s'\"]|$))(?!\*\*\*)[^\s'\"/?#]+")
# `password=...`, in the parameters of an address or in libpq's own form, quoted or not.
_PARAMETER = re.compile(
    r"((?:pass(?:word|wd|phrase)?|pwd|secret|token|api_?key)[A-Za-z_]*\s*=\s*)('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s&'\"#;]+)",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return a text without the passwords in it.

    >>> redact("postgresql://app:hunter2@localhost/db#reports?password=hunter2")
    'postgresql://app:***@localhost/db#reports?password=***'
    >>> redact("postgresql://localhost:5432/db#reports")
    'postgresql://localhost:5432/db#reports'
    """
    if ":" in text:
        text = _hide_logins(text)
    return _PARAMETER.sub(rf"\g<1>{HIDDEN}", text) if "=" in text else text


def _hide_logins(text: str) -> str:
    text = _LOGIN.sub(rf"\g<1>:{HIDDEN}@", text)
    return _CUT.sub(rf"\g<1>:{HIDDEN}", text)
