"""Timelines of partitions from server logs, dumps, partition folders and client histories."""
