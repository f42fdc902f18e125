"""Simulated people who answer a collector's question with the Python client: what the demo uses where there is no Node.

    python -m hubbub.serve.simulated_people STUDY URL < TASK

The task is a JSON object with the shares of answers, the number of people, and within how many seconds they answer.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

from hubbub.client import Client

MODULE = "hubbub.serve.simulated_people"
RETRY_SECONDS = 1.0


def answer(study: str, url: str, task: dict[str, object]) -> str:
    """Let all people answer, one after the other; return what was done, in words."""
    client = Client(study)
    shares, people, seconds = task["shares"], task["people"], task["seconds"]
    if not isinstance(shares, dict) or not isinstance(people, int) or not isinstance(seconds, int | float):
        raise TypeError
    values = secrets.SystemRandom().choices(list(shares), list(shares.values()), k=people)
    place, start = urlsplit(url), time.monotonic()
    connection = HTTPConnection(place.hostname or "", place.port)
    for number, value in enumerate(values):
        time.sleep(max(0.0, start + seconds * number / people - time.monotonic()))
        report = {"output": client.privatize(value), "key": secrets.token_hex(16)}
        _send(connection, json.dumps(report).encode())
    return f"{people:,} simulated people (Python client) have answered"


def _send(connection: HTTPConnection, body: bytes) -> None:
    """Send a report until it is taken: always the same bytes, so it counts once."""
    while True:
        try:
            connection.request("POST", "/reports", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            reply.read()
            if reply.status == 200:
                return
        except OSError:
            connection.close()
        time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    sys.stdout.write(answer(sys.argv[1], sys.argv[2], json.load(sys.stdin)) + "\n")
