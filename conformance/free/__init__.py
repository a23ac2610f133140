"""Former names of ``conformance.simulation``, for systems that were written against them."""
