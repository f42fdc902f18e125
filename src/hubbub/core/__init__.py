"""The foundation of all other packages: errors, progress, validation, text, arrays, files, locks and threads."""
