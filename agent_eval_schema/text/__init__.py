"""JSON and words: parse, compare, describe, spell, quote."""
