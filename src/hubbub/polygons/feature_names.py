"""What regions are called: by a property of their features, or by numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from hubbub.core.errors import RegionsError, shorten
from hubbub.core.text import listed
from hubbub.polygons.geojson_reading import Feature, FeatureList

# In the order of preference; letters of either case count as the same.
NAME_PROPERTIES = (
    "name", "nom", "nombre", "nome", "naam", "district", "borough", "neighborhood", "neighbourhood", "quarter", "ward",
    "bezirk", "stadtteil", "ortsteil", "quartier", "arrondissement", "barrio", "distrito", "quartiere", "municipality",
    "commune", "comune", "gemeinde", "county", "province", "state", "country", "region", "area", "zone", "label",
    "title",
)  # fmt: skip
IDENTIFIER_PROPERTIES = ("id", "code", "geoid")  # where there is nothing better
MAX_NAMED_PROPERTIES = 12  # in a message


def feature_names(features: FeatureList, wanted: object) -> tuple[tuple[str, ...], str]:
    """Return the names of all regions, and a note if they are mere numbers."""
    if wanted is not None:
        return _names_by(features, wanted), ""
    properties = list(dict.fromkeys(str(key) for feature in features.features for key in feature.properties))
    for key in _likely_names(properties):
        names = [_automatic_text(feature.properties.get(key), key) for feature in features.features]
        if _are_distinct(names):
            return tuple(names), ""
    names = [_text(feature.identifier) for feature in features.features]
    if _are_distinct(names):
        return tuple(names), ""
    numbered = tuple(str(place + 1) for place in range(len(names)))
    if not properties:
        return numbered, "The regions are numbered: they have no properties." if len(names) > 1 else ""
    shown = listed(properties, most=MAX_NAMED_PROPERTIES)
    return numbered, (
        f"The regions are numbered: of their properties ({shown}) none is known to be a name of its own for each. "
        "Choose one with name= (--region-name)."
    )


def _likely_names(properties: Sequence[str]) -> list[str]:
    """Return the properties that may be names, the likeliest first: usual names, names of several words, identifiers.

    >>> _likely_names(["OBJECTID", "id", "FLAECHE", "BEZIRK_NAME", "NTAName", "NAME_1", "district", "Name"])
    ['Name', 'district', 'BEZIRK_NAME', 'NTAName', 'NAME_1', 'id']
    """
    rank = {name: place for place, name in enumerate(NAME_PROPERTIES)}
    late = {name: place for place, name in enumerate(IDENTIFIER_PROPERTIES)}
    ranks = {}
    for key in properties:
        among = [rank[word] for word in _words(key) if word in rank]
        if key.lower() in rank:
            ranks[key] = (0, rank[key.lower()])
        elif among:
            ranks[key] = (1, min(among))
        elif key.lower() in late:
            ranks[key] = (2, late[key.lower()])
    return sorted(ranks, key=lambda key: ranks[key])


def _words(key: str) -> list[str]:
    """Return the words of a property's name, which underscores, digits and capitals divide."""
    divided = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", key)
    return re.split(r"[\W\d_]+", divided.lower())


def _automatic_text(value: object, key: str) -> str:
    """Return a name that nobody asked for: numbers only where they number regions, not where they measure them."""
    is_measured = key.lower() not in NAME_PROPERTIES + IDENTIFIER_PROPERTIES or (
        isinstance(value, float) and not value.is_integer()
    )
    return "" if is_measured and not isinstance(value, str) else _text(value)


def _names_by(features: FeatureList, wanted: object) -> tuple[str, ...]:
    """Return the names by a property, or say what is wrong with it."""
    names = []
    for feature in features.features:
        name = _text(feature.properties.get(wanted)) if isinstance(wanted, str) else ""
        if not name:
            raise _without_name(feature, wanted, features.features)
        names.append(name)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        places = [feature.where for feature, name in zip(features.features, names, strict=True) if name == repeated[0]]
        raise RegionsError(
            "two regions have the same name",
            where=places[1],
            got=f"{shorten(repeated[0])}, the {wanted} of {len(places)} features",
            expected="a name for each region",
            remedy="choose another property, or join what belongs together to one MultiPolygon (dissolve, in QGIS)",
        )
    return tuple(names)


def _without_name(feature: Feature, wanted: object, features: Sequence[Feature]) -> RegionsError:
    properties = list(dict.fromkeys(str(key) for one in features for key in one.properties))
    value = feature.properties.get(wanted) if isinstance(wanted, str) else None
    return RegionsError(
        "a region has no such name",
        where=feature.where,
        got=f"no property {shorten(wanted)}" if value is None else f"{wanted}: {shorten(value)}",
        expected=f"one of {listed(properties, most=MAX_NAMED_PROPERTIES)}" if properties else "features with names",
        remedy="name a property that is a text for every feature, or leave it out",
    )


def _text(value: object) -> str:
    """Return a name on one line; nothing for what is no name."""
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    return f"{value:.15g}" if isinstance(value, int | float) else ""


def _are_distinct(names: Sequence[str]) -> bool:
    return all(names) and len(set(names)) == len(names)
