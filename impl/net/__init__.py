"""Transport and clock: the interfaces, and the simulated ones that a test can break."""
