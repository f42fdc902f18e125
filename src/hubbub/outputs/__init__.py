"""What users could have sent: all outputs with their probabilities."""
