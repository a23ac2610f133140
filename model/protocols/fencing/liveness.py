"""What ``fencing`` promises in the end, and under which fairness.

A leader is *final* when the controller never acts again: the quorum's leader and leader epoch are the same for
ever. Nothing obliges the controller to act, so any leader may be the final one; the largest leader epoch of the
constants need not be reached.

**The final leader adopts its epoch.** It holds under the KIP's own fairness, and weak fairness of become_leader
alone gives it: the request of the quorum's epoch stays, and it is the newest there is.

**A record at the final leader is in the end committed.** It fails under the KIP's own fairness, which obliges
nobody to fetch: the leader writes, the follower adopts the epoch and then does nothing, the ISR keeps it, and
with that the high watermark stands still; the loop is stuttering. Strong fairness of leader_inc_high_watermark
does not help, because it is never enabled.

With fair fetches it holds. For kip-320, weak fairness of four actions is enough for it, and none of them can be
left out: become_leader, or the leader stays in an older epoch; become_follower, or a member of the ISR does, and
its fetches are fenced; follower_fetch; leader_inc_high_watermark. Strong fairness is not needed, because in the
last epoch logs only grow: whoever can fetch can fetch until it is done. Nor need writes or ISR changes be fair.

Fair ISR shrinks are no substitute. With two replicas they are enough, and only because the KIP's fairness of
leader_inc_high_watermark is strong: the high watermark may rise only in the moments between a shrink and the next
expansion, and under weak fairness shrink and expansion go on for ever. With three replicas they are not enough,
even if they are strongly fair for each follower: the leader drops one idle follower, takes it back (as strong
fairness of leader_expand_isr even demands) and only then drops the other, and so is never alone. A real leader
drops a follower that lags for replica.lag.time.max.ms, and takes it back only when it has fetched.

The older variants differ. kip-320-first-try truncates when a fetch finds a divergence, so there follower_truncate
must be fair too. kip-101 fails even with fair fetches, at 2/2/2/2 (replicas, log size, records, leader epoch) and
not with any of the last three smaller by one: as the KIP's model has it, a follower that holds a record of the
leader's last epoch, but not all of them, is told an end offset beyond its own log and cannot become a follower at
all. Kafka truncates to the smaller of the two.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ...core.protocol import Fair, Form
from ..logs import OFFSET
from .state import fencing, is_true_leader

# ``Spec`` of the KIP's own Kip320.tla and its four siblings; the TLA+ names differ by variant, the actions do not. The
# KIP's Kip320FirstTry.tla says SF of the old LeaderExpandIsr, which is no action of its ``Next``: here it is the
# variant's own.
_KIP = (
    Fair("leader_inc_high_watermark", strong=True),
    Fair("leader_expand_isr", strong=True),
    Fair("leader_write", strong=True),
    Fair("become_follower"),
    Fair("become_leader"),
)

fencing.assume_fair("kip", _KIP, "what the KIP's own model assumes")
fencing.assume_fair(
    "fair-fetches",
    (*_KIP, Fair("follower_fetch"), Fair("follower_truncate"), Fair("follower_acknowledge")),
    "the same, and a follower that can fetch, or must truncate to be able to, does so in the end",
)


@fencing.eventually(Form.RECURS)
def final_leader_adopts_epoch(k: Algebra, s: View) -> Value:
    """The final leader adopts its epoch.

    TLA+: ``[]<>(quorumState.leader = None \\/ \\E r \\in Replicas : IsTrueLeader(r))``. Once true it stays true until
    the controller acts, so this is ``<>[]`` as well, and a leader that the controller replaces owes nothing.
    """
    return k.any(s.quorum_leader == k.NONE, k.exists(REPLICA, lambda r: is_true_leader(k, s, r)))


@fencing.eventually(Form.LEADS_TO, leader=REPLICA, offset=OFFSET)
def final_leader_commits_record(k: Algebra, s: View, leader: Value, offset: Value) -> tuple[Value, Value]:
    """A record at the final leader is in the end committed: the leader counts it below its high watermark.

    TLA+: ``\\A r, o : <>[](quorumState.leader = r /\\ o < leo[r]) => <>[](o < hw[r])``, written as a ``~>``: while r
    leads and has something at the offset, it is committed in the end. A record that the leader truncates before it
    adopts its epoch is none of this; after that its log never shrinks.
    """
    stays = k.all(s.quorum_leader == leader, offset < s.leo[leader])
    return stays, k.any(k.negate(stays), offset < s.hw[leader])
