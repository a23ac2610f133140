--------------------------- MODULE Kip320Cluster ----------------------------
(***************************************************************************)
(* A running cluster, each step what one node does at once: whatever a     *)
(* message changes at its receiver is a step of its own. A leader asks for *)
(* an ISR, the controller alters it, the leader learns of it; until then   *)
(* it counts on whoever may be in the ISR. A replica that hears of a new   *)
(* leader gives up its role before it truncates. A disk keeps what was     *)
(* synced, and maybe more. And what clients were told is remembered. All   *)
(* promises are kept, those to clients among them.                         *)
(***************************************************************************)
EXTENDS Running

VARIABLES
    synced          \* per replica: the end of what its disk keeps when power is lost

clusterVars == <<runningVars, synced>>

ClusterOk ==
    /\ RunningOk
    /\ synced \in [Replicas -> EndOffsets]
    /\ \A replica \in Replicas : synced[replica] <= Leo(replica)

ClusterInit ==
    /\ RunningInit
    /\ synced = [replica \in Replicas |-> 0]

CutEffect(replica, newEndOffset) ==
    synced' = [synced EXCEPT ![replica] = Min(newEndOffset, @)]

-----------------------------------------------------------------------------
(* Roles. *)

\* Who was told of an epoch, and neither leads nor follows in it yet, or after a crash.
LostRoleIn(replica, epoch) ==
    /\ replicaState[replica].leader = None
    /\ Epoch(replica) = epoch

HearOfLeader(replica, epoch) ==
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader \notin {None, replica}               \* names_another
    /\ epoch > Epoch(replica)                                       \* epoch_newer
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> @.hw, leaderEpoch |-> epoch, leader |-> None, isr |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

\* A follower has no use for the ISR.
BecomeFollower(leader, follower, epoch) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ Sent(epoch)                                                  \* request_sent
    /\ RequestOf(epoch).leader = leader                             \* names_leader
    /\ epoch > Epoch(follower) \/ LostRoleIn(follower, epoch)       \* epoch_newer
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Epoch(leader) = epoch                                        \* leader_epoch_matches
    /\ EndOffsetByMatch(leader, follower) <= Leo(follower)          \* truncates_backward
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, EndOffsetByMatch(leader, follower))]
    /\ replicaState' = [replicaState EXCEPT ![follower] =
            [hw |-> Min(EndOffsetByMatch(leader, follower), @.hw), leaderEpoch |-> epoch, leader |-> leader,
             isr |-> {}]]
    /\ CutEffect(follower, EndOffsetByMatch(leader, follower))
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

\* A round of the truncation, or what was done of it when power was lost.
TruncatePartly(leader, follower, end) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ replicaState[follower].leader = None                         \* lost_role
    /\ InEpochOf(follower, leader)                                  \* leader_epoch_matches
    /\ end < Leo(follower)                                          \* truncates_backward
    /\ EndOffsetByMatch(leader, follower) <= end                    \* keeps_what_matches
    /\ replicaLog' = [replicaLog EXCEPT ![follower] = SubSeq(@, 1, end)]
    /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(end, @)]
    /\ CutEffect(follower, end)
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

RestartAfterLoss(replica, stored, end) ==
    /\ synced[replica] <= end                                       \* synced_survives
    /\ end <= Leo(replica)                                          \* within_log
    /\ stored <= Min(Hw(replica), end)                              \* stored_high_watermark
    /\ \/ replicaState[replica].leader # None
       \/ stored < Hw(replica)
       \/ end < Leo(replica)
       \/ synced[replica] < end                                     \* something_lost
    /\ replicaLog' = [replicaLog EXCEPT ![replica] = SubSeq(@, 1, end)]
    /\ synced' = [synced EXCEPT ![replica] = end]
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [hw |-> stored, leaderEpoch |-> @.leaderEpoch, leader |-> None, isr |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>

-----------------------------------------------------------------------------
(* Records and the high watermark. *)

LeaderWriteAgain(leader, record) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ record < nextRecordId                                        \* was_sent
    /\ \A offset \in OffsetsOf(leader) : RecordAt(leader, offset).id # record  \* not_in_log
    /\ Leo(leader) < LogSize                                        \* log_not_full
    /\ replicaLog' = [replicaLog EXCEPT ![leader] = Append(@, [id |-> record, epoch |-> Epoch(leader)])]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaState, quorumState, leaderAndIsrRequests>>

Flush(replica, end) ==
    /\ synced[replica] < end                                        \* not_synced
    /\ end <= Leo(replica)                                          \* within_log
    /\ synced' = [synced EXCEPT ![replica] = end]
    /\ UNCHANGED vars

\* The fetch itself; its response is a FollowerFetch, or a FollowerHearHighWatermark where it brings no record.
FollowerAcknowledge(leader, follower) ==
    /\ synced[follower] = Leo(follower)                             \* acknowledges_synced
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ remoteLeo[leader][follower] # Leo(follower)                  \* something_new
    /\ remoteLeo' = [remoteLeo EXCEPT ![leader][follower] = Leo(follower)]
    /\ UNCHANGED vars

\* The end of what a member has synced, as far as the leader knows.
KnownEnd(leader, member) == IF member = leader THEN synced[leader] ELSE remoteLeo[leader][member]

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in maximalIsr[leader] :
            Hw(leader) < KnownEnd(leader, member)                   \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

-----------------------------------------------------------------------------
(* The ISR, at its leader. *)

LeaderAskExpand(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ follower \notin askedIsr[leader]                             \* not_asked_yet
    /\ Hw(leader) <= remoteLeo[leader][follower]                    \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                       \* hw_reached_epoch
    /\ AskExpandEffect(leader, follower)

-----------------------------------------------------------------------------
(* The steps. *)

AnyElectLeader      == \E replica \in Replicas :
                           ControllerElectLeader(replica) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyFailure          == \E replica \in Replicas :
                           ControllerShrinkIsr(replica) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyFailOver         == \E failed, newLeader \in Replicas :
                           ControllerFailOver(failed, newLeader) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyGrantIsr         == \E leader \in Replicas :
                           ControllerGrantIsr(leader) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyBecomeLeader     == \E leader \in Replicas, epoch \in Epochs :
                           BecomeLeader(leader, epoch) /\ LeadsEffect(leader, RequestOf(epoch).isr)
                                                       /\ UNCHANGED <<synced, clientVars>>
AnyHearOfLeader     == \E replica \in Replicas, epoch \in Epochs :
                           HearOfLeader(replica, epoch) /\ NoRoleEffect(replica) /\ UNCHANGED <<synced, clientVars>>
AnyBecomeFollower   == \E leader, follower \in Replicas, epoch \in Epochs :
                           BecomeFollower(leader, follower, epoch) /\ NoRoleEffect(follower) /\ UNCHANGED clientVars
AnyTruncatePartly   == \E leader, follower \in Replicas, end \in EndOffsets :
                           TruncatePartly(leader, follower, end) /\ UNCHANGED <<leaderVars, clientVars>>
AnyRestart          == \E replica \in Replicas, stored, end \in EndOffsets :
                           RestartAfterLoss(replica, stored, end) /\ NoRoleEffect(replica) /\ UNCHANGED clientVars
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyWriteAgain       == \E leader \in Replicas, record \in RecordIds :
                           LeaderWriteAgain(leader, record) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyFlush            == \E replica \in Replicas, end \in EndOffsets :
                           Flush(replica, end) /\ UNCHANGED <<leaderVars, clientVars>>
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyAcknowledge      == \E leader, follower \in Replicas :
                           FollowerAcknowledge(leader, follower)
                           /\ UNCHANGED <<maximalIsr, askedIsr, synced, clientVars>>
AnyHearHighWatermark == \E leader, follower \in Replicas :
                           FollowerHearHighWatermark(leader, follower) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED <<leaderVars, synced, clientVars>>
AnyAskShrink        == \E leader, follower \in Replicas :
                           LeaderAskShrink(leader, follower) /\ UNCHANGED <<synced, clientVars>>
AnyAskExpand        == \E leader, follower \in Replicas :
                           LeaderAskExpand(leader, follower) /\ UNCHANGED <<synced, clientVars>>
AnyAskAgain         == \E leader \in Replicas : LeaderAskAgain(leader) /\ UNCHANGED <<synced, clientVars>>
AnyLearnIsr         == \E leader \in Replicas : LeaderLearnIsr(leader) /\ UNCHANGED <<synced, clientVars>>
AnyProducerHears    == \E leader \in Replicas, offset \in Offsets :
                           ProducerHears(leader, offset) /\ UNCHANGED <<leaderVars, synced>>
AnyConsumerReads    == \E leader \in Replicas, offset \in Offsets :
                           ConsumerReads(leader, offset) /\ UNCHANGED <<leaderVars, synced>>

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyFailOver
    \/ AnyGrantIsr
    \/ AnyBecomeLeader
    \/ AnyHearOfLeader
    \/ AnyBecomeFollower
    \/ AnyTruncatePartly
    \/ AnyRestart
    \/ AnyWrite
    \/ AnyWriteAgain
    \/ AnyFlush
    \/ AnyFetch
    \/ AnyAcknowledge
    \/ AnyHearHighWatermark
    \/ AnyIncHighWatermark
    \/ AnyAskShrink
    \/ AnyAskExpand
    \/ AnyAskAgain
    \/ AnyLearnIsr
    \/ AnyProducerHears
    \/ AnyConsumerReads

Spec == ClusterInit /\ [][Next]_clusterVars

\* What the KIP's own model assumes to go on, as far as there are such steps: nothing about fetches.
KipFairness ==
    /\ SF_clusterVars(AnyIncHighWatermark)
    /\ SF_clusterVars(AnyWrite)
    /\ WF_clusterVars(AnyBecomeFollower)
    /\ WF_clusterVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_clusterVars(AnyFetch) /\ WF_clusterVars(AnyAcknowledge)

=============================================================================
