"""Reports that lie on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.cluster.connection import check_client
from hubbub.cluster.waiting import Moved, Watch
from hubbub.cluster.worker_tasks import Description, add_up, as_it_is, describe, hold, load_part, reports_of, sums_of
from hubbub.core.arrays import Floats
from hubbub.core.errors import ClusterError, shorten
from hubbub.domains import Domain
from hubbub.likelihood import ScatteredReports, Sums, check_parts
from hubbub.reports import Reports

if TYPE_CHECKING:
    from distributed import Client, Future

FAN = 8  # sums that are added in one task
LARGE = "1TB"  # what Dask warns of before it sends it: theta has to travel, however many values there are
PATIENCE = 60.0  # seconds to wait for a worker where there is none


class ClusterReports(ScatteredReports):
    """Reports in parts that workers hold; estimates are made where they lie.

    `parts` are futures of `Reports`: results of tasks, so that a part that is lost with its worker is computed again
    from its source, on another worker. For each distribution that is evaluated theta goes to the workers, one task for
    each part runs where the part lies, and sums of the domain's size are added up in a tree. The tree follows the order
    of the parts and not that of their arrival: the result is the same to the last bit whoever was first, and whoever
    was lost on the way (if all workers have as many threads, and the same processors).

    `patience` is how many seconds to wait for a worker when there is none left.
    """

    def __init__(self, client: Client, parts: Iterable[Future[Any]], *, patience: float = PATIENCE) -> None:
        check_client(client, "ClusterReports(client)")
        futures = list(parts)
        _check_futures(futures)
        held = [
            client.submit(hold, future, f"ClusterReports(parts), part {number}", pure=False)
            for number, future in enumerate(futures)
        ]
        self._begin(client, held, patience)

    @classmethod
    def from_tasks(
        cls,
        client: Client,
        load: Callable[[Any], Reports],
        arguments: Iterable[Any],
        *,
        patience: float = PATIENCE,
    ) -> ClusterReports:
        """Let workers load the parts: ``load(argument)``, which returns `Reports`, for each argument.

        `load` must give the same each time: a part that is lost is loaded again. The scheduler deals the parts to the
        workers, as many to each as it has time for.
        """
        check_client(client, "ClusterReports.from_tasks(client)")
        held = [client.submit(load_part, load, argument, pure=False) for argument in arguments]
        self = cls.__new__(cls)
        self._begin(client, held, patience)
        return self

    def _begin(self, client: Client, held: Sequence[Future[Any]], patience: float) -> None:
        if not held:
            check_parts([], "ClusterReports(parts)")
        self._client = client
        self._held = list(held)
        self._watch = Watch(client, patience)
        self._homes: list[str] | None = None
        about: Description = self._over_parts(describe)
        domains = [about.domains[digest] for digest in about.digests]
        check_parts(domains, "ClusterReports(parts)")
        self._domain, self._users, self._approximate = domains[0], about.users, about.approximate

    @property
    def domain(self) -> Domain:
        """The domain, the same for all parts."""
        return self._domain

    @property
    def users(self) -> int:
        """How many users sent these reports."""
        return self._users

    @property
    def approximate(self) -> bool:
        """Whether the likelihood is approximate, because only sums of bits were kept."""
        return self._approximate

    @property
    def parts(self) -> int:
        """In how many parts the reports lie."""
        return len(self._held)

    def evaluate(self, theta: Floats) -> Sums:
        """Return the sums at `theta` over all parts, added in an order that is always the same."""
        sums: Sums = self._over_parts(sums_of, theta)
        return sums

    def merged(self) -> Reports:
        """Return the reports in this process; they are merged on the cluster, two by two."""
        reports: Reports = self._over_parts(reports_of)
        return reports

    def _over_parts(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``task(part, *arguments)`` over all parts, each computed where the part lies."""
        self._watch.check()
        while True:
            homes = self._homes or self._watch.homes(self._held)
            try:
                total = self._submit(task, arguments, homes)
                result = self._watch.result(total, set(homes))
            except Moved:
                self._homes = None
                continue
            self._homes = homes
            return result

    def _submit(self, task: Callable[..., Any], arguments: tuple[Any, ...], homes: list[str]) -> Future[Any]:
        import dask

        client = self._client
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            sent = [client.submit(as_it_is, argument, pure=False) for argument in arguments]
        # Nowhere else: a scheduler that finds a worker idle would move a part, which is large, to save one evaluation.
        level = [
            client.submit(task, part, *sent, workers=[home], pure=False)
            for part, home in zip(self._held, homes, strict=True)
        ]
        while len(level) > 1:
            groups = [level[first : first + FAN] for first in range(0, len(level), FAN)]
            level = [group[0] if len(group) == 1 else client.submit(add_up, *group, pure=False) for group in groups]
        return level[0]


def _check_futures(parts: list[Any]) -> None:
    from distributed import Future

    for number, part in enumerate(parts):
        if not isinstance(part, Future):
            raise ClusterError(
                "a part is not on the cluster",
                where=f"ClusterReports(parts), part {number}",
                got=shorten(part),
                expected="a distributed.Future of hubbub.Reports, as client.submit returns it",
                remedy="let workers load the parts: ClusterReports.from_tasks(client, load, arguments)",
            )
