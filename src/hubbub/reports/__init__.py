"""What users sent, merged to distinct patterns and counts."""

from hubbub.reports.blocks import BitSums, Block, Joint, Singles
from hubbub.reports.reports import Reports

__all__ = ["BitSums", "Block", "Joint", "Reports", "Singles"]
