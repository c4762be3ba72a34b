"""Rows → issues and metric support → Report.

Read in this order: validate, checked_run, kernel, steps, rows, fill_from_traces, cross_field, checked_batch,
report_builder, report.
"""
