"""The main job from end to end on a city that ships inside."""

from hubbub.demo.city import City, load_city
from hubbub.demo.run import METHODS, Result, Row, run
from hubbub.demo.write import prepare, write

__all__ = ["METHODS", "City", "Result", "Row", "load_city", "prepare", "run", "write"]
