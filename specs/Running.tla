------------------------------ MODULE Running -------------------------------
(***************************************************************************)
(* What one node of a running cluster does at once, as far as every        *)
(* cluster does it alike: whatever a message changes at its receiver is a  *)
(* step of its own. A leader asks for an ISR, the controller alters it,    *)
(* the leader learns of it; until then it counts on whoever may be in the  *)
(* ISR. And what clients were told is remembered, to be held to.           *)
(*                                                                         *)
(* Kip320Cluster has the cluster of the text, KafkaBrokers Apache Kafka's. *)
(***************************************************************************)
EXTENDS Fencing

VARIABLES
    remoteLeo,      \* per leader and follower: the LEO that the last fetch told, NotTold if none or no leader
    maximalIsr,     \* per leader: whoever is, or by what it has asked for may be, in the controller's ISR
    askedIsr,       \* per leader: the ISR that it has asked for; the one that it knows where it asks for none
    acknowledged,   \* per record: the offset that its producer was told of, NotTold if none
    read            \* per offset: the record that a consumer was given there, NotTold if none

leaderVars  == <<remoteLeo, maximalIsr, askedIsr>>
clientVars  == <<acknowledged, read>>
runningVars == <<vars, leaderVars, clientVars>>

NotTold == -1
RecordIds == 0 .. MaxRecords - 1

RunningOk ==
    /\ remoteLeo \in [Replicas -> [Replicas -> EndOffsets \union {NotTold}]]
    /\ \A leader, follower \in Replicas :
            remoteLeo[leader][follower] # NotTold => PresumesLeadership(leader) /\ leader # follower
    /\ maximalIsr \in [Replicas -> SUBSET Replicas]
    /\ askedIsr \in [Replicas -> SUBSET Replicas]
    /\ acknowledged \in [RecordIds -> Offsets \union {NotTold}]
    /\ read \in [Offsets -> RecordIds \union {NotTold}]

RunningInit ==
    /\ Init
    /\ remoteLeo = [leader \in Replicas |-> [follower \in Replicas |-> NotTold]]
    /\ maximalIsr = [replica \in Replicas |-> {}]
    /\ askedIsr = [replica \in Replicas |-> {}]
    /\ acknowledged = [record \in RecordIds |-> NotTold]
    /\ read = [offset \in Offsets |-> NotTold]

-----------------------------------------------------------------------------
(* What becomes of the new variables. Where a step says nothing of them,   *)
(* the relation of the steps does.                                         *)

\* A leader knows nothing of its followers' logs at first, and of no other ISR than the request's.
LeadsEffect(leader, isr) ==
    /\ remoteLeo' = [remoteLeo EXCEPT ![leader] = [follower \in Replicas |-> NotTold]]
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = isr]
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = isr]

NoRoleEffect(replica) == LeadsEffect(replica, {})

\* From now on the high watermark waits for the follower, as the controller may take it in at any time.
AskExpandEffect(leader, follower) ==
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = @ \union {follower}]
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = @ \union {follower}]
    /\ UNCHANGED <<vars, remoteLeo>>

-----------------------------------------------------------------------------
(* The controller. *)

ControllerFailOver(failed, newLeader) ==
    /\ quorumState.leader = failed                                  \* leads
    /\ newLeader # failed                                           \* another
    /\ newLeader \in quorumState.isr                                \* in_quorum_isr
    /\ nextLeaderEpoch <= MaxLeaderEpoch                            \* epoch_available
    /\ ControllerUpdateEffect(newLeader, quorumState.isr \ {failed})

\* Whoever is told of this leader epoch from now on is told of this ISR. The request has another one than the
\* controller where followers were fenced of which the leader has not heard (Fences of KafkaBrokers).
ControllerGrantIsr(leader) ==
    /\ TrueLeader(leader)                                           \* true_leader
    /\ {Isr(leader), RequestOf(quorumState.leaderEpoch).isr} = {quorumState.isr}  \* isr_is_current
    /\ askedIsr[leader] # quorumState.isr                           \* something_asked
    /\ quorumState' = [quorumState EXCEPT !.isr = askedIsr[leader]]
    /\ leaderAndIsrRequests' = {IF request.leaderEpoch = quorumState.leaderEpoch
                                THEN [request EXCEPT !.isr = askedIsr[leader]]
                                ELSE request : request \in leaderAndIsrRequests}
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, replicaState>>

-----------------------------------------------------------------------------
(* Followers and leaders. *)

FollowerHearHighWatermark(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Hw(follower) # Min(Hw(leader), Leo(follower))                \* something_new
    /\ replicaState' = [replicaState EXCEPT ![follower].hw = Min(Hw(leader), Leo(follower))]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

LeaderAskShrink(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ follower \in askedIsr[leader]                                \* not_asked_yet
    /\ remoteLeo[leader][follower] < Leo(leader)                    \* not_caught_up
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = @ \ {follower}]
    /\ UNCHANGED <<vars, remoteLeo, maximalIsr>>

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
