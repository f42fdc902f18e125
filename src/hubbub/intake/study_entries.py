"""The entries of a study file's tables: domains and mechanisms built from them, and written back.

Constructors do the checking; every message names the table and the entry.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from hubbub import mechanisms
from hubbub.client import (
    SHORT_NAMES,
    WAYS_TO_REPORT,
    ClientError,
    check_budget,
    metric_epsilon,
    part_budgets,
    short_name,
    spelt_out,
)
from hubbub.core.arrays import as_real
from hubbub.core.errors import HubbubError, MechanismError, StudyError, restated, shorten
from hubbub.core.text import kebab, listed, nearest_name, renaming
from hubbub.domains import Bins, Categories, Domain, Grid, Integers, Product
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.mechanism_kinds import KINDS, UNKNOWN, find_kind, kind_of, own_kinds
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.mechanisms.several_attributes import SeveralAttributes, plain_epsilon

T = TypeVar("T")

MAX_TRIED_ENTRIES = 100_000  # of the table of a class of one's own, up to which it is built when a study is read

DOMAINS: dict[str, type[Domain]] = {kebab(kind.__name__): kind for kind in (Categories, Integers, Bins, Grid, Product)}
MECHANISMS = KINDS  # hubbub's own
WAYS: dict[str, Callable[..., SeveralAttributes]] = {
    kind: each for kind, each in MECHANISMS.items() if issubclass(each, SeveralAttributes)
}
ATTRIBUTE_DOMAINS = {name: kind for name, kind in DOMAINS.items() if kind is not Product}
PART_MECHANISMS = {name: kind for name, kind in MECHANISMS.items() if name not in WAYS}


def full_kind(name: str) -> str:
    """Return the kind of mechanism that a name says completely: itself, or what a short name such as krr stands for.

    A short name that stands for more than a kind (blh) stays as it is.
    """
    short = short_name(name)
    kind, implied = SHORT_NAMES[short] if short else (name, {})
    return kind if all(value is None for value in implied.values()) else name


def build_domain(fields: Mapping[str, Any], where: str) -> Domain:
    """Return the domain that a table describes."""
    if fields.get("kind") == "product":
        return _build_product(fields, where)
    built: Domain = _build(fields, DOMAINS, where)
    return built


def _build_product(fields: Mapping[str, Any], where: str) -> Product:
    """Return the product of the attributes, in the order of the file unless `order` says another one."""
    check_known(fields, {"kind", "attributes", "order", "impossible"}, where)
    tables = table_of(fields, "attributes", where, f"{_heading(where)}.attributes.NAME")
    attributes: dict[str, Domain] = {}
    for name, entries in tables.items():
        place = _within(where, f"attributes.{name[:64]}")
        if not isinstance(entries, Mapping):
            raise StudyError(
                "an attribute needs a table of its own",
                where=_within(where, "attributes"),
                got=f"{name} = {shorten(entries)}",
                expected=f"a heading [{_heading(where)}.attributes.NAME] for each attribute",
                remedy="choose a name, and describe the attribute's values under that heading",
            )
        if entries.get("kind") == "product":
            raise StudyError(
                f"{name} is a product itself",
                where=f"{place}, kind",
                got="'product'",
                expected=", ".join(ATTRIBUTE_DOMAINS),
                remedy="list its attributes beside the others",
            )
        attributes[name] = _build(entries, ATTRIBUTE_DOMAINS, place)
    order = fields.get("order", list(attributes))
    named = isinstance(order, list) and all(isinstance(name, str) for name in order)
    if not named or sorted(order) != sorted(attributes):
        raise StudyError(
            "order does not name the attributes",
            where=f"{where}, order",
            got=shorten(order),
            expected=f"each of {listed(list(attributes)) if attributes else 'the attributes'} once",
            remedy="leave it out for the order in the file",
        )
    try:
        return Product({name: attributes[name] for name in order}, impossible=fields.get("impossible", ()))
    except HubbubError as error:
        raise restated(error, StudyError, where=f"{where}: {error.where}") from None


def build_mechanism(fields: Mapping[str, Any], where: str, domain: Domain, *, allow_code: bool = False) -> Mechanism:
    """Return the mechanism over `domain` that a table describes; `allow_code` imports classes that it names."""
    entries = _in_study(spelt_out, fields, where)
    if isinstance(kind := entries.get("kind"), str) and kind in WAYS:
        return _build_several(entries, where, domain, allow_code)
    return _build_one(entries, MECHANISMS, where, domain, allow_code)


def _build_one(
    entries: Mapping[str, Any], kinds: Mapping[str, type[Mechanism]], where: str, domain: Domain, allow_code: bool
) -> Mechanism:
    """Return a mechanism of one of some kinds of hubbub's, or of a kind that is not hubbub's own."""
    kind = entries.get("kind")
    if isinstance(kind, str) and kind not in MECHANISMS:
        found = find_kind(kind, f"{where}, kind", allow_code=allow_code)
        if found is not None:
            return _build_own(entries, kind, found, where, domain)
    built: Mechanism = _build(entries, kinds, where, domain)
    return built


def _build_own(
    entries: Mapping[str, Any], kind: str, builder: type[Mechanism], where: str, domain: Domain
) -> Mechanism:
    """Return a mechanism that is not hubbub's own: whatever its class raises becomes a message about the study."""
    try:
        if entries.get("epsilon") is not None:
            check_epsilon(entries["epsilon"], builder.__qualname__)
        built: Mechanism = _build(entries, {kind: builder}, where, domain)
        _check_own_domain(built, kind, where, domain)
        _try_out(built)
    except StudyError:
        raise
    except HubbubError as error:
        raise restated(error, StudyError, where=f"{where}: {error.where}") from error
    except Exception as cause:
        raise StudyError(
            f"the class of {kind} refuses these fields",
            where=where,
            got=f"{type(cause).__name__}: {cause}",
            expected=f"fields that {builder.__qualname__} accepts",
            remedy="correct the fields, or ask whoever wrote the class",
        ) from cause
    return built


def _check_own_domain(built: Mechanism, kind: str, where: str, domain: Domain) -> None:
    """Refuse a mechanism over something else than the study's domain."""
    if built.domain != domain:
        raise StudyError(
            f"the class of {kind} has another domain",
            where=where,
            got=shorten(built.domain, 100),
            expected="the domain that is its first argument",
            remedy="keep the first argument as `domain`",
        )


def _try_out(built: Mechanism) -> None:
    """Ask a mechanism for what every use of it needs, so that its mistakes are the study's; large tables wait."""
    name = type(built).__qualname__
    if math.isnan(as_real(built.epsilon)):
        raise MechanismError(
            "epsilon is not a number",
            where=f"{name}.epsilon",
            got=shorten(built.epsilon),
            expected="a number, infinity if nothing is promised",
            remedy="correct the fields, or ask whoever wrote the class",
        )
    if type(built).log_columns is not Mechanism.log_columns or built.outputs is None:
        return  # the table may be too large to build
    outputs = built.output_space.size
    if outputs is not None and outputs * len(built.domain) <= MAX_TRIED_ENTRIES:
        built.checked_matrix()


def _build_several(fields: Mapping[str, Any], where: str, domain: Domain, allow_code: bool) -> Mechanism:
    """Return a mechanism over several attributes from the tables of its parts."""
    kind = fields["kind"]
    product = domain.product
    if product is None:
        raise StudyError(
            f"{kind} needs several attributes",
            where=f"{where}, kind",
            got=f"a domain of kind {kebab(type(domain).__name__)}",
            expected='[domain] with kind = "product" and a table for each attribute',
            remedy="describe the attributes in [domain.attributes.NAME], or choose a mechanism for one attribute",
        )
    check_known(fields, {"kind", "epsilon", "parts", *WAYS_TO_REPORT[kind]}, where)
    tables = table_of(fields, "parts", where, f"{_heading(where)}.parts.NAME")
    _check_parts(tables, product, where)
    spelt: dict[str, Mapping[str, Any]] = {}
    for name in product.attributes:
        place = _within(where, f"parts.{name}")
        if not isinstance(tables[name], Mapping):
            raise StudyError(
                f"{name} needs a table of its own",
                where=_within(where, "parts"),
                got=f"{name} = {shorten(tables[name])}",
                expected=f"a heading [{_heading(place)}] with the kind of its mechanism",
                remedy="write the mechanism's kind and epsilon under that heading",
            )
        spelt[name] = _in_study(spelt_out, tables[name], place)
    total = fields.get("epsilon")
    budgets = _in_study(part_budgets, kind, total, spelt, where)
    parts: dict[str, Mechanism] = {}
    for name, own in product.attributes.items():
        place = _within(where, f"parts.{name}")
        entries = _with_budget(spelt[name], budgets.get(name), own, place, allow_code)
        parts[name] = _build_one(entries, PART_MECHANISMS, place, own, allow_code)
    if total is not None and not budgets:
        _in_study(check_budget, kind, total, {name: plain_epsilon(part) for name, part in parts.items()}, where)
    more = {name: fields[name] for name in WAYS_TO_REPORT[kind] if name in fields}
    try:
        return WAYS[kind](product, **parts, **more)
    except HubbubError as error:
        raise restated(error, StudyError, where=f"{where}: {error.where}") from None


def _in_study(check: Callable[..., T], *arguments: Any) -> T:
    """Return what a function of the client returns; its errors become the study's."""
    try:
        return check(*arguments)
    except ClientError as error:
        raise restated(error, StudyError) from None


def _check_parts(tables: Mapping[str, Any], domain: Product, where: str) -> None:
    """Refuse parts that are not one for each attribute."""
    missing = [name for name in domain.attributes if name not in tables]
    spare = [name for name in tables if name not in domain.attributes]
    if not missing and not spare:
        return
    names = listed(list(domain.attributes))
    raise StudyError(
        f"{missing[0]} has no mechanism" if missing else "no such attribute",
        where=_within(where, "parts"),
        got=f"parts for {listed(list(tables))}" if missing and tables else "no part" if missing else shorten(spare[0]),
        expected=f"a table for each of {names}",
        remedy=(
            renaming(spare, missing, f"add [{_heading(where)}.parts.{missing[0]}] with its kind")
            if missing
            else "leave it out, or add the attribute to the domain"
        ),
    )


def _with_budget(
    entries: Mapping[str, Any], budget: float | None, domain: Domain, where: str, allow_code: bool
) -> Mapping[str, Any]:
    """Return the entries of a part with the epsilon that its part of a total makes."""
    if budget is None:
        return entries
    kept, kind = {name: value for name, value in entries.items() if name != "share"}, entries.get("kind")
    found = find_kind(kind, f"{where}, kind", allow_code=allow_code) if isinstance(kind, str) else None
    metric = found is not None and found.metric
    return {**kept, "epsilon": metric_epsilon(budget, domain.diameter) if metric else budget}


def _heading(where: str) -> str:
    """Return the heading of the table that a message is about."""
    return where.rpartition("[")[2].rstrip("]")


def _within(where: str, name: str) -> str:
    """Return the place of a table inside another one."""
    return f"{where.rstrip(']')}.{name}]"


def _build(fields: Mapping[str, Any], kinds: Mapping[str, Any], where: str, domain: Domain | None = None) -> Any:
    """Return the domain that a table describes, or the mechanism over `domain`."""
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        others = [] if domain is None else own_kinds()
        raise StudyError(
            "the kind is missing" if kind is None else "no such kind",
            where=f"{where}, kind",
            got="nothing" if kind is None else shorten(kind),
            expected=", ".join([*kinds, *others]),
            remedy=nearest_name(
                kind, kinds if domain is None else [*kinds, *SHORT_NAMES, *others], "choose one of these"
            ),
            code="" if domain is None else UNKNOWN,
        )
    entries = {name: value for name, value in fields.items() if name != "kind"}
    if domain is None:
        if isinstance(entries.get("cell"), list):
            entries["cell"] = tuple(entries["cell"])
        builder, over = kinds[kind].constructor(entries), {}
    else:
        builder = kinds[kind]
        over = {next(iter(inspect.signature(builder).parameters)): domain}  # whatever the domain is called there
    accepted = {name: parameter for name, parameter in inspect.signature(builder).parameters.items() if name != "box"}
    check_known(entries, set(accepted) - set(over), where)
    for name, parameter in accepted.items():
        if parameter.default is inspect.Parameter.empty and name not in entries and name not in over:
            raise StudyError(
                f"{name} is missing",
                where=where,
                got=f"only {', '.join(entries) or 'the kind'}",
                expected=f"{name} = ...",
                remedy="add it; `hubbub new` writes a commented example",
            )
    try:
        return builder(**over, **entries)
    except StudyError:
        raise
    except HubbubError as error:
        raise restated(error, StudyError, where=f"{where}: {error.where}") from None


def table_of(document: Mapping[str, Any], name: str, where: str, heading: str = "") -> Mapping[str, Any]:
    """Return a table that must be there; `heading` is what it is called in the file, where that is not its name."""
    heading = heading or name
    table = document.get(name)
    if not isinstance(table, Mapping):
        raise StudyError(
            f"the study has no [{heading}]" if table is None else f"[{heading}] is not a table",
            where=where,
            got="nothing" if table is None else shorten(table),
            expected=f"a table [{heading}]",
            remedy=f"add it under a heading [{heading}]; `hubbub new` writes a commented example",
        )
    return table


def check_known(fields: Mapping[str, Any], known: set[str], where: str) -> None:
    """Refuse entries that would be ignored."""
    for name in fields:
        if name not in known:
            raise StudyError(
                "unknown entry",
                where=where,
                got=shorten(name),
                expected=", ".join(sorted(known)),
                remedy="check its spelling; entries that would be ignored are refused",
            )


def described_fields(described: Domain | Mechanism, *, as_written: bool = False) -> dict[str, Any]:
    """Return what defines a domain or mechanism, in plain JSON values.

    That is its part of the canonical form, from which fingerprints are made. What is read back is a matter of its own
    (`as_written`): of a matrix the rows that give the same bytes again, and where it is from.
    """
    fields: dict[str, Any]
    if isinstance(described, Domain):
        fields = described.fields()
    elif isinstance(described, mechanisms.Matrix):
        rows = described.rows_to_write if as_written else described.probabilities
        fields = {"outputs": described.outputs.tolist(), "probabilities": rows.tolist()}
        if described.metric:
            fields["metric"] = True
        if as_written and described.origin:
            fields["origin"] = described.origin
    elif isinstance(described, SeveralAttributes):
        fields = {
            "parts": {name: described_fields(part, as_written=as_written) for name, part in described.parts.items()},
            **described.fields(),
        }
    elif type(described) not in MECHANISMS.values():
        fields = _own_fields(described)
    else:
        fields = _signature_fields(described)
        if isinstance(described, mechanisms.RandomizedResponse):  # given by one of them, and the other follows
            fields.pop("p" if described.p is None else "epsilon", None)
        if isinstance(described, mechanisms.BloomRappor):
            implied = ("f", "p", "q") if described.f is None else ("epsilon", "first")
            fields = {name: value for name, value in fields.items() if name not in implied and value is not None}
        fields = {name: str(value) if isinstance(value, Fraction) else value for name, value in fields.items()}
    assert all(not isinstance(value, float) or math.isfinite(value) for value in fields.values())  # noqa: S101
    kind = kebab(type(described).__name__) if isinstance(described, Domain) else kind_of(type(described))
    return {"kind": kind, **fields}


def _signature_fields(described: Mechanism) -> dict[str, Any]:
    """Return the attributes that are called as the arguments of a class, but for the domain."""
    names = list(inspect.signature(type(described)).parameters)[1:]
    fields = {name: getattr(described, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _own_fields(described: Mechanism) -> dict[str, Any]:
    """Return the same for a class that is not hubbub's own; refuse what no study file can hold."""
    try:
        fields = {name: _plain(value) for name, value in _signature_fields(described).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise StudyError(
            "a field of this mechanism cannot be written to a study",
            where=type(described).__qualname__,
            got=str(error),
            expected="an attribute for each argument: a text, a finite number, true or false, or a list of these",
            remedy="make it a frozen dataclass with such fields",
        ) from None
    if isinstance(fields.get("epsilon"), int):  # 1 and 1.0 are one epsilon
        fields["epsilon"] = float(fields["epsilon"])
    return fields


def _plain(value: object) -> Any:
    """Return a value as TOML and JSON hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError(f"{shorten(value)}")
