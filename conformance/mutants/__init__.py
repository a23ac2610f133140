"""The mutant matrix: who kills which defect of the model and of the implementation."""
