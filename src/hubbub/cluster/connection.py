"""Connecting to a Dask cluster, with errors that say why it fails."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hubbub.core.errors import ClusterError, shorten

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 5.0  # for a scheduler to answer, and for a first worker to appear
SCHEMES = ("tcp", "tls", "ws", "wss")
MAX_GREETING_BYTES = 1_000_000  # greetings of other protocols, read as a length, are far longer


def connect(address: str | Client, *, timeout: float = CONNECT_SECONDS) -> Client:
    """Return a client of the cluster at an address such as ``tcp://10.0.0.1:8786``, or check an existing client.

    The scheduler must answer within `timeout` seconds and have a worker, and Python and hubbub must have the same
    versions everywhere, since code and values are sent between processes. The caller closes the client
    (``with connect(...) as client:``).
    """
    distributed = load_distributed()
    if not isinstance(address, str):
        check_client(address, "connect(address)")
        check_cluster(address, timeout)
        return address
    _check_answer(address, timeout)
    try:
        client: Any = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, RuntimeError, ValueError, TypeError) as error:
        raise _not_a_scheduler(address, shorten(error, 200)) from error
    try:
        check_cluster(client, timeout)
    except ClusterError:
        client.close()
        raise
    connected: Client = client
    return connected


def load_distributed() -> Any:
    """Return the module `distributed`, which loads slowly and which few users need."""
    try:
        import distributed
    except ImportError as error:
        raise ClusterError(
            "Dask is not installed",
            where="hubbub.cluster",
            got=str(error),
            expected="the package distributed",
            remedy='install it: pip install "hubbub[cluster]"',
        ) from error
    return distributed


def check_client(client: object, where: str) -> None:
    """Raise a ClusterError unless this is a connected, synchronous client."""
    if not isinstance(client, load_distributed().Client):
        what, got, expected = "not a client of a cluster", shorten(client), "a distributed.Client"
        remedy = "pass the result of hubbub.cluster.connect('tcp://...'), or a distributed.Client of your own"
    elif client.asynchronous:
        what, got = "the client is asynchronous", "Client(asynchronous=True)"
        expected = "a synchronous client, whose calls wait for their results"
        remedy = "create one without asynchronous=True"
    elif client.status != "running":
        what, got = "the client has no connection", f"a client whose status is {client.status!r}"
        expected = "a client whose status is 'running'"
        remedy = "connect again, and submit its tasks again: they are lost with the connection"
    else:
        return
    raise ClusterError(what, where=where, got=got, expected=expected, remedy=remedy)


def check_cluster(client: Client, timeout: float) -> None:
    """Raise a ClusterError if the cluster has no workers, or other versions than this process."""
    scheduler: Any = client.scheduler
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        raise ClusterError(
            "the cluster has no workers",
            where=f"the scheduler at {scheduler.address}",
            got=f"none within {timeout:g} seconds",
            expected="at least one worker",
            remedy=f"start one: `dask worker {scheduler.address} --nworkers 1 --nthreads 1`",
        ) from error
    versions: Any = client.get_versions(packages=["hubbub"])
    own = _versions_text(versions["client"])
    for name, machine in [("the scheduler", versions["scheduler"]), *sorted(versions["workers"].items())]:
        theirs = _versions_text(machine)
        if theirs != own:
            raise ClusterError(
                "versions differ between this process and the cluster",
                where=name if name == "the scheduler" else f"the worker at {name}",
                got=theirs,
                expected=f"{own}, as here",
                remedy="install the same versions everywhere: values and code are sent between processes",
            )


def _versions_text(machine: dict[str, Any]) -> str:
    packages = machine["packages"]
    python = ".".join(str(packages.get("python")).split(".")[:2])  # code is compatible within one minor version
    return f"Python {python}, hubbub {packages.get('hubbub') or 'not installed'}"


def _host_and_port(address: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address, or raise a ClusterError that says what is wrong with it."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is not a number
        raise _not_an_address("the address must name a host and a port", address) from None
    if parts.scheme not in SCHEMES:
        raise _not_an_address(f"{parts.scheme}:// is not a protocol of a cluster", address)
    if not host or port is None:
        raise _not_an_address("the address must name a host and a port", address)
    return parts.scheme, host, port


def _not_an_address(what: str, address: str) -> ClusterError:
    return ClusterError(
        what,
        where="connect(address)",
        got=shorten(address),
        expected="tcp://HOST:PORT (or tls://), as `dask scheduler` prints it; or a distributed.Client",
        remedy="write tcp://HOST:8786; 8786 is the usual port, and 8787 only shows the dashboard",
    )


def _check_answer(address: str, timeout: float) -> None:
    """Raise a ClusterError if no scheduler answers: Dask would keep trying, or wait forever for a greeting."""
    scheme, host, port = _host_and_port(address)
    try:
        connection = socket.create_connection((host, port), timeout=timeout)
    except ConnectionRefusedError:
        raise _unreachable(address, "nothing listens there") from None
    except socket.gaierror:
        raise _unreachable(address, f"there is no host {host!r}") from None
    except TimeoutError:
        raise _unreachable(address, f"no answer within {timeout:g} seconds") from None
    except OSError as error:
        raise _unreachable(address, str(error)) from None
    with connection:
        if scheme != "tcp":  # the other protocols expect the client to speak first
            return
        try:
            greeting = connection.recv(8)  # Dask's greeting begins with its length
        except OSError:
            raise _not_a_scheduler(address, f"no greeting within {timeout:g} seconds") from None
    if not 0 < int.from_bytes(greeting, "little") < MAX_GREETING_BYTES:
        raise _not_a_scheduler(address, f"a greeting that begins with {greeting!r}")


def _unreachable(address: str, reason: str) -> ClusterError:
    return ClusterError(
        "the scheduler cannot be reached",
        where=f"connect({address!r})",
        got=reason,
        expected="a Dask scheduler that listens at this address",
        remedy="check the address and any firewall in between; start a scheduler with `dask scheduler`, and workers "
        "with `dask worker ADDRESS`",
    )


def _not_a_scheduler(address: str, reason: str) -> ClusterError:
    return ClusterError(
        "the program at this address is not a Dask scheduler that this client understands",
        where=f"connect({address!r})",
        got=reason,
        expected="a Dask scheduler, addressed by its own protocol (tls:// if it requires certificates)",
        remedy="check address and port: workers and the dashboard (8787) use other ports; for TLS, pass a "
        "distributed.Client with your certificates",
    )
