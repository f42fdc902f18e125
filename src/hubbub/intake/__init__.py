"""Study files, sources of reports, tallies."""

from hubbub.intake.api import collect, merge, read_reports, scatter_reports
from hubbub.intake.privatizing.api import privatize_file
from hubbub.intake.privatizing.client_document import export_client
from hubbub.intake.privatizing.device_tables import export_tables
from hubbub.intake.study import Study
from hubbub.intake.study_files import read_study
from hubbub.intake.tallies.tally import Tally, read_tally

__all__ = [
    "Study",
    "Tally",
    "collect",
    "export_client",
    "export_tables",
    "merge",
    "privatize_file",
    "read_reports",
    "read_study",
    "read_tally",
    "scatter_reports",
]
