"""A page in a real browser: what is broken, too wide, hard to read, or on top of something else."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no chromium on this machine"  # what browser tests say when they skip: conftest.py counts them
PATIENCE = 120  # seconds, then the browser is taken for dead: never a measure of the page
DARK = "(prefers-color-scheme: dark)"

# Runs in each copy of the page, and tells the frame around it what it found.
MEASURE = r"""
const settings = SETTINGS;
const shorten = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);

// What is seen of a rectangle: boxes that scroll cut off what lies outside of them.
function visible(rectangle, element) {
  let [left, top, right, bottom] = [rectangle.left, rectangle.top, rectangle.right, rectangle.bottom];
  for (let box = element; box && box !== document.body; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (style.clipPath !== "none") return null;
    if (style.overflowX !== "visible" || style.overflowY !== "visible") {
      const edge = box.getBoundingClientRect();
      [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
      [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
    }
  }
  return right - left > 1 && bottom - top > 1 ? {left, top, right, bottom} : null;
}

// Every visible line of text, with the element that it belongs to.
function lines() {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rectangle of range.getClientRects()) {
      const seen = visible(rectangle, element);
      if (seen) found.push({element, node, text: shorten(node.data), ...seen});
    }
  }
  return found;
}

// Lines of different texts on top of each other. The boxes of neighbouring lines may touch: two pixels are allowed.
function overlaps(found) {
  const pairs = [];
  const sorted = [...found].sort((one, other) => one.top - other.top);
  sorted.forEach((one, index) => {
    for (let next = index + 1; next < sorted.length && sorted[next].top < one.bottom - 2; next++) {
      const other = sorted[next];
      if (other.node === one.node) continue;
      if (Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2) pairs.push([one.text, other.text]);
    }
  });
  return pairs;
}

const parts = (colour) => {
  const numbers = colour.match(/[\d.]+/g).map(Number);
  return numbers.length === 3 ? [...numbers, 1] : numbers;
};
function behind(element) {
  const layers = [];
  for (let box = element; box; box = box.parentElement) {
    layers.push(parts(getComputedStyle(box).backgroundColor));
    if (layers.at(-1)[3] === 1) break;
  }
  if (layers.at(-1)[3] !== 1) layers.push([255, 255, 255, 1]);
  const over = (below, [r, g, b, a]) => [r, g, b].map((value, index) => value * a + below[index] * (1 - a));
  return layers.reverse().reduce(over, [255, 255, 255]);
}
function luminance(colour) {
  const [r, g, b] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
// The contrast ratio of WCAG 2 between a text and what lies behind it.
function contrast(element) {
  const ground = behind(element);
  const [r, g, b, a] = parts(getComputedStyle(element).color);
  const ink = [r, g, b].map((value, index) => value * a + ground[index] * (1 - a));
  const [low, high] = [luminance(ink), luminance(ground)].sort((one, other) => one - other);
  return (high + 0.05) / (low + 0.05);
}
function faint(found) {
  const seen = new Map();
  for (const {element, text} of found) {
    if (seen.has(element)) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(element);
    seen.set(element, ratio < (large ? 3 : 4.5) ? [text, Math.round(100 * ratio) / 100] : null);
  }
  return [...seen.values()].filter((entry) => entry);
}

// All of this is done before the frame around the page counts as loaded, and only then is it read.
addEventListener("load", () => {
  if (settings.opened) document.querySelectorAll("details").forEach((box) => { box.open = true; });
  const images = [...document.images];
  const root = document.documentElement, found = lines();
  parent.found[settings.name] = {
    page_width: root.scrollWidth,
    window_width: root.clientWidth,
    images: images.length,
    texts: found.length,
    broken: images.filter((image) => !image.naturalWidth).map((image) => image.getAttribute("src")),
    overlaps: overlaps(found),
    faint: faint(found),
    badges: Object.fromEntries([...document.querySelectorAll(".badge")].map((badge) => [
      shorten(badge.textContent),
      [getComputedStyle(badge).backgroundColor, badge.querySelector("use")?.getAttribute("href") ?? "",
       contrast(badge)],
    ])),
  };
});
"""

AROUND = r"""<!DOCTYPE html><meta charset="utf-8"><script>
var found = {};
addEventListener("load", () => { document.getElementById("found").textContent = JSON.stringify(found); });
</script><body><pre id="found"></pre>FRAMES</body>"""
FRAME = '<iframe src="{}" style="width: {}px; height: 800px; border: 0; display: block"></iframe>'


@dataclass(frozen=True)
class View:
    """A page as it is looked at. Pages are looked at in frames, which may be narrower than any window."""

    name: str
    page: Path
    width: int = 1280
    dark: bool = False
    opened: bool = True  # everything folded is unfolded


@dataclass(frozen=True)
class Look:
    """What a view of a page shows. Nothing is wrong with it if `faults` is empty."""

    page_width: int
    window_width: int
    images: int
    texts: int  # visible lines of text
    broken: list[str]  # pictures that did not load
    overlaps: list[list[str]]  # texts on top of each other
    faint: list[list[object]]  # texts below WCAG AA, with their contrast
    badges: dict[str, tuple[str, str, float]]  # word: colour, mark, contrast

    @property
    def faults(self) -> list[str]:
        """All that is wrong, in words."""
        found = [f"broken picture {name}" for name in self.broken]
        if self.page_width > self.window_width:
            found.append(f"{self.page_width} px wide in a window of {self.window_width} px")
        found += [f"{one!r} overlaps {other!r}" for one, other in self.overlaps]
        return found + [f"{said!r} has contrast {ratio}" for said, ratio in self.faint]


def browser() -> str | None:
    """Return the browser that HUBBUB_CHROMIUM names, or one of this machine, if it has one."""
    named = os.environ.get("HUBBUB_CHROMIUM")
    if named:
        return shutil.which(named)
    return next((found for found in map(shutil.which, NAMES) if found), None)


def look(views: Sequence[View]) -> Mapping[str, Look]:
    """Return what each view shows: all of them in one start of the browser.

    Beside each page, in its own folder, lies for that time a copy that measures itself; the page is not touched.
    """
    program = browser()
    assert program, "ask browser() first"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        frames, copies = "", []
        for view in views:
            script = MEASURE.replace("SETTINGS", json.dumps({"name": view.name, "opened": view.opened}))
            text = view.page.read_text(encoding="utf-8").replace('loading="lazy"', "")
            if view.dark:
                assert DARK in text, "the page has no dark colours"
                text = text.replace(DARK, "all")
            copy = view.page.with_name(f"{view.page.stem}.{view.name}.looked-at.html")
            copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
            copies.append(copy)
            frames += FRAME.format(html.escape(copy.as_uri()), view.width)
        around = Path(folder) / "around.html"
        around.write_text(AROUND.replace("FRAMES", frames), encoding="utf-8")
        command = [
            *(program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
            *(f"--user-data-dir={folder}/profile", "--allow-file-access-from-files"),
            *("--window-size=1400,1000", "--dump-dom", around.as_uri()),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)  # noqa: S603
        for copy in copies:
            copy.unlink()
    said = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert said, f"the browser said nothing:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    documents = json.loads(html.unescape(said[1]))
    assert set(documents) == {view.name for view in views}, "a page did not get as far as measuring itself"
    return {view.name: Look(**documents[view.name]) for view in views}
