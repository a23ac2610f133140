"""Contradictions in a partition's timeline, found without any search."""
