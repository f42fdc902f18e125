"""The program as it is run at a terminal, without waiting for its imports each time.

A process that has everything loaded waits for commands; each is run by a child of its own, from a fork: with its own
folder, output, environment and exit code, as if it had just been started. What a fresh start needs (imports that
are missing, the path) is tested where examples of the documentation run.

Everything: all of hubbub but the cluster, what others import only when they are used, and, by one small study, the
compiled loops. It is most of the time of a command that has little to do.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

# A child ends as a program ends (what it says to its exit code, what is to be done at exit, what is still to be
# written), but does not take apart all that is loaded: that takes three times as long as most commands.
WAITING = """
import atexit, gc, json, os, sys, threading
import contextlib, importlib, pkgutil, numpy
import hubbub as hb
for module in pkgutil.walk_packages(hb.__path__, "hubbub."):
    if not module.name.startswith("hubbub.cluster") and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
import duckdb, matplotlib.backends.backend_agg, matplotlib.figure, ot, pandas, pyarrow.csv, pyarrow.parquet, scipy.stats
import encodings.utf_8_sig, jinja2, pyarrow.pandas_compat, rich.console, rich.progress, rich.table
for name in ("rich._emoji_codes", "typer._adapters", "typer._click.decorators"):
    with contextlib.suppress(ImportError):  # another version may have other modules of its own
        importlib.import_module(name)

grid = hb.Grid(3, 2)
mechanism = hb.RandomizedResponse(grid, 1.0)
values = numpy.repeat(grid.labels, 20, axis=0)
reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=numpy.random.default_rng(0)))
hb.check(reports)
hb.resolve(reports)
assert len(threading.enumerate()) == 1, "a child would miss the other threads"

gc.collect()
gc.freeze()  # no child looks through what is loaded

def child():
    for line in sys.stdin:
        job = json.loads(line)
        number = os.fork()
        if number == 0:
            return job
        _, status = os.waitpid(number, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)

job = child()
if job is not None:
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.argv = ["hubbub", *job["words"]]
    nothing = os.open(os.devnull, os.O_RDONLY)
    files = [os.open(job[name], os.O_WRONLY) for name in ("stdout", "stderr")]
    for source, target in zip([nothing, *files], (0, 1, 2)):
        os.dup2(source, target)
        os.close(source)
    try:
        hb.cli.app.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
gc.unfreeze()  # or libraries miss what they made when this process ends
"""

_lock = threading.Lock()
_waiting: list[subprocess.Popen[str]] = []


def hubbub(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command in a folder, and return its exit code and what it wrote."""
    with tempfile.TemporaryDirectory() as place, _lock:
        paths = {name: str(Path(place) / name) for name in ("stdout", "stderr")}
        for path in paths.values():
            Path(path).touch()
        told: dict[str, Any] = {
            "folder": str(cwd), "words": [str(word) for word in words], "environment": dict(os.environ), **paths
        }  # fmt: skip
        process = _process()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        written = {name: Path(path).read_text(encoding="utf-8") for name, path in paths.items()}
    return subprocess.CompletedProcess(["hubbub", *told["words"]], code, **written)


def _process() -> subprocess.Popen[str]:
    """Return the process that waits; one for each process of the tests."""
    if not _waiting:
        _waiting.append(
            subprocess.Popen(  # noqa: S603  # our own program
                [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        atexit.register(_end)
    return _waiting[0]


def _end() -> None:
    for process in _waiting:
        process.communicate()  # closes its input, at which it ends
