"""Content keys: they decide the order of blocks and the seeds of plans, so they must not follow where code lies."""

import importlib
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.serialization import Portable


@dataclass(frozen=True)
class Weight(Portable):
    """A value of somebody else's package."""

    grams: int


def moved(kind: type[Portable], module: str) -> Callable[..., Portable]:
    """The same class as it would be if its file lay elsewhere."""
    return type(kind.__name__, kind.__mro__[1:-1], {**vars(kind), "__module__": module})


@pytest.mark.parametrize("module", ["hubbub.domains.elsewhere", "hubbub.elsewhere", "hubbub"])
def test_moving_a_class_inside_hubbub_keeps_its_keys(module: str) -> None:
    here = hb.Integers(3, 7)
    there = moved(hb.Integers, module)(low=3, high=7)
    assert type(there).__module__ == module
    assert there.content_key == here.content_key


def test_classes_of_other_packages_are_told_apart_by_their_module() -> None:
    keys = {kind(grams=1).content_key for kind in (Weight, moved(Weight, "scales"), moved(Weight, "hubbubble.scales"))}
    assert len(keys) == 3


def test_a_class_of_another_package_never_shares_its_key_with_one_of_hubbub() -> None:
    own = hb.Integers(3, 7)
    assert moved(hb.Integers, "numbers")(low=3, high=7).content_key != own.content_key


def portable_classes(kind: type[Portable] = Portable) -> Iterator[type[Portable]]:
    for below in kind.__subclasses__():
        yield below
        yield from portable_classes(below)


def test_no_two_classes_of_hubbub_share_a_name() -> None:
    """Their keys name the class alone: two of one name and with equal fields would count as one."""
    for module in pkgutil.walk_packages(hb.__path__, "hubbub."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    own = {kind for kind in portable_classes() if f"{kind.__module__}.".startswith("hubbub.")}
    # Not those that tests pretend to have moved: their modules do not exist.
    own = {kind for kind in own if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind}
    counts = Counter(kind.__qualname__ for kind in own)
    assert len(counts) > 40
    assert [name for name, count in counts.items() if count > 1] == []


CATEGORIES = hb.Categories(["no", "yes", "unsure"])
LINE = hb.Integers(0, 3)
GRID = hb.Grid(2, 2, cells=[0, 1, 3])
MATRIX = hb.Matrix(LINE, ["a", "b"], [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.125, 0.875]])
REPORTS = hb.Reports.from_counts(hb.RandomizedResponse(CATEGORIES, 1.0), [5, 2, 4])

KEYS = {
    "categories": (CATEGORIES, "eb613a167cec3841"),
    "integers": (LINE, "601eadf0764d4825"),
    "grid": (GRID, "80a7d972417e1b45"),
    "randomized response": (hb.RandomizedResponse(CATEGORIES, 1.0), "5bcad858174672f5"),
    "geometric": (hb.Geometric(LINE, 0.5), "267fdc6899daf381"),
    "planar geometric": (hb.PlanarGeometric(GRID, 0.5), "cd43a2bafa52c3f3"),
    "matrix": (MATRIX, "2d0b006c9b688c5a"),
    "reports": (REPORTS, "a1c00d96a7acb0db"),
    "restricted reports": (REPORTS.restrict(["no", "yes"]), "9e431c046bf2a9d2"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_the_same_in_every_version(name: str) -> None:
    """A key that changes here changes numbers: the seeds of plans, and the last bits of estimates."""
    value, key = KEYS[name]
    assert value.content_key[:16] == key


def test_values_that_differ_have_different_keys() -> None:
    values = [value for value, _ in KEYS.values()]
    assert len({value.content_key for value in values}) == len(values)
    assert hb.Geometric(LINE, np.nextafter(0.5, 1)).content_key != hb.Geometric(LINE, 0.5).content_key
