"""Traces of OpenTelemetry: their envelopes, the conventions of their attributes, and their form as a `Trace`."""
