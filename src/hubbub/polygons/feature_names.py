"""What regions are called: by a property of their features, or by numbers."""

from __future__ import annotations

import math
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
    "title", "id", "code", "geoid",
)  # fmt: skip
MAX_NAMED_PROPERTIES = 12  # in a message


def feature_names(features: FeatureList, wanted: object) -> tuple[tuple[str, ...], str]:
    """Return the names of all regions, and a note if they are mere numbers."""
    if wanted is not None:
        return _names_by(features, wanted), ""
    properties = {str(key): None for feature in features.features for key in feature.properties}
    rank = {name: place for place, name in enumerate(NAME_PROPERTIES)}
    for name in sorted((key for key in properties if key.lower() in rank), key=lambda key: rank[key.lower()]):
        names = [_text(feature.properties.get(name)) for feature in features.features]
        if _are_distinct(names):
            return tuple(names), ""
    names = [_text(feature.identifier) for feature in features.features]
    if _are_distinct(names):
        return tuple(names), ""
    numbered = tuple(str(place + 1) for place in range(len(names)))
    note = "The regions are numbered: no property of theirs is a name that each has by itself."
    return numbered, note if len(names) > 1 or properties else ""


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
