"""Pages of the documentation: examples run, and print what the page shows."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from hubbub.client import DOMAINS, MECHANISMS, SHORT_NAMES, SURVEY_DESIGNS
from page_examples import COLUMNS, DATA, examples, ran, rewritten, tidy

ROOT = Path(__file__).parent.parent
QUICK = [
    "explanation/repeated-reports.md",
    "how-to/add-a-mechanism.md",
]
PAGES = [
    "design-mechanisms.md",
    "explanation/accuracy.md",
    "explanation/fakes.md",
    "explanation/intervals.md",
    "explanation/model.md",
    "explanation/repeated-reports.md",
    "explanation/trust.md",
    "explanation/uniqueness.md",
    "how-to/add-a-mechanism.md",
    "how-to/add-an-estimator.md",
    "how-to/audit-a-client.md",
    "how-to/audit.md",
    "how-to/benchmark.md",
    "how-to/check-the-fit.md",
    "how-to/choose-epsilon.md",
    "how-to/compare-groups.md",
    "how-to/compare-periods.md",
    "how-to/compare-several-groups.md",
    "how-to/find-resolution.md",
    "how-to/means.md",
    "how-to/mix-mechanisms.md",
    "how-to/plan-several-attributes.md",
    "how-to/plan.md",
    "how-to/privatize-in-a-browser.md",
    "how-to/privatize-on-a-device.md",
    "how-to/privatize.md",
    "how-to/quote-a-number.md",
    "how-to/rappor-files.md",
    "how-to/related-attributes.md",
    "how-to/reproduce.md",
    "how-to/several-answers.md",
    "how-to/several-attributes-one-group.md",
    "how-to/several-attributes.md",
    "how-to/shuffle.md",
    "how-to/spot-fakes.md",
    "how-to/weights.md",
    "how-to/words.md",
    "reference/mechanisms.md",
    "reference/study-file.md",
]
SHOWN = """# A page

```python
from pathlib import Path

print(Path("word.txt").read_text())
```
```text
something old
```

A block without output:

```sh
test -s word.txt
```

:::{dropdown} The data of this page
```python
from pathlib import Path

Path("word.txt").write_text("fresh")
```
:::
"""


def comparable(printed: str) -> str:
    """Return what was printed without the digits of certificates, which are rounding and differ between machines."""
    return re.sub(r"\b\d(\.\d+)?e-(0[89]|[1-9]\d)\b", "next to nothing", printed)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PAGES]
)
def test_examples_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert examples(text)
    with contextlib.chdir(tmp_path):
        printed = ran(text)
    for example, own in printed:
        assert comparable(own) == comparable(text[example.start : example.end]), example.code


def test_every_shown_output_is_compared() -> None:
    """A page whose examples print something must be listed above, or nobody would notice that it is out of date."""
    with_output = [
        str(page.relative_to(ROOT / "docs"))
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if any(example.end for example in examples(page.read_text(encoding="utf-8")))
    ]
    assert [name for name in with_output if name not in PAGES] == []


def test_a_page_is_run_with_its_data_first_and_an_old_output_is_found(tmp_path: Path) -> None:
    assert DATA in SHOWN
    with contextlib.chdir(tmp_path):
        ((example, printed),) = ran(SHOWN)
        assert SHOWN[example.start : example.end] == "something old\n"
        assert printed == "fresh\n"
        new = rewritten(SHOWN)
        assert new == SHOWN.replace("something old", "fresh")
        with pytest.raises(RuntimeError, match="exit 1"):
            ran("```sh\nfalse\n```\n")


def test_long_lines_are_broken_between_words() -> None:
    lines = tidy("\n" + "in short  " + "word " * 40 + "  \n┃ a table ┃  \n").splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert lines[1].startswith(" " * 10 + "word")
    assert lines[-1] == "┃ a table ┃"


def test_the_table_of_mechanisms_is_complete() -> None:
    """Every kind has a row with the domains it takes; every short name is there, and every field of a survey design."""
    page = (ROOT / "docs" / "reference" / "mechanisms.md").read_text(encoding="utf-8")
    table = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    rows = {cells[1].rpartition("`, `")[2].strip(" `"): cells for cells in table}
    for kind, domains in MECHANISMS.items():
        shown = rows[kind][3].strip()
        named = "two categories" if kind in SURVEY_DESIGNS else "all" if domains == DOMAINS else ", ".join(domains)
        assert shown == named, kind
        for field in SURVEY_DESIGNS.get(kind, ((), ""))[0]:
            assert f"`{field}`" in rows[kind][2], kind
    assert [name for name in SHORT_NAMES if f"`{name}`" not in page] == []
