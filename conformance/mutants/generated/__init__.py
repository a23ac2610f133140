"""Random mutants of the source of a system under test: a measure of the harness that nobody can tune it to.

``text``, ``operators`` and ``statements`` change a source text, ``drawing`` draws mutants from its lines by a seed.
``judging`` drives a mutant beside the model in a process of its own (``worker``, ``pool``), ``recording`` compares it
with the source as it is, and ``survivors`` says of those that nobody killed what they are. ``run`` is the whole.
"""
