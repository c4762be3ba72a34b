"""Which records stay, as SQL that DuckDB and Spark read alike."""
