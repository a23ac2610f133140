"""What there is of one protocol: its text, and where its proof, its view and its harness are.

A protocol's package says so once, and every command reads it from here. What a command does not need is not imported:
each part but the text may be given as ``module:name`` and is looked up when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import BadInput, ProtocolError
from .importing import imported
from .protocol import Protocol
from .view import LogView, derived_view

if TYPE_CHECKING:
    from ..prove.proof import Proof

Ref: TypeAlias = str
"""``module:name``; a module that begins with a dot is looked for from the package that says it."""


def _found(ref: Ref, package: str) -> Any:
    # Not remembered: a module of that name may be another file's, or that file changed, when it is asked for again.
    place, colon, name = ref.partition(":")
    if not colon or not place or not name:
        raise ProtocolError(f"{ref!r} in {package} names nothing: write module:name")
    value: Any = imported(place, f"{ref} of {package}", package)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def looked_up(part: Any, package: str) -> Any:
    """What a ``Ref`` names; anything else is the part itself. Raises ProtocolError for a text that is no ``Ref``."""
    return _found(part, package) if isinstance(part, str) else part


@dataclass(frozen=True)
class Registration:
    """One protocol and what goes with it. ``package``: the ``__name__`` of the module that says it.

    ``proof``: the proof with no bound. ``more_proofs``: those of other variants, which need other lemmas, and of other
    values of constants that a proof is about (``prove.fixed``).
    ``view``: the layout of its pages, or a function that gives it for a variant.
    ``refinements``: by variant and another one, what maps states of the first to states of the second
    (``explore.refine.StateMapping``). ``unread``: by the same, what cells of the second are compared as where
    no step of it reads what they hold. ``harness``: what holds systems against it (``conformance.harness.Harness``).
    ``brokers_logs``: brokers' partition logs are states of it (``traces.kafka.abstraction``), so that data directories
    are checked against it. ``lossy``: the same with events that lose records, among which the cause of a loss is
    searched for.
    """

    package: str
    protocol: Protocol
    proof: Proof | Ref | None = None
    more_proofs: tuple[Proof | Ref, ...] = ()
    view: LogView | Callable[[str], LogView] | Ref | None = None
    refinements: Mapping[tuple[str, str], Mapping[str, Callable[..., Any]]] | Ref | None = None
    unread: Mapping[tuple[str, str], Mapping[str, Callable[..., Any]]] | Ref | None = None
    harness: object | Ref | None = None
    brokers_logs: bool = False
    lossy: Protocol | Ref | None = None
    earlier: tuple[str, ...] = ()
    """The variants of earlier releases that brokers' logs may come from, newest first; ``lossy`` has ``NAME-...``."""

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self.protocol.name

    def find_proofs(self) -> tuple[Proof, ...]:
        """Every proof that there is, ``proof`` first."""
        found = (looked_up(each, self.package) for each in (self.proof, *self.more_proofs))
        return tuple(each for each in found if each is not None)

    def find_proof(self, variant: str | None = None) -> Proof | None:
        """The proof, if there is one: of a variant, or of one of its twins, its own; ``proof`` by default."""
        if variant is not None:
            for each in self.find_proofs():
                if variant == each.variant or variant in each.twins:
                    return each
        found: Proof | None = looked_up(self.proof, self.package)
        return found

    def require_proof(self, variant: str | None = None) -> Proof:
        """The proof, as ``find_proof`` finds it. Raises BadInput where there is none."""
        found = self.find_proof(variant)
        if found is None:
            raise BadInput(f"there is no proof of {self.name!r}", "PROTOCOL", "name one that has a proof, or write it")
        return found

    def require_proofs(self, variant: str | None = None) -> tuple[Proof, ...]:
        """The proof that ``require_proof`` finds, and each of the same variant at other values of fixed constants."""
        first = self.require_proof(variant)
        return tuple(each for each in self.find_proofs() if each.variant == first.variant)

    def view_of(self, variant: str) -> LogView:
        """The layout of a variant's pages; where none is given, what the declarations say (``derived_view``)."""
        found = looked_up(self.view, self.package)
        if found is None:
            return derived_view(self.protocol, variant)
        layout: LogView = found if isinstance(found, LogView) else found(variant)
        return layout

    def mapping(self, variant: str, other: str) -> Mapping[str, Callable[..., Any]]:
        """What maps a variant's states to another's, where that is not variable by variable; empty where it is."""
        found: Mapping[tuple[str, str], Mapping[str, Callable[..., Any]]] | None
        found = looked_up(self.refinements, self.package)
        return {} if found is None else found.get((variant, other), {})

    def unread_by(self, variant: str, other: str) -> Mapping[str, Callable[..., Any]]:
        """What cells of the other are compared as where no step of it reads what they hold; empty where all count."""
        found: Mapping[tuple[str, str], Mapping[str, Callable[..., Any]]] | None
        found = looked_up(self.unread, self.package)
        return {} if found is None else found.get((variant, other), {})

    def find_lossy(self) -> Protocol | None:
        """The protocol with events that lose records, if there is one."""
        found: Protocol | None = looked_up(self.lossy, self.package)
        return found

    def find_harness(self) -> object | None:
        """The harness, if there is one."""
        found: object | None = looked_up(self.harness, self.package)
        return found
