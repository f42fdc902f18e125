"""The reference: every public name is documented completely, by rules that a program can check.

Docstrings are read with numpydoc's parser. Their examples run in the same gate, by pytest's `--doctest-modules`.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
import functools
import importlib
import inspect
import re
import runpy
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numpydoc.docscrape import ClassDoc, FunctionDoc

import hubbub
import hubbub.client
from hubbub.core import validation

ROOT = Path(__file__).parent.parent
PAGES = runpy.run_path(str(ROOT / "docs" / "_extensions" / "api_pages.py"))

NAMES: dict[str, Any] = {name: getattr(hubbub, name) for name in hubbub.__all__ if name != "__version__"}
NAMES |= {f"client.{name}": getattr(hubbub.client, name) for name in ("Client", "ClientError")}
CLASSES: dict[str, type] = {name: thing for name, thing in NAMES.items() if inspect.isclass(thing)}
FUNCTIONS = {name: thing for name, thing in NAMES.items() if name not in CLASSES}
ERRORS = {
    kind.__name__: kind for kind in CLASSES.values() if issubclass(kind, hubbub.HubbubError | hubbub.client.ClientError)
}
BUILTIN_ERRORS = {"AttributeError", "ImportError", "KeyError", "OSError", "TypeError"}


def shown_methods() -> Iterator[tuple[str, Any]]:
    """The methods that pages of classes show, by the names of class and method."""
    for name, kind in CLASSES.items():
        for shown in PAGES["members_of"](kind).values():
            for method in [*shown["constructors"], *shown["methods"]]:
                yield f"{name}.{method}", getattr(kind, method)


METHODS = dict(shown_methods())
EVERYTHING = NAMES | METHODS


@functools.cache
def parsed(thing: Any) -> Any:
    """The sections of a docstring."""
    if inspect.isclass(thing):
        return ClassDoc(thing, config={"show_class_members": False})
    return FunctionDoc(thing)


def entries(thing: Any, section: str) -> list[str]:
    """What a section lists; one entry may name several parameters."""
    return [name.strip().lstrip("*") for entry in parsed(thing)[section] for name in entry.name.split(",")]


def signature_names(thing: Any) -> list[str]:
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def faults(rule: Callable[[Any], str], things: dict[str, Any]) -> dict[str, str]:
    """What a rule finds wrong, by name."""
    found = {name: rule(thing) for name, thing in things.items()}
    return {name: fault for name, fault in found.items() if fault}


# -- parameters, results, examples -----------------------------------------------------------------------------------


def wrong_parameters(thing: Any) -> str:
    """Every parameter of the signature is documented, and nothing else is."""
    documented, taken = entries(thing, "Parameters"), signature_names(thing)
    return "" if sorted(documented) == sorted(taken) else f"documents {documented}, takes {taken}"


def wrong_attributes(kind: type) -> str:
    """Every field of a result is an attribute; attributes may also be properties."""
    fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None
    held = {name for name in fields or signature_names(kind) if not name.startswith("_")}
    listed = entries(kind, "Attributes")
    missing = sorted(held - set(listed))
    unknown = [name for name in listed if name not in held and not hasattr(kind, name)]
    return f"Attributes lack {missing}, and {unknown} do not exist" if missing or unknown else ""


def wrong_class(kind: type) -> str:
    """A class that people build documents its parameters; one that they are given, its attributes."""
    if issubclass(kind, Warning) or (issubclass(kind, hubbub.HubbubError) and kind is not hubbub.HubbubError):
        return ""  # built like all errors
    if entries(kind, "Parameters") or inspect.isabstract(kind):
        return wrong_parameters(kind)
    return wrong_attributes(kind)


def test_parameters_are_those_of_the_signature() -> None:
    assert faults(wrong_parameters, FUNCTIONS) == {}
    assert faults(wrong_class, CLASSES) == {}
    assert faults(wrong_parameters, METHODS) == {}


def missing_result(function: Any) -> str:
    if parsed(function)["Returns"] or inspect.signature(function).return_annotation in (None, "None"):
        return ""
    return "no Returns"


def test_functions_and_methods_with_arguments_say_what_they_return() -> None:
    assert faults(missing_result, FUNCTIONS) == {}
    assert faults(missing_result, {name: each for name, each in METHODS.items() if signature_names(each)}) == {}


def wrong_summary(thing: Any) -> str:
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    summary = " ".join(parsed(thing)["Summary"])
    if not own or not summary.endswith("."):
        return f"no first sentence: {summary!r}"
    return "" if len(summary) < 130 else f"too long for a line of the index: {summary!r}"


def test_everything_has_a_first_sentence() -> None:
    assert faults(wrong_summary, EVERYTHING) == {}


def wrong_example(thing: Any) -> str:
    examples = doctest.DocTestParser().get_examples("\n".join(parsed(thing)["Examples"]))
    if not examples:
        return "no example"
    if any(doctest.SKIP in example.options for example in examples):
        return "an example that is skipped"
    return "" if any(example.want for example in examples) else "an example that shows nothing"


def test_every_name_has_an_example() -> None:
    assert faults(wrong_example, NAMES) == {}


def test_docstrings_name_pages_in_words() -> None:
    """`help` shows docstrings where there are no files."""
    assert [name for name, thing in EVERYTHING.items() if re.search(r"docs/|\.md\b", thing.__doc__)] == []


# -- errors ----------------------------------------------------------------------------------------------------------


def listed_errors(thing: Any) -> list[str]:
    return [entry.type or entry.name for entry in parsed(thing)["Raises"]]


def documented_errors(thing: Any) -> set[str]:
    """The errors in Raises, and the more special ones that these stand for."""
    general = tuple(ERRORS[name] for name in listed_errors(thing) if name in ERRORS)
    return {name for name, kind in ERRORS.items() if issubclass(kind, general)}


BEING_READ: list[Callable[..., Any]] = []  # functions may call each other


@functools.cache
def raised_by(function: Callable[..., Any]) -> frozenset[str]:
    """The errors of ours that a function raises itself, or by the checks of arguments that it calls.

    Checks are the functions of `core/validation.py`, those whose name begins with `check`, and private functions of the
    same module. Errors that come from further below (a file that cannot be read) are not seen here: the catalogue of
    mistakes has them.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tried = {id(node) for block in ast.walk(tree) if isinstance(block, ast.Try) for node in ast.walk(block)}
    found: set[str] = set()
    BEING_READ.append(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found |= raised_error(node.exc, function)
        elif isinstance(node, ast.Call) and id(node) not in tried:  # what is tried may be caught
            found |= refused_by(node, function)
    BEING_READ.remove(function)
    return frozenset(found & set(ERRORS))


def raised_error(call: ast.Call, function: Callable[..., Any]) -> set[str]:
    """The error in ``raise call``: a class, or what a function such as `validation.wrong` returns."""
    name = ast.unparse(call.func).rpartition(".")[2]
    maker = called_function(call, function)
    if name in ERRORS or maker is None:
        return {name}
    return stated_error(call) or {
        "SettingError" if maker is validation.wrong else str(inspect.signature(maker).return_annotation)
    }


def refused_by(call: ast.Call, function: Callable[..., Any]) -> set[str]:
    """The errors that a call raises, if it is a check."""
    check = called_function(call, function)
    if check is None or check in BEING_READ or check is validation.wrong:
        return set()
    if check.__module__ == validation.__name__:
        return stated_error(call) or {"SettingError"}
    is_private = check.__module__ == function.__module__ and check.__name__.startswith("_")
    if not is_private and not check.__name__.startswith("check"):
        return set()
    return stated_error(call) or set(raised_by(check))


def stated_error(call: ast.Call) -> set[str]:
    """The error that a call of a check asks for with ``error=``."""
    return {ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "error"}


def called_function(call: ast.Call, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function of hubbub that a call such as `check_epsilon(...)` or `validation.level(...)` names."""
    first, *rest = ast.unparse(call.func).split(".")
    value = vars(importlib.import_module(function.__module__)).get(first)
    for name in rest:
        value = getattr(value, name, None)
    if not inspect.isfunction(value):
        return None
    plain = inspect.unwrap(value)
    return plain if plain.__module__.startswith("hubbub") else None


def undocumented_errors(thing: Any) -> str:
    """What the code of a function, or of a class's constructor, raises without saying so."""
    if inspect.isclass(thing):
        own = [vars(thing).get(name) for name in ("__init__", "__post_init__")]
        sources = [each for each in own if inspect.isfunction(each) and each.__code__.co_filename != "<string>"]
    else:
        sources = [inspect.unwrap(getattr(thing, "__func__", thing))]
    raised = {error for source in sources for error in raised_by(source)}
    return ", ".join(sorted(raised - documented_errors(thing)))


def test_errors_in_the_code_are_in_raises() -> None:
    assert faults(undocumented_errors, EVERYTHING) == {}


def test_what_is_in_raises_is_an_error() -> None:
    unknown = {name: set(listed_errors(thing)) - {*ERRORS, *BUILTIN_ERRORS} for name, thing in EVERYTHING.items()}
    assert {name: errors for name, errors in unknown.items() if errors} == {}


def public_call(expression: str, where: str) -> str | None:
    """What public name an expression calls, if it is plain that the mistake is in that call."""
    calls = [node for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Call)]
    public = {ast.unparse(call.func).removeprefix("hb.") for call in calls} & set(EVERYTHING)
    named = {name for name in public if re.match(rf"{re.escape(name)}\(", where)}
    if len(named) == 1:
        return named.pop()
    return public.pop() if len(public) == len(calls) == 1 else None


def test_errors_in_the_catalogue_of_mistakes_are_in_raises() -> None:
    """Every mistake in `tests/mistakes/` calls something, and what it calls says that it may raise that error."""
    made, missing = 0, set()
    for path in sorted((ROOT / "tests" / "mistakes").glob("*.toml")):
        for mistake, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            called = public_call(table["do"].strip(), table["where"])
            made += called is not None
            if called is not None and table["error"] not in documented_errors(EVERYTHING[called]):
                missing.add(f"{called} raises {table['error']}: {mistake}")
    assert sorted(missing) == []
    assert made > 250


def test_the_rules_see_what_is_missing() -> None:
    """A rule that accepts everything would pass, too."""

    def public(level: float, size: int) -> int:
        """Do it

        Parameters
        ----------
        level
            A level.

        Raises
        ------
        ReportsError
            If it is too large.

        Examples
        --------
        >>> public(0.5, 3)
        """
        return round(validation.level(level, "public")) + size

    assert wrong_parameters(public) == "documents ['level'], takes ['level', 'size']"
    assert missing_result(public)
    assert wrong_summary(public)
    assert wrong_example(public) == "an example that shows nothing"
    assert undocumented_errors(hubbub.Grid.cell) == ""
    assert raised_by(hubbub.Grid.cell) == {"DomainError"}
    assert raised_by(inspect.unwrap(hubbub.audit)) == {"SettingError"}
    assert raised_by(vars(hubbub.Geometric)["__post_init__"]) == {"MechanismError"}
    assert documented_errors(public) == {"ReportsError", "ImpossibleReportError"}
    assert public_call("hb.audit(hb.Rappor(AGES, 1.0), draws=10)", "audit(draws=)") == "audit"
    assert public_call("hb.audit(hb.Rappor(AGES, -1.0))", "Rappor(epsilon=)") == "Rappor"
    assert public_call("hb.audit(hb.Rappor(AGES, -1.0))", "nowhere") is None


# -- the pages -------------------------------------------------------------------------------------------------------


def test_every_name_is_in_the_index_of_the_reference_once() -> None:
    text = (ROOT / "docs" / "reference" / "api" / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\{eval-rst\}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    listed = [line.strip() for block in blocks for line in block.splitlines() if re.fullmatch(r"   \w+", line)]
    assert sorted([*listed, "__version__"]) == sorted(hubbub.__all__)
    assert "`hubbub.__version__`" in text


def test_pages_hide_and_add_only_what_exists() -> None:
    chosen = [*PAGES["INTERNAL"], *(f"{kind}.{name}" for kind, added in PAGES["ADDED"].items() for name in added)]
    assert [name for name in chosen if not hasattr(CLASSES[name.partition(".")[0]], name.partition(".")[2])] == []


def test_pages_show_signatures_as_they_are_written() -> None:
    signature = PAGES["written_signature"]
    text, returned = signature(None, "function", "hubbub.audit", hubbub.audit, None, "()", "")
    assert text.startswith("(mechanism: Mechanism | Callable[[numpy.ndarray], object], *, domain: Domain | None = None")
    assert returned == "Audit"
    assert signature(None, "class", "hubbub.Audit", hubbub.Audit, None, "()", "") == ("", "")
    assert signature(None, "class", "hubbub.Warner", hubbub.Warner, None, "()", "") == (
        "(domain: Domain, p: float | Fraction | Decimal | str)",
        "",
    )
    lines = ["Audit it.", "", "Parameters", "----------", "draws", "    Many."]
    PAGES["note_steps"](None, "function", "hubbub.audit", hubbub.audit, None, lines)
    assert lines[2] == "``hubbub.audit.steps(...)`` yields progress and returns the same result."
    assert lines[4] == "Parameters"
