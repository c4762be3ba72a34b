"""How work runs: processes, progress, optional packages."""
