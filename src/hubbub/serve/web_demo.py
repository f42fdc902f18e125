"""The demo in a browser: a study with a question, its collector, simulated people who answer, and live results."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.core.files import write_file
from hubbub.intake.privatizing.client_document import client_document
from hubbub.intake.study_files import read_study
from hubbub.serve.api import Listening, serve
from hubbub.serve.question_page import PACKAGE
from hubbub.serve.results_access import read_results_token
from hubbub.serve.simulated_people import MODULE

STUDY_NAME, DATABASE_NAME, TOKEN_NAME = "web-study.toml", "web-reports.db", "web-results.token"
SCRIPT = "simulated-browsers.mjs"
RESULTS_EVERY = 5.0
STOP_SECONDS = 5.0
# What the simulated people answer; nobody but the demo knows it.
SHARES = {"on foot": 0.14, "bicycle": 0.21, "bus or tram": 0.27, "train": 0.06, "car": 0.29, "I do not travel": 0.03}

STUDY_TEXT = f"""# The study of hubbub's demo in a browser.
version = 1
name = "the way to work"

[domain]
kind = "categories"
labels = {json.dumps(list(SHARES))}

[mechanisms.answer]
kind = "randomized-response"
epsilon = 1.5

[question]
text = "How do you get to work on most days?"
help = "If you use several, choose the one for the longest part of the way."
thanks = "Thank you for your answer."

[collector]
time = "none"
max_requests_per_minute = 1000000   # all simulated people have one address
"""


@dataclass(frozen=True)
class WebDemo:
    """A demo that runs: where its pages are, and what makes the simulated people's reports."""

    url: str
    token: str  # of the results
    client: str


def prepare_web_demo(folder: Path) -> str:
    """Write the study and the token of the results; return the token. An earlier demo there goes on."""
    study, token = folder / STUDY_NAME, folder / TOKEN_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_foreign = study.exists() and study.read_text(encoding="utf-8") != STUDY_TEXT
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(folder, "the demo cannot use this folder", str(error)) from None
    if is_foreign:
        raise _refused(folder, "the demo would overwrite a file that is not its own", STUDY_NAME)
    if not study.exists():
        write_file(study, STUDY_TEXT.encode())
    if not token.exists():
        write_file(token, f"{secrets.token_urlsafe(18)}\n".encode(), private=True)
    made = read_results_token(token)
    assert made is not None  # noqa: S101  # a file has one, or is refused
    return made


def _refused(folder: Path, what: str, got: str) -> IntakeError:
    expected = "a new folder, or one of an earlier demo"
    return IntakeError(what, where=str(folder), got=got, expected=expected, remedy="name another folder with -o")


def run_web_demo(
    folder: Path,
    *,
    people: int = 1000,
    seconds: float = 60.0,
    port: int = 0,
    ready: Callable[[WebDemo], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the demo until it is stopped; so many simulated people answer within so many seconds."""
    token = prepare_web_demo(folder)
    study = folder / STUDY_NAME
    document = client_document(study)
    node = shutil.which("node")
    with SimulatedPeople(node, study, people, seconds, log) as simulated:

        def begin(listening: Listening) -> None:
            ready(WebDemo(listening.url, token, "Node" if node else "Python"))
            simulated.start(listening.url)

        serve(
            read_study(study),
            f"sqlite:///{folder.resolve() / DATABASE_NAME}",
            port=port,
            client_study=document,
            results_token=token,
            results_every=RESULTS_EVERY,
            ready=begin,
            log=log,
        )


class SimulatedPeople:
    """A process in which many people answer: by the JavaScript client in Node where it is there, else by Python's."""

    def __init__(self, node: str | None, study: Path, people: int, seconds: float, log: Callable[[str], None]) -> None:
        self._node, self._study, self._log = node, study, log
        self._task = json.dumps({"shares": SHARES, "people": people, "seconds": seconds})
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> SimulatedPeople:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(STOP_SECONDS)

    def start(self, url: str) -> None:
        """Let them answer at an address."""
        threading.Thread(target=self._run, args=(url,), daemon=True).start()

    def _run(self, url: str) -> None:
        with as_file(files(PACKAGE).joinpath("assets", SCRIPT)) as script:
            python = [sys.executable, "-P", "-m", MODULE, str(self._study), url]  # -P: nothing of the current folder
            command = [self._node, str(script), url] if self._node else python
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
            told, _ = self._process.communicate(self._task)
        if self._process.returncode == 0:
            truth = ", ".join(f"{name} {100 * share:.0f}%" for name, share in SHARES.items())
            self._log(f"{told.strip()}; what they really do: {truth}")
