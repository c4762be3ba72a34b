"""Files, folders, frames, lists, URLs and clusters ⇄ batches of cells: one file per kind."""
