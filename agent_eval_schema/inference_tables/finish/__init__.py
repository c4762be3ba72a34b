"""Records that stay → labeled, redacted, validated rows; excluded records with their reason."""
