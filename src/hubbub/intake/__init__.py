"""Study files and readers."""

from hubbub.intake.readers import read_reports
from hubbub.intake.study import Study, read_study

__all__ = ["Study", "read_reports", "read_study"]
