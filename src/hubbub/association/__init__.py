"""Whether two attributes are related, and how strongly."""

from hubbub.association.api import independence
from hubbub.association.result import Independence

__all__ = ["Independence", "independence"]
