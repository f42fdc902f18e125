"""Where rows of reports come from: files, databases, tables in memory.

`source_lookup` turns an argument into sources, `column_names` chooses the columns to read, and a source yields its rows
in batches (`base.Rows`), whose columns `distinct_entries` and `packed_columns` turn into entries that can be checked.
"""
