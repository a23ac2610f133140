"""The rows of each protocol's ``expected.py``: results that every engine and every later version must reproduce."""
