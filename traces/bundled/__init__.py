"""Recordings that come with the package, one archive each; README.md describes them."""
