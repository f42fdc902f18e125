"""Study files, sources of reports, tallies."""

from hubbub.intake.clustered import scatter_reports
from hubbub.intake.collecting import collect, read_reports
from hubbub.intake.merging import merge
from hubbub.intake.study import Study, read_study
from hubbub.intake.tallies.tally import Tally, read_tally

__all__ = ["Study", "Tally", "collect", "merge", "read_reports", "read_study", "read_tally", "scatter_reports"]
