"""Fencepost: a formal model and a conformance harness for Kafka-style replicated logs."""

__version__ = "0.1.0"


def _end_module_without_verdict() -> None:
    """Set the exit code of ``python -m fencepost.MODULE`` if its imports fail: Python's own is 1, a verdict."""
    import sys

    def end(_kind: object, error: BaseException, _trace: object) -> None:
        code = 4
        try:
            from .model.core.process import report_uncaught

            code = report_uncaught(error)
        finally:
            # Python takes the code of a SystemExit that its hook raises.
            raise SystemExit(code)

    # Python imports the package of the module before it sets the first argument.
    if getattr(sys, "argv", [])[:1] == ["-m"]:
        sys.excepthook = end


_end_module_without_verdict()
