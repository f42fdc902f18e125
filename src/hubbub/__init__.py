"""Hear the crowd, not the person.

People report values that were obfuscated on their own device; hubbub recovers the population's original
distribution from those noisy reports, and says how far it can be trusted.
"""

from importlib.metadata import version

from hubbub.domains import Bins, Categories, Domain, Grid, Integers
from hubbub.errors import (
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
from hubbub.intake import Study, read_reports, read_study
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

__version__ = version("hubbub")

__all__ = [
    "Bins",
    "Categories",
    "Cloaking",
    "DistanceError",
    "Domain",
    "DomainError",
    "Estimate",
    "EstimateError",
    "Exponential",
    "Geometric",
    "Grid",
    "HubbubError",
    "ImpossibleReportError",
    "IntakeError",
    "Integers",
    "Laplace",
    "LocalHashing",
    "Matrix",
    "Mechanism",
    "MechanismError",
    "OptimizedUnary",
    "OutputError",
    "PlanarGeometric",
    "PlanarLaplace",
    "RandomizedResponse",
    "Rappor",
    "Reports",
    "ReportsError",
    "SettingError",
    "Study",
    "StudyError",
    "SubsetSelection",
    "TruncatedGeometric",
    "__version__",
    "earth_mover_distance",
    "estimate",
    "kl_divergence",
    "log_likelihood",
    "optimality_gap",
    "read_reports",
    "read_study",
    "total_variation",
]
