"""The paper's experiments: what they need, run and show."""
