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
EXTENDS Fenced

VARIABLES
    remoteLeo,      \* per leader and follower: the LEO that the last fetch told, NotTold if none or no leader
    synced,         \* per replica: the end of what its disk keeps when power is lost
    maximalIsr,     \* per leader: whoever is, or by what it has asked for may be, in the controller's ISR
    askedIsr,       \* per leader: the ISR that it has asked for; the one that it knows where it asks for none
    acknowledged,   \* per record: the offset that its producer was told of, NotTold if none
    read            \* per offset: the record that a consumer was given there, NotTold if none

leaderVars  == <<remoteLeo, maximalIsr, askedIsr>>
clientVars  == <<acknowledged, read>>
clusterVars == <<vars, leaderVars, synced, clientVars>>

NotTold == -1
RecordIds == 0 .. MaxRecords - 1

ClusterOk ==
    /\ remoteLeo \in [Replicas -> [Replicas -> EndOffsets \union {NotTold}]]
    /\ \A leader, follower \in Replicas :
            remoteLeo[leader][follower] # NotTold => PresumesLeadership(leader) /\ leader # follower
    /\ synced \in [Replicas -> EndOffsets]
    /\ \A replica \in Replicas : synced[replica] <= Leo(replica)
    /\ maximalIsr \in [Replicas -> SUBSET Replicas]
    /\ askedIsr \in [Replicas -> SUBSET Replicas]
    /\ acknowledged \in [RecordIds -> Offsets \union {NotTold}]
    /\ read \in [Offsets -> RecordIds \union {NotTold}]

ClusterInit ==
    /\ Init
    /\ remoteLeo = [leader \in Replicas |-> [follower \in Replicas |-> NotTold]]
    /\ synced = [replica \in Replicas |-> 0]
    /\ maximalIsr = [replica \in Replicas |-> {}]
    /\ askedIsr = [replica \in Replicas |-> {}]
    /\ acknowledged = [record \in RecordIds |-> NotTold]
    /\ read = [offset \in Offsets |-> NotTold]

-----------------------------------------------------------------------------
(* What becomes of the new variables. Where a step says nothing of them,   *)
(* the relation of the steps, below, does.                                 *)

\* A leader knows nothing of its followers' logs at first, and of no other ISR than the request's.
LeadsEffect(leader, isr) ==
    /\ remoteLeo' = [remoteLeo EXCEPT ![leader] = [follower \in Replicas |-> NotTold]]
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = isr]
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = isr]

NoRoleEffect(replica) == LeadsEffect(replica, {})

CutEffect(replica, newEndOffset) ==
    synced' = [synced EXCEPT ![replica] = Min(newEndOffset, @)]

-----------------------------------------------------------------------------
(* The controller. *)

ControllerFailOver(failed, newLeader) ==
    /\ quorumState.leader = failed                                  \* leads
    /\ newLeader # failed                                           \* another
    /\ newLeader \in quorumState.isr                                \* in_quorum_isr
    /\ nextLeaderEpoch <= MaxLeaderEpoch                            \* epoch_available
    /\ ControllerUpdateEffect(newLeader, quorumState.isr \ {failed})

\* Whoever is told of this leader epoch from now on is told of this ISR.
ControllerGrantIsr(leader) ==
    /\ TrueLeader(leader)                                           \* true_leader
    /\ Isr(leader) = quorumState.isr                                \* isr_is_current
    /\ askedIsr[leader] # quorumState.isr                           \* something_asked
    /\ quorumState' = [quorumState EXCEPT !.isr = askedIsr[leader]]
    /\ leaderAndIsrRequests' = {IF request.leaderEpoch = quorumState.leaderEpoch
                                THEN [request EXCEPT !.isr = askedIsr[leader]]
                                ELSE request : request \in leaderAndIsrRequests}
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, replicaState>>

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

FollowerHearHighWatermark(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Hw(follower) # Min(Hw(leader), Leo(follower))                \* something_new
    /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(Hw(leader), Leo(follower))]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

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

LeaderAskShrink(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ follower \in askedIsr[leader]                                \* not_asked_yet
    /\ remoteLeo[leader][follower] < Leo(leader)                    \* not_caught_up
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = @ \ {follower}]
    /\ UNCHANGED <<vars, remoteLeo, maximalIsr>>

\* From now on the high watermark waits for the follower, as the controller may take it in at any time.
LeaderAskExpand(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ follower \notin askedIsr[leader]                             \* not_asked_yet
    /\ Hw(leader) <= remoteLeo[leader][follower]                    \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                       \* hw_reached_epoch
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = @ \union {follower}]
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = @ \union {follower}]
    /\ UNCHANGED <<vars, remoteLeo>>

\* What it asked for before stays open.
LeaderAskAgain(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ askedIsr[leader] # Isr(leader)                               \* asked_another
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = Isr(leader)]
    /\ UNCHANGED <<vars, remoteLeo, maximalIsr>>

LeaderLearnIsr(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ {Isr(leader), maximalIsr[leader], askedIsr[leader]} # {RequestOf(Epoch(leader)).isr}  \* something_new
    /\ replicaState' = [replicaState EXCEPT ![leader].isr = RequestOf(Epoch(leader)).isr]
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = RequestOf(Epoch(leader)).isr]
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = RequestOf(Epoch(leader)).isr]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests, remoteLeo>>

-----------------------------------------------------------------------------
(* What clients are told. *)

\* A producer with acks=all.
ProducerHears(leader, offset) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ offset < Hw(leader)                                          \* below_high_watermark
    /\ acknowledged[RecordAt(leader, offset).id] # offset           \* something_new
    /\ acknowledged' = [acknowledged EXCEPT ![RecordAt(leader, offset).id] = offset]
    /\ UNCHANGED <<vars, read>>

ConsumerReads(leader, offset) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ offset < Hw(leader)                                          \* below_high_watermark
    /\ read[offset] # RecordAt(leader, offset).id                   \* something_new
    /\ read' = [read EXCEPT ![offset] = RecordAt(leader, offset).id]
    /\ UNCHANGED <<vars, acknowledged>>

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

-----------------------------------------------------------------------------
(* What clients were told. *)

Holds(replica, offset, record) ==
    /\ offset < Leo(replica)
    /\ RecordAt(replica, offset).id = record

AcknowledgedIsKept ==
    \A member \in quorumState.isr, record \in RecordIds :
        acknowledged[record] # NotTold => Holds(member, acknowledged[record], record)

ReadIsKept ==
    \A member \in quorumState.isr, offset \in Offsets :
        read[offset] # NotTold => Holds(member, offset, read[offset])

WrittenOnce ==
    \A replica \in Replicas : \A one, other \in OffsetsOf(replica) :
        one < other => RecordAt(replica, one).id # RecordAt(replica, other).id

=============================================================================
