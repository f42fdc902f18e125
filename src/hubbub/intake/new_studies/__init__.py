"""New study files: commented templates, with numbers and labels from public files of the user's."""
