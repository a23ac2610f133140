"""Corpora: many traces of one protocol as Parquet files that NumPy reads whole."""
