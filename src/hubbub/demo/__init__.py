"""The demo: privatize, estimate and report on a city that ships with hubbub."""

from hubbub.demo.city import City, load_city
from hubbub.demo.output_files import prepare_folder, write_demo
from hubbub.demo.pipeline import METHODS, DemoResult, MethodResult, run_demo

__all__ = [
    "METHODS",
    "City",
    "DemoResult",
    "MethodResult",
    "load_city",
    "prepare_folder",
    "run_demo",
    "write_demo",
]
