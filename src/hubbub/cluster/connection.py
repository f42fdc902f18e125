"""A connection to a Dask cluster, or a sentence that says why there is none."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hubbub.core.errors import ClusterError, shorten

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 5.0  # seconds for a scheduler to answer, and for a first worker to be there
SCHEMES = ("tcp", "tls", "ws", "wss")
LONGEST_GREETING = 1_000_000  # bytes; texts of other protocols would be far longer, read as a number
START = "start one with `dask scheduler`, and workers with `dask worker ADDRESS`"


def connect(address: str | Client, *, timeout: float = PATIENCE) -> Client:
    """Return a client of the cluster at an address such as ``tcp://10.0.0.1:8786``, or check the client given.

    The scheduler must answer within `timeout` seconds and have a worker, and Python and hubbub must have the
    same versions everywhere: what is computed is sent as code and values between them. A client made here is the
    caller's to close (``with connect(...) as client:``).
    """
    distributed = load_distributed()
    if not isinstance(address, str):
        check_client(address, "connect(address)")
        check_cluster(address, timeout)
        return address
    _knock(address, timeout)
    try:
        client: Any = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, RuntimeError, ValueError, TypeError) as error:
        raise _stranger(address, shorten(error, 200)) from error
    try:
        check_cluster(client, timeout)
    except ClusterError:
        client.close()
        raise
    connected: Client = client
    return connected


def load_distributed() -> Any:
    """Return the module, which is loaded where it is used: it is slow, and few need it."""
    try:
        import distributed
    except ImportError as error:
        raise ClusterError(
            "Dask is not installed",
            where="hubbub.cluster",
            got=str(error),
            expected="the package distributed",
            remedy='pip install "hubbub[cluster]"',
        ) from error
    return distributed


def check_client(client: object, where: str) -> None:
    """Refuse what is not a client that can be used from here."""
    if not isinstance(client, load_distributed().Client):
        raise ClusterError(
            "not a client of a cluster",
            where=where,
            got=shorten(client),
            expected="a distributed.Client",
            remedy="pass what hubbub.cluster.connect('tcp://...') returns, or a distributed.Client of your own",
        )
    if client.asynchronous:
        raise ClusterError(
            "the client is asynchronous",
            where=where,
            got="Client(asynchronous=True)",
            expected="a client whose calls wait for their results",
            remedy="make another one without asynchronous=True",
        )
    if client.status != "running":
        raise ClusterError(
            "the client has no connection",
            where=where,
            got=f"a client whose status is {client.status!r}",
            expected="a client whose status is 'running'",
            remedy="connect again: what a client has submitted goes with it",
        )


def check_cluster(client: Client, timeout: float) -> None:
    """Refuse a cluster without workers, or with other versions than here."""
    scheduler: Any = client.scheduler
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        raise ClusterError(
            "the cluster has no workers",
            where=f"the scheduler at {scheduler.address}",
            got=f"none within {timeout:g} seconds",
            expected="at least one worker",
            remedy=f"start some: `dask worker {scheduler.address} --nworkers 1 --nthreads 1`",
        ) from error
    found: Any = client.get_versions(packages=["hubbub"])
    own = _versions(found["client"])
    for name, others in [("the scheduler", found["scheduler"]), *sorted(found["workers"].items())]:
        theirs = _versions(others)
        if theirs != own:
            raise ClusterError(
                "versions differ between this process and the cluster",
                where=name if name == "the scheduler" else f"the worker at {name}",
                got=theirs,
                expected=f"{own}, as here",
                remedy="install the same versions in all places: values and code are sent between them as they are",
            )


def _versions(machine: dict[str, Any]) -> str:
    packages = machine["packages"]
    python = ".".join(str(packages.get("python")).split(".")[:2])  # code is compatible within one minor version
    return f"Python {python}, hubbub {packages.get('hubbub') or 'not installed'}"


def _host_and_port(address: str) -> tuple[str, str, int]:
    """Return how to reach whom, or say what is wrong with the address."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is no number
        raise _not_an_address("the address names no host and port", address) from None
    if parts.scheme not in SCHEMES:
        raise _not_an_address(f"a cluster is not reached by {parts.scheme}://", address)
    if not host or port is None:
        raise _not_an_address("the address names no host and port", address)
    return parts.scheme, host, port


def _not_an_address(what: str, address: str) -> ClusterError:
    return ClusterError(
        what,
        where="connect(address)",
        got=shorten(address),
        expected="tcp://HOST:PORT (or tls://), as `dask scheduler` prints it; or a distributed.Client",
        remedy="8786 is the usual port, 8787 only shows the dashboard: tcp://HOST:8786",
    )


def _knock(address: str, timeout: float) -> None:
    """Say why nobody answers: Dask itself goes on trying, or waits for ever for a greeting that does not come."""
    scheme, host, port = _host_and_port(address)
    try:
        door = socket.create_connection((host, port), timeout=timeout)
    except ConnectionRefusedError:
        raise _unreachable(address, "nothing listens there") from None
    except socket.gaierror:
        raise _unreachable(address, f"there is no host {host!r}") from None
    except TimeoutError:
        raise _unreachable(address, f"no answer within {timeout:g} seconds") from None
    except OSError as error:
        raise _unreachable(address, str(error)) from None
    with door:
        if scheme != "tcp":  # the others expect more of a guest before they speak
            return
        try:
            greeting = door.recv(8)  # Dask's begins with its length
        except OSError:
            raise _stranger(address, f"no greeting within {timeout:g} seconds") from None
    if not 0 < int.from_bytes(greeting, "little") < LONGEST_GREETING:
        raise _stranger(address, f"a greeting that begins with {greeting!r}")


def _unreachable(address: str, reason: str) -> ClusterError:
    return ClusterError(
        "the scheduler cannot be reached",
        where=f"connect({address!r})",
        got=reason,
        expected="a Dask scheduler that listens at this address",
        remedy=f"check the address and any firewall between; {START}",
    )


def _stranger(address: str, reason: str) -> ClusterError:
    return ClusterError(
        "what answers there is no Dask scheduler that this client understands",
        where=f"connect({address!r})",
        got=reason,
        expected="a Dask scheduler, spoken to in its own protocol (tls:// where it wants certificates)",
        remedy="check address and port: workers use other ports, and so does the dashboard (8787); for TLS pass a "
        "distributed.Client made with your certificates",
    )
