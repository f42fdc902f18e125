"""Columns of reports about several attributes: `output.NAME`, or `output.NAME.lat` and `output.NAME.lon` for places."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.domains import Domain, Product
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.attribute_outputs import AttributeOutputs

PLACE_ROLES = (("lat", "lon"), ("x", "y"))  # pairs of columns that hold a place
PREFIX = "output."


def attribute_spaces(mechanisms: Mapping[str, Mechanism]) -> list[AttributeOutputs]:
    """Return the outputs of those mechanisms that send an output for each attribute."""
    spaces = (mechanism.output_space for mechanism in mechanisms.values())
    return [space for space in spaces if isinstance(space, AttributeOutputs)]


def place_pairs(domain: Domain) -> tuple[tuple[str, str], ...]:
    """Return the pairs of coordinates by which values of a domain may come: on a map, in degrees before distances."""
    if domain.grid is None:
        return ()
    return PLACE_ROLES if domain.is_on_map else PLACE_ROLES[1:]


def attribute_roles(attributes: Mapping[str, Domain]) -> tuple[str, ...]:
    """Return the roles of the columns that may hold outputs of attributes."""
    roles = []
    for name, domain in attributes.items():
        roles += [PREFIX + name]
        roles += [f"{PREFIX}{name}.{axis}" for pair in place_pairs(domain) for axis in pair]
    return tuple(roles)


def roles_of_domain(domain: Domain) -> tuple[str, ...]:
    """Return the roles of columns of single attributes, in reports about values of a domain."""
    return attribute_roles(domain.attributes) if isinstance(domain, Product) else ()


def is_attribute_role(role: str) -> bool:
    """Whether a column holds outputs of one attribute."""
    return role.startswith(PREFIX)


def attribute_of(role: str) -> str:
    """Return the attribute that a column of a role is about; names of attributes have no dot in them."""
    return role.removeprefix(PREFIX).partition(".")[0]
