"""The free run: a system runs by itself under a seeded scheduler, and the model follows.

``system.py`` is what an implementer writes, ``events.py`` what can happen, ``follow.py`` how the model keeps up.
"""
