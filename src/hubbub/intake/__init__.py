"""Study files, sources of reports, tallies."""

from hubbub.intake.clustered import scatter_reports
from hubbub.intake.collecting import collect, read_reports
from hubbub.intake.exporting import export_tables
from hubbub.intake.merging import merge
from hubbub.intake.privatizing import privatize_file
from hubbub.intake.study import Study, read_study
from hubbub.intake.tallies.tally import Tally, read_tally

__all__ = [
    "Study",
    "Tally",
    "collect",
    "export_tables",
    "merge",
    "privatize_file",
    "read_reports",
    "read_study",
    "read_tally",
    "scatter_reports",
]
