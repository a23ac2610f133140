"""An implementation driven in lockstep with the model: after every step both must say the same.

Start with ``adapter.py``, which is all that an implementer writes; ``template.py`` is one to copy.
"""
