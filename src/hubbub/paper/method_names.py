"""What methods are called where people read."""

from __future__ import annotations

METHOD_NAMES = {
    "noisy": "noisy reports",
    "inv-n": "INV-N",
    "inv-p": "INV-P",
    "mle": "exact maximum",
    "auto": "auto",
}


def method_name(method: str) -> str:
    """Return a method's name in tables and pictures.

    >>> method_name("em 0.1"), method_name("mle")
    ('EM (delta 0.1)', 'exact maximum')
    """
    return f"EM (delta {method.removeprefix('em ')})" if method.startswith("em ") else METHOD_NAMES.get(method, method)


def method_in_sentence(method: str) -> str:
    """Return the name with its article, where it has one."""
    return f"the {method_name(method)}" if method in ("noisy", "mle") else method_name(method)
