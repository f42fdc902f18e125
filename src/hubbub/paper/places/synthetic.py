"""The city that ships with hubbub, for those who have no data at hand."""

from __future__ import annotations

import hashlib

from hubbub.demo import load_city
from hubbub.paper.places.place import Place, counts_bytes


def synthetic_place() -> Place:
    """Return the fictional city: 120,000 people, of similar size and concentration as the paper's zone.

    >>> city = synthetic_place()
    >>> city.users, city.holes
    (120000, 80)
    """
    city = load_city()
    people = int(city.people.sum())
    return Place(
        grid=city.grid,
        counts=city.people,
        name="synthetic city",
        source=f"synthetic: the fictional city that ships with hubbub, {people:,} people, all of them in the zone",
        synthetic=True,
        sha256=hashlib.sha256(counts_bytes(city.people)).hexdigest(),
    )
