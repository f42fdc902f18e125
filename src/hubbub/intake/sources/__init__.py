"""Where rows of reports come from: files, databases, tables in memory."""
