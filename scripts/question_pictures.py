"""Make the pictures of the question page that the docs show: the demo's question, on a phone.

Run: python scripts/question_pictures.py FOLDER (docs/pictures, for the real ones)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from browser import PHONE, started
from collectors import RunningCollector
from hubbub.intake.privatizing.client_document import client_document
from hubbub.serve.web_demo import STUDY_TEXT

PADDING = 24  # pixels below what a picture shows


def main() -> None:
    """Make both: an answer with examples, and what is sent of it."""
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as temporary, started() as browser:
        study = Path(temporary) / "study.toml"
        study.write_text(STUDY_TEXT, encoding="utf-8")
        collector = RunningCollector(study, f"sqlite:///{temporary}/reports.db", client_study=client_document(study))
        tab = browser.new_page(viewport={"width": PHONE, "height": 1500})
        tab.goto(collector.url)
        tab.get_by_text("bicycle").click()
        tab.locator("#example").click()
        tab.locator("#examples li").first.wait_for()
        for name, step, button in (("question-choose", "choose", "draw"), ("question-drawn", "drawn", "send")):
            box = tab.locator(f"#{step}").bounding_box()
            height = 0.0 if box is None else box["y"] + box["height"] + PADDING
            picture = tab.screenshot(clip={"x": 0, "y": 0, "width": PHONE, "height": height})
            (folder / f"{name}.png").write_bytes(picture)
            print(f"{name}.png: {len(picture):,} bytes")
            tab.locator(f"#{button}").click()
        collector.stop()


if __name__ == "__main__":
    main()
