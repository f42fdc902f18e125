"""Reports that the workers of a Dask cluster hold, and merging those that merge to few patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import comb
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hubbub.cluster.connection import check_client
from hubbub.cluster.worker_tasks import (
    PartDescription,
    add_up,
    describe_part,
    evaluate_part,
    load_part,
    return_argument,
    to_part,
)
from hubbub.cluster.worker_watch import WORKER_PATIENCE_SECONDS, ClusterWatch, WorkerLost
from hubbub.core.arrays import Floats
from hubbub.core.errors import ClusterError, shorten
from hubbub.domains import Domain
from hubbub.likelihood import ScatteredReports, Sums, check_parts
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import IntegerOutputs, PairOutputs
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.reports import Reports

if TYPE_CHECKING:
    from distributed import Client, Future

SUMS_PER_TASK = 8  # sums that one task adds up
GRAPH_WARNING_SIZE = "1TB"  # from which Dask warns: theta has to be sent, however many values there are
MAX_MERGED_PATTERNS = 1_000_000  # that fit on any machine


class ClusterReports(ScatteredReports):
    """Reports in parts that the workers of a cluster hold, and that estimates leave there.

    To evaluate a distribution, theta is sent to the workers, one task for each part runs on the worker that holds it,
    and sums of the domain's size are added up in a tree. The tree follows the order of the parts, not that of their
    arrival: the result is the same to the last bit whichever worker was first or was lost on the way (if all workers
    have the same number of threads and the same processors).

    Parameters
    ----------
    client : distributed.Client
        A Dask client, as `hubbub.cluster.connect` returns it.
    parts : list of distributed.Future
        Futures of `Reports`. They should be results of tasks: a part that is lost with its worker is then computed
        again on another one.
    patience : float, default 60.0
        The number of seconds to wait for a worker if there is none left.

    Raises
    ------
    ClusterError
        If `client` is no connected client, a part is not on the cluster, or no worker is left.
    ReportsError
        If there are no parts, or they are over different domains.

    Examples
    --------
    A cluster of one worker in this process; a real one is reached by ``Client("tcp://HOST:8786")``.

    >>> from distributed import Client
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> alone = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    >>> with Client(**alone) as client:
    ...     parts = [client.submit(hb.Reports.from_counts, coin, counts) for counts in ([400, 100], [200, 300])]
    ...     reports = hb.ClusterReports(client, parts)
    ...     print(reports, hb.estimate(reports, "mle").probabilities.round(4))
    ClusterReports(1,000 users, 2 parts) [0.7164 0.2836]
    """

    def __init__(
        self, client: Client, parts: Iterable[Future[Any]], *, patience: float = WORKER_PATIENCE_SECONDS
    ) -> None:
        check_client(client, "ClusterReports(client)")
        futures = list(parts)
        _check_futures(futures)
        held = [
            client.submit(to_part, future, f"ClusterReports(parts), part {number}", pure=False)
            for number, future in enumerate(futures)
        ]
        self._describe_parts(client, held, patience)

    @classmethod
    def from_tasks(
        cls,
        client: Client,
        load: Callable[[Any], Reports],
        arguments: Iterable[Any],
        *,
        patience: float = WORKER_PATIENCE_SECONDS,
    ) -> ClusterReports:
        """Let workers load the parts.

        The scheduler assigns the parts to workers as these become free.

        Parameters
        ----------
        client : distributed.Client
            A Dask client, as `hubbub.cluster.connect` returns it.
        load : callable
            A function that returns `Reports` for each argument. It must return the same each time: a lost part is
            loaded again.
        arguments : list
            One argument for each part.
        patience : float, default 60.0
            The number of seconds to wait for a worker if there is none left.

        Returns
        -------
        ClusterReports
            The reports, on the workers.

        Raises
        ------
        ClusterError
            If `client` is no connected client, or no worker is left.
        ReportsError
            If there are no arguments, a part is not reports, or they are over different domains.
        """
        check_client(client, "ClusterReports.from_tasks(client)")
        held = [client.submit(load_part, load, argument, pure=False) for argument in arguments]
        self = cls.__new__(cls)
        self._describe_parts(client, held, patience)
        return self

    def _describe_parts(self, client: Client, held: Sequence[Future[Any]], patience: float) -> None:
        if not held:
            check_parts([], "ClusterReports(parts)")
        self._client = client
        self._held = list(held)
        self._watch = ClusterWatch(client, patience)
        self._homes: list[str] | None = None
        description: PartDescription = self._sum_over_parts(describe_part)
        domains = [description.domains[digest] for digest in description.digests]
        check_parts(domains, "ClusterReports(parts)")
        self._domain, self._users, self._approximate = domains[0], description.users, description.approximate

    @property
    def domain(self) -> Domain:
        """The domain, the same for all parts."""
        return self._domain

    @property
    def users(self) -> int:
        """The number of users who sent these reports."""
        return self._users

    @property
    def approximate(self) -> bool:
        """Whether the likelihood is approximate, because only sums of bits were kept."""
        return self._approximate

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self._held)

    def evaluate(self, theta: Floats) -> Sums:
        """Return the likelihood's sums at a distribution over all parts, always added in the same order.

        Parameters
        ----------
        theta : array
            A distribution over the domain.

        Returns
        -------
        Sums
            What EM, its acceleration and the gap need.
        """
        sums: Sums = self._sum_over_parts(evaluate_part, theta)
        return sums

    def merged(self) -> Reports:
        """Return the reports in this process; they are merged on the cluster first.

        Returns
        -------
        Reports
            All reports, which must fit in memory.
        """
        reports: Reports = self._sum_over_parts(attrgetter("reports"))
        return reports

    def _sum_over_parts(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``task(part, *arguments)`` over all parts, each computed on the worker that holds it."""
        self._watch.check_connection()
        while True:
            homes = self._homes or self._watch.homes(self._held)
            try:
                total = self._submit(task, arguments, homes)
                result = self._watch.result(total, set(homes))
            except WorkerLost:
                self._homes = None
                continue
            self._homes = homes
            return result

    def _submit(self, task: Callable[..., Any], arguments: tuple[Any, ...], homes: list[str]) -> Future[Any]:
        import dask

        client = self._client
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": GRAPH_WARNING_SIZE}):
            sent = [client.submit(return_argument, argument, pure=False) for argument in arguments]
        # Pinned to its home: a scheduler with an idle worker would move a large part to save a single evaluation.
        level = [
            client.submit(task, part, *sent, workers=[home], pure=False)
            for part, home in zip(self._held, homes, strict=True)
        ]
        while len(level) > 1:
            groups = [level[first : first + SUMS_PER_TASK] for first in range(0, len(level), SUMS_PER_TASK)]
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


def can_merge(mechanisms: Iterable[Mechanism], outputs_per_user: int = 1) -> bool:
    """Whether reports of these mechanisms merge to few patterns, however many users there are.

    Listed outputs repeat, and so do whole numbers near the values: a billion of them are a table of counts that fits
    on any machine, and no cluster is needed to estimate from it. Bits of large domains, and hashes with their seeds,
    hardly ever repeat.

    With s distinct outputs and up to m of them from each user there are C(s + m, m) - 1 patterns. Unbounded whole
    numbers merge in practice if a user sends only one, since distant ones are rare.
    """
    outputs = 0
    for mechanism in mechanisms:
        space = mechanism.output_space
        if space.size is not None:
            outputs += space.size
        elif isinstance(space, BitRowOutputs):
            outputs += 2 ** min(space.length, 64)
        elif not isinstance(space, IntegerOutputs | PairOutputs) or outputs_per_user > 1:
            return False
    return comb(outputs + outputs_per_user, outputs_per_user) - 1 <= MAX_MERGED_PATTERNS


def merge(client: Client, parts: Iterable[Future[Any]], *, patience: float = WORKER_PATIENCE_SECONDS) -> Reports:
    """Return the sum of parts that workers hold, merged on the cluster: only the result travels here."""
    return ClusterReports(client, parts, patience=patience).merged()
