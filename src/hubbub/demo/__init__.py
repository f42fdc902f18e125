"""The main job from end to end on a city that ships inside."""

from hubbub.demo.city import City, load_city
from hubbub.demo.output_files import prepare, write
from hubbub.demo.pipeline import METHODS, Result, Row, run

__all__ = ["METHODS", "City", "Result", "Row", "load_city", "prepare", "run", "write"]
