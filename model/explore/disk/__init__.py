"""Exploration past memory: states in the files of a directory, ``search.py`` first."""
