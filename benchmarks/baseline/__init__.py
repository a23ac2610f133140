"""Record what Fencepost computes at one commit, and compare two records.

``python -m benchmarks.baseline record FILE`` writes the record of the checkout, ``compare OLD NEW`` prints every
difference. The recorder uses the command line (``fencepost ... --json``); ``adapter.py`` has all other imports.
"""
