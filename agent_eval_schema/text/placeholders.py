"""Texts that someone was still to write: `TBD`, `-`, `n/a`."""

AROUND = " .:<>[]()"
"""The marks around a placeholder."""

UNWRITTEN = (
    *("tbd", "tba", "todo", "to do", "to be done", "to be defined", "fixme", "xxx", "xx"),
    *("-", "--", "?", "??", "???"),
)
UNWRITTEN_TRUTHS = (*UNWRITTEN, "n/a", "na", "#n/a", "none", "null", "nan")
"""Without the marks around them. A response may rightly be `none`."""

LONGEST_PLACEHOLDER = 24


def is_unwritten(text: str) -> bool:
    """Whether a ground truth is a placeholder."""
    return len(text) <= LONGEST_PLACEHOLDER and text.strip(AROUND).lower() in UNWRITTEN_TRUTHS
