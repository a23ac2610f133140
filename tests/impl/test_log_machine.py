"""Any sequence of operations and crashes, against a plain list."""

from __future__ import annotations

import os

from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import Codec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from .twin import Twin

EXAMPLES = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 150
SEEDS = st.integers(0, (1 << 32) - 1)
FRACTIONS = st.integers(0, 8)
"""Of the log's length: an offset that stays sensible while Hypothesis shrinks what came before it."""


class LogMachine(RuleBasedStateMachine):
    """One log on a disk that crashes."""

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self.twin = Twin(SimulatedFiles(seed))
        self.epoch = self.serial = 0

    def values(self, count: int, size: int) -> list[bytes]:
        self.serial += 1
        return [b"%d.%d" % (self.serial, n) + b"x" * size for n in range(count)]

    def offset(self, eighths: int) -> int:
        state = self.twin.before
        return state.start + (state.end - state.start) * eighths // 8

    @rule(count=st.integers(1, 5), size=st.integers(0, 50), codec=st.sampled_from(Codec))
    def lead(self, count: int, size: int, codec: Codec) -> None:
        self.twin.lead(self.epoch, self.values(count, size), codec)

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=5))
    def follow(self, counts: list[int]) -> None:
        self.twin.follow(self.epoch, [self.values(count, 5) for count in counts])

    @rule(by=st.sampled_from((1, 2, 256)), leader=st.booleans())
    def change_epoch(self, by: int, leader: bool) -> None:
        self.epoch += by
        if leader:
            self.twin.become_leader(self.epoch)

    @rule()
    def flush(self) -> None:
        self.twin.flush()

    @rule()
    def checkpoint(self) -> None:
        self.twin.checkpoint()

    @rule(eighths=FRACTIONS)
    def advance(self, eighths: int) -> None:
        self.twin.advance(self.offset(eighths))

    @rule(eighths=FRACTIONS)
    def truncate(self, eighths: int) -> None:
        self.twin.truncate(self.offset(eighths))
        self.epoch += 1

    @rule(eighths=FRACTIONS)
    def delete_before(self, eighths: int) -> None:
        self.twin.delete_before(self.offset(eighths))

    @rule(offset=st.integers(0, 60))
    def wipe(self, offset: int) -> None:
        self.twin.wipe(offset)

    @rule()
    def restart(self) -> None:
        self.twin.restart()

    @rule(seed=SEEDS)
    def crash(self, seed: int) -> None:
        self.twin.crash(seed)
        self.epoch += 1

    @rule(seed=SEEDS)
    def would_survive(self, seed: int) -> None:
        self.twin.check(self.twin.files.crashed_copy(seed))

    @invariant()
    def as_the_list_says(self) -> None:
        self.twin.compare()


LogMachine.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=30)
TestLog = LogMachine.TestCase
