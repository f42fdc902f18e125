"""Hear the crowd, not the person.

People report values that were obfuscated on their own device; hubbub recovers the population's original
distribution from those noisy reports, and says how far it can be trusted.
"""

from importlib.metadata import version

from hubbub.auditing import Audit, audit
from hubbub.cluster import ClusterReports
from hubbub.domains import Bins, Categories, Domain, Grid, Integers
from hubbub.errors import (
    ClusterError,
    DistanceError,
    DomainError,
    EstimateError,
    HubbubError,
    ImpossibleReportError,
    IntakeError,
    MechanismError,
    OutputError,
    ReportsError,
    SettingError,
    StudyError,
)
from hubbub.estimation import Estimate, estimate, log_likelihood, optimality_gap
from hubbub.intake import Study, Tally, collect, merge, read_reports, read_study, read_tally, scatter_reports
from hubbub.mechanisms import (
    Cloaking,
    Exponential,
    Geometric,
    Laplace,
    LocalHashing,
    Matrix,
    Mechanism,
    OptimizedUnary,
    PlanarGeometric,
    PlanarLaplace,
    RandomizedResponse,
    Rappor,
    SubsetSelection,
    TruncatedGeometric,
)
from hubbub.metrics import earth_mover_distance, kl_divergence, total_variation
from hubbub.reports import Reports
from hubbub.trust import (
    Band,
    Check,
    FitTest,
    Identification,
    Interval,
    Quantile,
    Shift,
    band,
    check,
    error_probability,
    fit_test,
    identify,
    interval,
    quantile,
    worst_case_shift,
)

__version__ = version("hubbub")

__all__ = [
    "Audit",
    "Band",
    "Bins",
    "Categories",
    "Check",
    "Cloaking",
    "ClusterError",
    "ClusterReports",
    "DistanceError",
    "Domain",
    "DomainError",
    "Estimate",
    "EstimateError",
    "Exponential",
    "FitTest",
    "Geometric",
    "Grid",
    "HubbubError",
    "Identification",
    "ImpossibleReportError",
    "IntakeError",
    "Integers",
    "Interval",
    "Laplace",
    "LocalHashing",
    "Matrix",
    "Mechanism",
    "MechanismError",
    "OptimizedUnary",
    "OutputError",
    "PlanarGeometric",
    "PlanarLaplace",
    "Quantile",
    "RandomizedResponse",
    "Rappor",
    "Reports",
    "ReportsError",
    "SettingError",
    "Shift",
    "Study",
    "StudyError",
    "SubsetSelection",
    "Tally",
    "TruncatedGeometric",
    "__version__",
    "audit",
    "band",
    "check",
    "collect",
    "earth_mover_distance",
    "error_probability",
    "estimate",
    "fit_test",
    "identify",
    "interval",
    "kl_divergence",
    "log_likelihood",
    "merge",
    "optimality_gap",
    "quantile",
    "read_reports",
    "read_study",
    "read_tally",
    "scatter_reports",
    "total_variation",
    "worst_case_shift",
]
