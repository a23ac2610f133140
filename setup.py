"""The packages to install: every folder with an ``__init__.py`` below the rooms. All else is in pyproject.toml.

The root is the package ``fencepost``, which pyproject.toml's own finder cannot say.
"""

from __future__ import annotations

from setuptools import find_packages, setup

ROOMS = ("conformance", "impl", "model", "specs", "traces")

inside = find_packages(".", include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")])
setup(
    packages=["fencepost", *(f"fencepost.{name}" for name in sorted(inside))],
    # A build names another script here, and this file would be taken for a module of the package.
    script_name="setup.py",
)
