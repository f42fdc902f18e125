"""The finite sets of true values that users hold."""

from hubbub.domains.base import Domain
from hubbub.domains.categories import Categories
from hubbub.domains.grid import Grid
from hubbub.domains.named_places import NamedPlaces
from hubbub.domains.numeric import Bins, Integers, LineDomain
from hubbub.domains.product import Product
from hubbub.domains.subset import Subset

__all__ = ["Bins", "Categories", "Domain", "Grid", "Integers", "LineDomain", "NamedPlaces", "Product", "Subset"]
