"""Kills and failing disks: what is left of a tally, and whether the next run gives the bytes of an undisturbed one.

Run: python benchmarks/kills.py [--kills 200] [--users 2000]
"""

from __future__ import annotations

import argparse
import errno
import random
import sys
import tempfile
from pathlib import Path

from measure import row, save

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from crashing import (  # type: ignore[import-not-found]
    Disk,
    Fail,
    KillLine,
    Outcomes,
    Scenario,
    all_kills,
    duration,
    kill_at,
    kill_sometime,
    scenarios,
    steps_of,
)

NAMES = {"new": "collect, a new tally", "add": "collect, added to a tally", "merge": "merge, in place of a tally"}


def fail_at(scenario: Scenario, steps: list[str], code: int) -> Outcomes:
    """Let each step fail in turn; what a run leaves is looked at as after a kill."""
    outcomes = Outcomes()
    for number, step in enumerate(steps, 1):
        scenario.restore()
        try:
            with Disk(Fail(number, code)).between():
                scenario.run()
        except ValueError as error:
            if getattr(error, "code", "") not in ("out-of-space", "not-written"):
                outcomes.wrong.append(f"{scenario.name}, step {number} ({step}): {error}")
        except Exception as error:  # whatever it is, it is a finding
            outcomes.wrong.append(f"{scenario.name}, step {number} ({step}): {error!r}")
        outcomes.add(
            scenario, f"{scenario.name}, {errno.errorcode[code]} at step {number} ({step})", tidy="unlink" not in step
        )
    return outcomes


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="at random moments, in all")
    parser.add_argument("--users", type=int, default=2000, help="of each of the two files")
    options = parser.parse_args()
    draw = random.Random(7)  # noqa: S311
    rows, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        for place, scenario in enumerate(scenarios(Path(folder), options.users)):
            steps, whole = steps_of(scenario), duration(scenario)
            times = options.kills // 3 + (place < options.kills % 3)
            sometime = kill_sometime(scenario, times, whole, draw)
            targeted = kill_at(scenario, all_kills(steps))
            lines = KillLine.every(scenario)
            temporary = kill_at(scenario, lines)
            full, failing = fail_at(scenario, steps, errno.ENOSPC), fail_at(scenario, steps, errno.EIO)
            for what, found in (
                (f"kills at random in {whole:.2f} s", sometime),
                (f"kills before and in each of {len(steps)} steps", targeted),
                (f"kills at each of {len(lines)} lines about temporary files and locks", temporary),
                (f"a full disk at each of {len(steps)} steps", full),
                (f"an error of the disk at each of {len(steps)} steps", failing),
            ):
                wrong += found.wrong
                reached = f"{len(found.wrong)} of {found.kills} wrong; left: {found}"
                rows.append(row(NAMES[scenario.name], what, reached, "0 wrong", holds=not found.wrong))
    for line in wrong:
        print(line)
    save("kills", rows)


if __name__ == "__main__":
    main()
