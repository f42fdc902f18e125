"""Results as others read them: JSON documents and files."""
