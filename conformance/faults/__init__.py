"""Faults that the harness injects besides crashes: corrupt messages and corrupt files."""
