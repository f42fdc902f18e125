"""What everything else stands on: files and locks."""
