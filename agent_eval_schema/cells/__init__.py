"""Record batches whose nested cells are JSON text."""
