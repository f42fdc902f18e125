"""The most frequent words of people, where nobody can list the words."""

from hubbub.discovery.api import discover
from hubbub.discovery.prefix_search import PrefixSearch
from hubbub.discovery.result import Discovery, SearchRound

__all__ = ["Discovery", "PrefixSearch", "SearchRound", "discover"]
