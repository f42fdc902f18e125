"""Hear the crowd, not the person.

People report values that were obfuscated on their own device; hubbub recovers the population's original
distribution from those noisy reports, and says how far it can be trusted.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.public import *  # noqa: F403
    from hubbub.public import __all__ as __all__

    __version__: str


def __getattr__(name: str) -> object:
    """Load the library when its first name is asked for: `hubbub.client` on a device does without NumPy."""
    if name == "__version__":  # the package may have been copied to a device, without what an installer notes of it
        return import_module("importlib.metadata").version("hubbub")
    public = import_module("hubbub.public")
    if name == "__all__":
        return [*public.__all__, "__version__"]
    if name not in public.__all__:
        short_names = import_module("hubbub.client").SHORT_NAMES
        kind = short_names.get(name.lower(), ("", {}))[0].title().replace("-", "")
        hint = f"; {name} is called {kind} here" if kind else ""
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}{hint}")
    globals()[name] = value = getattr(public, name)
    return value


def __dir__() -> list[str]:
    """Return the public names and what every module has, for completion: not the parts that happen to be loaded."""
    special = [name for name in globals() if name.startswith("__") and name.endswith("__")]
    return sorted({*special, *import_module("hubbub.public").__all__, "__version__"})
