"""Checks of running systems that need no model: crash images, durability, files, recovery and timers."""
