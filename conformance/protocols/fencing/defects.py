"""Defects of brokers, controller and log, which are driven against ``fencing``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect, defect
from ...mutants.patched import Patch

_FENCING: Final = "fencing"

BROKER_DEFECTS: Final[tuple[Defect, ...]] = (
    # -- fencing of followers ---------------------------------------------------------------------------------------
    defect(
        "zombie-follower-fetches",
        _FENCING,
        "the leader answers a fetch of an older leader epoch as if it were of its own",
        "replica/fetch.py",
        "    if epoch != leader.epoch:\n",
        "    if epoch > leader.epoch:\n",
        issue="KAFKA-6880",
    ),
    defect(
        "newer-follower-fetches",
        _FENCING,
        "the leader answers a fetch of a newer leader epoch, and so does not learn that it is deposed",
        "replica/fetch.py",
        "    if epoch != leader.epoch:\n",
        "    if epoch < leader.epoch:\n",
    ),
    defect(
        "fenced-for-unknown",
        _FENCING,
        "FENCED_REPLICA where the follower's leader epoch is the newer one",
        "replica/fetch.py",
        "return ErrorCode.FENCED_REPLICA if epoch < leader.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH",
        "return ErrorCode.FENCED_REPLICA",
    ),
    defect(
        "truncation-not-fenced",
        _FENCING,
        "OffsetsForLeaderEpoch is answered whatever leader epoch the follower is in",
        "replica/fetch.py",
        "        error = _check_replica(leader, request.replica_id, request.current_leader_epoch)\n"
        "    if error is not ErrorCode.NONE:\n"
        "        return OffsetsForLeaderEpochResponse",
        "        error = ErrorCode.NONE\n"
        "    if error is not ErrorCode.NONE:\n"
        "        return OffsetsForLeaderEpochResponse",
        issue="KAFKA-6880",
    ),
    defect(
        "fenced-fetch-counts",
        _FENCING,
        "a fetch is noted as the follower's progress before it is fenced",
        "replica/fetch.py",
        "    if error is not ErrorCode.NONE:\n        return FetchResponse(error, log_start_offset",
        "    if replica and request.replica_id in leader.progress and offset <= log.end:\n"
        "        leader.fetched(request.replica_id, offset, request.log_start_offset)\n"
        "    if error is not ErrorCode.NONE:\n        return FetchResponse(error, log_start_offset",
        issue="KAFKA-13141",
    ),
    # -- followers --------------------------------------------------------------------------------------------------
    defect(
        "fenced-follower-stops",
        _FENCING,
        "a follower whose fetch was fenced gives up, and hears no more of this leader epoch",
        "replica/follower.py",
        "        if not isinstance(body, FetchResponse) or body.leader_epoch != self.epoch:\n",
        "        if body.error is ErrorCode.FENCED_REPLICA:\n            self._partition._end_following()\n"
        "        elif not isinstance(body, FetchResponse) or body.leader_epoch != self.epoch:\n",
        issue="KAFKA-7786",
    ),
    defect(
        "fetches-before-truncation",
        _FENCING,
        "a new follower fetches without having asked where to cut its log",
        "replica/follower.py",
        "        self.truncating = True\n        self._correlation",
        "        self.truncating = False\n        self._correlation",
        issue="KAFKA-6361",
    ),
    defect(
        "truncates-to-high-watermark",
        _FENCING,
        "a new follower cuts its log to its own high watermark, as before KIP-101",
        "replica/follower.py",
        "            offset, done = self._truncation_offset(body.leader_epoch, body.end_offset)\n",
        "            offset, done = self._partition.high_watermark, True\n",
        issue="KAFKA-1211",
    ),
    defect(
        "truncates-to-leaders-end",
        _FENCING,
        "a new follower cuts its log where the leader's epoch ends, and not where that epoch ends in its own log",
        "replica/follower.py",
        "        return min(end_here, end_offset), True\n",
        "        return min(end_offset, self._log.end), True\n",
        issue="KAFKA-6361",
        constants=(2, 1, 2, 2),
    ),
    defect(
        "high-watermark-beyond-log",
        _FENCING,
        "a follower takes the leader's high watermark, whether or not it has the records below it",
        "replica/follower.py",
        "partition.set_high_watermark(max(min(body.high_watermark, log.end), log.local_start))",
        "partition.set_high_watermark(max(body.high_watermark, log.local_start))",
        issue="KAFKA-14704",
    ),
    defect(
        "late-answers-count",
        _FENCING,
        "an answer is taken for that to the request in flight, whichever request it answers",
        "replica/runtime.py",
        "        waiting = self._waiting.get(envelope.correlation)\n",
        "        envelope = Envelope(\n"
        "            envelope.source,\n"
        "            envelope.destination,\n"
        "            max((c for c, w in self._waiting.items() if w[0] == envelope.source), default=-1),\n"
        "            envelope.body,\n"
        "        )\n"
        "        waiting = self._waiting.get(envelope.correlation)\n",
        constants=(2, 1, 1, 1),
    ),
    defect(
        "acknowledges-before-sync",
        _FENCING,
        "a follower's fetch acknowledges records that a crash can still take away",
        "replica/follower.py",
        "            if log.recovery_point < log.end:\n                log.flush()\n            fetch",
        "            fetch",
    ),
    # -- leaders ----------------------------------------------------------------------------------------------------
    defect(
        "leader-acknowledges-before-sync",
        _FENCING,
        "a produce with acks=1 is answered before the record is synced",
        "replica/leader.py",
        "        if request.acks == 1 and self._log.recovery_point <= last_offset:\n            self._log.flush()\n",
        "",
    ),
    defect(
        "high-watermark-without-isr",
        _FENCING,
        "the high watermark does not wait for the members of the ISR",
        "replica/leader.py",
        "            if each.end < end:\n                end = each.end\n",
        "            if each.end < end and each.end > partition.high_watermark:\n                end = each.end\n",
    ),
    defect(
        "high-watermark-past-one-member",
        _FENCING,
        "the high watermark waits for all members of the ISR but the slowest",
        "replica/leader.py",
        "        for each in self._counted:\n            if each.end < end:\n                end = each.end\n",
        "        ends = sorted(each.end for each in self._counted)\n        end = min(end, *ends[1:], end)\n",
        constants=(3, 1, 1, 1),
    ),
    defect(
        "progress-survives-the-epoch",
        _FENCING,
        "a leader that leads again goes by what its followers had fetched in its former leader epoch",
        "replica/leader.py",
        "        self.progress = {replica: Progress(replica, now) for replica in request.replicas"
        " if replica != runtime.node_id}\n",
        "        old = runtime.__dict__.setdefault('remembered', {}).get(partition.key, {})\n"
        "        others = [replica for replica in request.replicas if replica != runtime.node_id]\n"
        "        self.progress = {replica: old.get(replica) or Progress(replica, now) for replica in others}\n"
        "        runtime.__dict__['remembered'][partition.key] = self.progress\n",
    ),
    defect(
        "repeat-is-appended",
        _FENCING,
        "a producer's repeated batch is appended again",
        "replica/producers.py",
        "            if sent.first_sequence == first and sent.last_sequence == _last_sequence(batch):\n"
        "                return sent\n",
        "            if sent.first_sequence == first and sent.last_sequence == _last_sequence(batch):\n"
        "                return ErrorCode.NONE\n",
        constants=(2, 1, 1, 1),
    ),
    # -- roles and leader epochs ------------------------------------------------------------------------------------
    defect(
        "stale-leader-and-isr",
        _FENCING,
        "a LeaderAndIsr request of an older leader epoch is taken up",
        "replica/partition.py",
        "        if request.leader_epoch < self.leader_epoch:\n            return ErrorCode.FENCED_REPLICA\n",
        "        if request.leader_epoch < self.leader_epoch - 1:\n            return ErrorCode.FENCED_REPLICA\n",
    ),
    defect(
        "leads-again-after-restart",
        _FENCING,
        "a restarted replica leads again in the leader epoch in which it led",
        "replica/partition.py",
        "            if request.leader == here:\n                return ErrorCode.FENCED_REPLICA\n",
        "",
    ),
    defect(
        "leader-epoch-not-stored",
        _FENCING,
        "a replica takes up a leader epoch that it has not stored",
        "replica/partition.py",
        "            self.runtime.directory.store_leader_epoch(*self.key, request.leader_epoch)\n",
        "            pass\n",
    ),
    defect(
        "repeat-resets-the-role",
        _FENCING,
        "a LeaderAndIsr request that is in force already begins the role anew",
        "replica/partition.py",
        "            if self.request is not None:\n                return self._repeated(request, self.request)\n"
        "            if request.leader == here:\n",
        "            if request.leader == here and self.request is None:\n",
    ),
    # -- the ISR ----------------------------------------------------------------------------------------------------
    defect(
        "joins-isr-before-epoch",
        _FENCING,
        "a follower joins the ISR before the high watermark has reached the leader's own epoch",
        "replica/isr.py",
        "                each.end >= high_watermark >= epoch_start\n",
        "                each.end >= high_watermark\n",
        issue="KAFKA-7128",
        constants=(3, 1, 1, 1),
    ),
    defect(
        "joins-isr-lagging",
        _FENCING,
        "a follower that lacks committed records joins the ISR",
        "replica/isr.py",
        "                each.end >= high_watermark >= epoch_start\n",
        "                each.end + 1 >= high_watermark >= epoch_start\n",
        constants=(2, 1, 1, 1),
    ),
    Defect(
        "offline-replica-joins-isr",
        _FENCING,
        "leader and controller let a replica join the ISR that is marked offline (KIP-320)",
        (
            Patch("replica/isr.py", "                and each.replica not in self.offline\n", ""),
            Patch("zk_controller/partition.py", "        if isr & self.offline:\n", "        if not isr:\n"),
        ),
    ),
    defect(
        "laggard-stays-in-isr",
        _FENCING,
        "a follower that has missed the last record only is not taken out of the ISR",
        "replica/isr.py",
        "                if each.end != log.end and",
        "                if each.end < log.end - 1 and",
    ),
    defect(
        "stale-alter-isr",
        _FENCING,
        "the controller takes up the ISR of a leader that it has replaced",
        "zk_controller/partition.py",
        "        if leader_epoch < self.leader_epoch or broker != self.leader or self.leader == NO_LEADER:\n",
        "        if broker not in self.replicas or self.leader == NO_LEADER:\n",
    ),
    defect(
        "last-member-leaves-isr",
        _FENCING,
        "the controller takes the last member out of the ISR, and with it what was committed",
        "zk_controller/partition.py",
        "        last = leads and self.isr == {replica}\n",
        "        last = False\n",
    ),
    # -- the log ----------------------------------------------------------------------------------------------------
    defect(
        "epoch-end-off-by-one",
        _FENCING,
        "the end offset of an older epoch is the offset of its last record",
        "log/epochs.py",
        "        end = self._entries[higher].start_offset\n",
        "        end = max(self._entries[higher].start_offset - 1, 0)\n",
    ),
    defect(
        "epoch-lookup-off-by-one",
        _FENCING,
        "the epoch asked for is answered as if it were the next larger one",
        "log/epochs.py",
        "        higher = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)\n",
        "        higher = bisect_right(self._entries, epoch - 1, key=lambda entry: entry.epoch)\n",
    ),
    defect(
        "epochs-of-fetched-records",
        _FENCING,
        "a follower does not note the leader epochs of the records that it fetches",
        "log/log.py",
        "            self._epochs.assign(epoch, offset)\n\n    def _roll",
        "            pass\n\n    def _roll",
    ),
    Defect(
        "checkpoint-renamed-before-sync",
        _FENCING,
        "a checkpoint gets its name before its content is synced, and a crash leaves it torn or empty",
        (Patch("log/checkpoints.py", "        file.fsync()\n    finally:", "    finally:"),),
    ),
    defect(
        "flush-without-sync",
        _FENCING,
        "a log says that it is synced, and has not asked the disk",
        "log/log.py",
        "                self._segments[-1].fsync()\n                self._recovery_point = self.end\n",
        "                self._recovery_point = self.end\n",
    ),
)
"""In the order of the paths that a record takes: fetch, follower, leader, roles, ISR, log."""
