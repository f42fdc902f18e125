"""Reports on a Dask cluster: theta is sent to the workers, and sums of the domain's size come back."""

from hubbub.cluster.cluster_reports import ClusterReports, can_merge, merge
from hubbub.cluster.connection import connect

__all__ = ["ClusterReports", "can_merge", "connect", "merge"]
