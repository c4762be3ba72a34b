"""Logged calls → an evaluation dataset."""
