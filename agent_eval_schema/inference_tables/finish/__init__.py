"""Records that stay → labelled, redacted, validated rows; excluded records with their reason."""
