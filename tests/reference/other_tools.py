"""List the protocols of other tools from their sources: python other_tools.py FOLDER > other_tools.json.

The folder has the unpacked sources as `multi-freq-ldpy` (0.2.5), `pure-LDP` (1.2.0), `LDP_Protocols` (commit f7252b0)
and `libqif` (commit 55d7dcf). A protocol is a module of multi-freq-ldpy, a client of pure-LDP, a module or folder of
LDP_Protocols, and a mechanism or the module of a measure of libqif's Python package.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path


def multi_freq_ldpy(folder: Path) -> Iterator[str]:
    """Yield modules."""
    for path in folder.glob("src/multi_freq_ldpy/*/*.py"):
        if path.stem != "__init__":
            yield path.stem


def pure_ldp(folder: Path) -> Iterator[str]:
    """Yield what clients are called."""
    for path in folder.glob("pure_ldp/*/*/*_client.py"):
        yield from re.findall(r"^class (\w+)Client\(", path.read_text(), flags=re.MULTILINE)


def ldp_protocols(folder: Path) -> Iterator[str]:
    """Yield modules and folders; of the folder of repairs its modules."""
    for path in folder.iterdir():
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")) and path.name != "post-process"):
            yield path.stem
    for path in folder.glob("post-process/*.py"):
        if path.stem != "processor":
            yield path.stem


def libqif(folder: Path) -> Iterator[str]:
    """Yield mechanisms that stand for themselves, modules of those that are optimal for something, and measures."""
    for path in folder.glob("lib_python/src/qif/mechanism/*.pyi"):
        if path.stem in ("d_privacy", "geo_ind"):
            yield from re.findall(r"^def (\w+)", path.read_text(), flags=re.MULTILINE)
        elif path.stem != "__init__":
            yield path.stem
    for path in folder.glob("lib_python/src/qif/measure/*.pyi"):
        if path.stem not in ("__init__", "d_privacy"):
            yield path.stem


if __name__ == "__main__":
    sources = Path(sys.argv[1])
    tools = {
        "multi-freq-ldpy": multi_freq_ldpy,
        "pure-LDP": pure_ldp,
        "LDP_Protocols": ldp_protocols,
        "libqif": libqif,
    }
    found = {tool: sorted(set(names(sources / tool))) for tool, names in tools.items()}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
