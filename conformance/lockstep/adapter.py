"""The adapter: the only thing that an implementer writes to have a system driven in lockstep with a model.

The harness asks the adapter to *try* one action of the protocol at a time, some of which the model refuses, and looks
at the system after each. An adapter decides nothing: it sends what the action stands for, waits until the system is
quiet, and tells what happened. ``template.py`` is one to copy, and
``docs/how-to/test-in-lockstep.md`` explains it.

Whatever an adapter raises counts as a divergence: the system fell over, or (``Contradiction``) what is seen of it is
not what is known. Only ``BadInput`` passes through, for what the person at the command line has to mend. All methods
are called from one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ...traces.format import Value
from .faults import Fault, Kind

ModelStep: TypeAlias = tuple[str, Mapping[str, int]]
"""An action of the protocol with all its parameters, by name."""


@dataclass(frozen=True)
class Outcome:
    """What became of a request to do something.

    ``run``: every model step that happened, in order, each with the model's name and parameters. Usually that is the
    action asked for, alone. A system may do more at once, and says so: a leader that raises its high watermark while it
    answers a fetch reports ``leader_inc_high_watermark`` at its place in the run. Where the action asked for did not
    happen, the run holds such side steps only.

    ``error``: the name of the protocol's error code that the asker got, such as ``FENCED_REPLICA``; None where there
    was none. An action that happened has None, or ``REQUEST_TIMED_OUT`` if its response was lost. One that did not
    happen has None where there was simply nothing to do: a fetch at the end of the log.
    """

    run: tuple[ModelStep, ...] = ()
    error: str | None = None


class Contradiction(Exception):
    """What a system shows, says or answers is not what is known of it: a divergence, told by the message.

    For whoever drives a system to raise, wherever the model has no word for what is seen.
    """


class Adapter(Protocol):
    """A system that can be driven. ``name`` is for reports, ``protocol`` and ``variant`` say what it implements."""

    @property
    def name(self) -> str:
        """What reports and traces call the system: ``memory``."""

    @property
    def protocol(self) -> str:
        """The protocol that it implements: ``fencing``."""

    @property
    def variant(self) -> str:
        """Which variant of it: ``kip-320``."""

    @property
    def faults(self) -> Collection[Kind]:
        """The faults that it can bring about; the harness draws no others."""

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """Put a fresh system in the model's initial state, whatever was before; called before anything else.

        ``constants`` are the protocol's (``replicas`` and so on). All that is random in the system comes from ``seed``:
        the same seed and the same calls must give the same answers, or nothing can be shrunk or replayed.
        """

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """Try one action, with a fault in its exchange if one is given (a kind of ``faults.MODIFIERS``)."""

    def observe(self) -> Mapping[str, Value]:
        """What can be seen of the system now: cells by their names in traces, ``leo[0]``, ``record_id[0][1]``.

        Values are those of traces: an integer, a sorted tuple of replicas for a set, None for no replica. A cell that
        the system cannot show is left out; the report names those that were never seen. Looking changes nothing.
        """

    def inject(self, fault: Fault) -> Outcome:
        """Bring about a fault that is no part of an exchange (a kind of ``faults.EVENTS``)."""

    def close(self) -> None:
        """Release everything; may be called more than once."""


MakeAdapter: TypeAlias = Callable[[str | None, str | None], Adapter]
"""How an adapter is made: called with the protocol and the variant that the command line names, None where it names
none. Raises BadInput for one that it does not implement. A class whose ``__init__`` takes the two will do."""
