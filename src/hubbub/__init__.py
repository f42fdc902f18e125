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

_homes: dict[str, str] = {}


def __getattr__(name: str) -> object:
    """Load what a name needs when it is asked for: `hb.Integers` waits for no solver, `hubbub.client` for nothing."""
    if name == "__version__":  # the package may have been copied to a device, without what an installer notes of it
        return import_module("importlib.metadata").version("hubbub")
    if name == "__all__":
        return [*_places(), "__version__"]
    if name not in _places():
        short_names = import_module("hubbub.client").SHORT_NAMES
        kind = short_names.get(name.lower(), ("", {}))[0].title().replace("-", "")
        hint = f"; {name} is called {kind} here" if kind else ""
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}{hint}")
    globals()[name] = value = getattr(import_module(_places()[name]), name)
    return value


def _places() -> dict[str, str]:
    """Return the package of each public name: the imports of `hubbub.public`, read instead of run."""
    if not _homes:
        ast, util = import_module("ast"), import_module("importlib.util")
        source = util.find_spec("hubbub.public").loader.get_source("hubbub.public")
        if source is None:  # an installation without sources
            _homes.update(dict.fromkeys(import_module("hubbub.public").__all__, "hubbub.public"))
        else:
            imports = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
            _homes.update((alias.name, node.module) for node in imports for alias in node.names)
    return _homes


def __dir__() -> list[str]:
    """Return the public names and what every module has, for completion: not the parts that happen to be loaded."""
    special = [name for name in globals() if name.startswith("__") and name.endswith("__")]
    return sorted({*special, *_places(), "__version__"})
