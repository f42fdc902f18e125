"""The pages of public names: which members of a class they show, signatures as they are written, steps of long work."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypedDict

from docutils import nodes
from numpydoc.xref import DEFAULT_LINKS
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

import hubbub
from hubbub.core.serialization import Portable

# What people call of every domain and mechanism. The pages of the protocols show everything, for those who add one.
USED = {
    hubbub.Domain: ("labels", "unit", "diameter", "index", "distances"),
    hubbub.Mechanism: ("outputs", "matrix", "privatize", "channel", "spent"),
}
ADDED = {
    "Bins": ("locate",),
    "Grid": ("width", "height", "over", "cell", "locate"),
    "CrosswiseModel": ("chances",),
    "ForcedResponse": ("chances",),
    **dict.fromkeys(
        (
            "BloomRappor",
            "DBitFlip",
            "LongitudinalHashing",
            "LongitudinalRappor",
            "LongitudinalResponse",
            "LongitudinalUnary",
        ),
        ("permanent", "instantaneous", "spent_over_values"),
    ),
    "UnrelatedQuestion": ("chances",),
    "Warner": ("chances",),
}
# What hubbub's own modules ask of each other, in classes that people use.
INTERNAL = {
    *("Band.around", "Band.errors_note", "Band.leave_with"),
    *("Change.document", "Check.facts"),
    *("ClusterReports.evaluate", "ClusterReports.from_tasks"),
    *("Comparison.facts", "Comparison.has_all_values", "Comparison.largest"),
    *(
        "Estimate.facts",
        "Estimate.picture",
        "Estimate.remember_intervals",
        "GroupComparison.facts",
        "Identification.facts",
    ),
    *("Plan.assumed", "Plan.facts", "Plan.tables"),
    *("Regions.main_region", "Regions.position", "Regions.rest_over", "Regions.weights_over", "RegionShares.columns"),
    *("Reports.positions_of", "Reports.weighted", "Resolution.words"),
    *("SurveyWeights.build", "SurveyWeights.merge", "SurveyWeights.moved", "SurveyWeights.rows"),
    *("SurveyWeights.scaled", "SurveyWeights.score_covariance", "SurveyWeights.sums"),
    *("Tally.check_divided", "Tally.has_days", "Trend.facts", "Trend.most_changing"),
}
ALIASES = {  # types as their modules abbreviate them
    "Array": "numpy.ndarray",
    "Codes": "numpy.ndarray",
    "Floats": "numpy.ndarray",
    "Positions": "numpy.ndarray",
    "NDArray[np.bool_]": "numpy.ndarray",
    "NDArray[np.uint8]": "numpy.ndarray",
    "Randomness": "numpy.random.Generator | int | None",
    "Probability": "float | Fraction | Decimal | str",
    "np.": "numpy.",
    "Chart": "Literal['bars', 'line', 'map']",
}


class Members(TypedDict):
    """The members of a class that its page shows, in the order of the source."""

    constructors: list[str]
    properties: list[str]
    methods: list[str]


class PageMembers(TypedDict):
    """Members that people use, and members of a protocol that matter to those who add a class of their own."""

    used: Members
    protocol: Members


def members_of(kind: type) -> PageMembers:
    """Return the members of a class that its page shows."""
    shown = list(_public_members(kind))
    protocol: list[str] = []
    for base, used in USED.items():
        if issubclass(kind, base):
            protocol = [name for name in shown if name not in used] if kind is base else []
            shown = [*used, *ADDED.get(kind.__name__, ())]
    shown = [name for name in shown if f"{kind.__name__}.{name}" not in INTERNAL]
    return PageMembers(used=_divided(kind, shown), protocol=_divided(kind, protocol))


def class_names() -> list[str]:
    """Return the names of public classes, which sections link to; those of functions may be parameters, too."""
    return [name for name in hubbub.__all__ if inspect.isclass(getattr(hubbub, name))]


def all_members() -> dict[str, PageMembers]:
    """Return the shown members of every public class, by its full name."""
    return {f"hubbub.{name}": members_of(getattr(hubbub, name)) for name in class_names()}


def file_names() -> dict[str, str]:
    """Return names of files for classes that differ from a function in case only: some systems ignore case."""
    functions = {name for name in hubbub.__all__ if name.islower()}
    alike = [name for name in hubbub.__all__ if name not in functions and name.lower() in functions]
    return {f"hubbub.{name}": f"hubbub.{name}-class" for name in alike}


def _public_members(kind: type) -> Iterator[str]:
    """Yield what a class and its bases define: neither private, nor fields of dataclasses, nor Python's own."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "hubbub" and base is not Portable:
            for name, value in vars(base).items():
                is_member = inspect.isroutine(value) or isinstance(value, property | cached_property)
                if is_member and not name.startswith("_") and name not in fields:
                    fields.add(name)
                    yield name


def _divided(kind: type, names: list[str]) -> Members:
    members = Members(constructors=[], properties=[], methods=[])
    for name in names:
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property | cached_property):
            members["properties"].append(name)
        else:
            members["constructors" if isinstance(value, classmethod) else "methods"].append(name)
    return members


def written_signature(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: Any, signature: str | None, _returned: str
) -> tuple[str, str] | None:
    """Return a signature with its types as the source has them, abbreviations spelt out."""
    if signature is None:  # there is none to replace: a warning has Python's own
        return None
    if what in ("class", "exception") and "\nParameters\n" not in inspect.cleandoc(thing.__doc__ or ""):
        return "", ""  # nobody builds a result by hand: its attributes are what matters
    if what not in ("class", "exception", "function", "method"):
        return None
    try:
        written = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    if what == "method" and next(iter(written.parameters), "") in ("self", "cls"):
        written = written.replace(parameters=list(written.parameters.values())[1:])
    spelt = [
        parameter.replace(annotation=_Written(_spelt_out(parameter.annotation)))
        if parameter.annotation is not inspect.Parameter.empty
        else parameter
        for parameter in written.parameters.values()
    ]
    text = str(written.replace(parameters=spelt, return_annotation=inspect.Signature.empty))
    result = written.return_annotation
    return text, "" if result is inspect.Signature.empty or what in ("class", "exception") else _spelt_out(result)


class _Written:
    """A type that is printed as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _spelt_out(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    for short, long in ALIASES.items():
        end = "" if short.endswith((".", "]")) else r"\b"
        text = re.sub(rf"(?<![\w.]){re.escape(short)}{end}", long, text)
    return text.strip("'")


def note_steps(_app: Sphinx, what: str, name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Say of a function that may take long how to watch it, before the first section of its docstring."""
    if what != "function" or not hasattr(thing, "steps") or any(".steps(" in line for line in lines):
        return
    sections = [number for number, line in enumerate(lines) if line and set(line) == {"-"}]
    at = sections[0] - 1 if sections else len(lines)
    lines[at:at] = [f"``{name}.steps(...)`` yields progress and returns the same result.", ""]


def spell_out_properties() -> None:
    """Spell out the types of properties, which autodoc shows without asking.

    It takes a type as it is written if it cannot evaluate it, and modules know NumPy by another name.
    """
    for name in class_names():
        kind = getattr(hubbub, name)
        for shown in members_of(kind).values():
            for member in shown["properties"]:
                found = inspect.getattr_static(kind, member)
                getter = found.fget if isinstance(found, property) else found.func
                getter.__annotations__["return"] = _spelt_out(getter.__annotations__["return"])


class NameRole(SphinxRole):
    """A name in a docstring: a link to the page of a public class, code otherwise."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link or the code."""
        code = nodes.literal(self.rawtext, self.text, classes=["code"])
        if self.text.partition(".")[0] not in class_names():
            return [code], []
        target = f"hubbub.{self.text}"
        link = addnodes.pending_xref(
            "", code, refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=self.env.docname
        )
        return [link], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to autodoc, before numpydoc rearranges the docstrings."""
    DEFAULT_LINKS.clear()  # into Python's own documentation, which a site without network cannot look up
    spell_out_properties()
    app.add_role("public", NameRole())
    app.connect("autodoc-process-signature", written_signature)
    app.connect("autodoc-process-docstring", note_steps, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
