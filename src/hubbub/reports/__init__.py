"""What users sent, merged to distinct patterns and counts."""

from hubbub.reports.blocks import BitSums, Block, Joint, Singles
from hubbub.reports.filter_sums import FilterSums
from hubbub.reports.reports import Reports
from hubbub.reports.survey_weights import SurveyWeights

__all__ = ["BitSums", "Block", "FilterSums", "Joint", "Reports", "Singles", "SurveyWeights"]
