---------------------------- MODULE KafkaFences -----------------------------
(***************************************************************************)
(* A controller that takes a failed follower out of the ISR in the leader  *)
(* epoch that there is, unasked, by a record of a new partition epoch (K14). *)
(* Several ISRs of one leader epoch may be on their way to its leader: the *)
(* epoch's request has the one of which it hears next, if it has not heard *)
(* of it, and laterIsr those that came of fencings since, in their order.  *)
(***************************************************************************)
EXTENDS KafkaBrokers

VARIABLES
    laterIsr        \* per leader epoch: the ISRs of which its leader has not heard, a sequence

fencedVars == <<runningVars, laterIsr>>

FencesOk ==
    /\ DOMAIN laterIsr = Epochs
    /\ \A epoch \in Epochs :
        /\ Len(laterIsr[epoch]) < Cardinality(Replicas)
        /\ \A i \in 1 .. Len(laterIsr[epoch]) : laterIsr[epoch][i] \in SUBSET Replicas

NoneLater == laterIsr = [epoch \in Epochs |-> <<>>]

ControllerFenceFollower(replica) ==
    /\ quorumState.leader # None                                    \* is_led
    /\ replica # quorumState.leader                                 \* not_leader_itself
    /\ replica \in quorumState.isr                                  \* in_quorum_isr
    /\ quorumState' = [quorumState EXCEPT !.isr = @ \ {replica}]
    /\ laterIsr' = [laterIsr EXCEPT ![quorumState.leaderEpoch] = Append(@, quorumState.isr \ {replica})]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, replicaState, leaderAndIsrRequests>>

\* The places are counted from 0. With the record of a fencing come those of all that was before it.
LeaderLearnLaterIsr(leader, place) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ place < Len(laterIsr[Epoch(leader)])                         \* was_fenced
    /\ replicaState' = [replicaState EXCEPT ![leader].isr = laterIsr[Epoch(leader)][place + 1]]
    /\ AskedAnewEffect(leader, laterIsr[Epoch(leader)][place + 1])
    /\ leaderAndIsrRequests' = {IF request.leaderEpoch = Epoch(leader)
                                THEN [request EXCEPT !.isr = laterIsr[Epoch(leader)][place + 1]]
                                ELSE request : request \in leaderAndIsrRequests}
    /\ laterIsr' = [laterIsr EXCEPT ![Epoch(leader)] = SubSeq(@, place + 2, Len(@))]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, remoteLeo>>

Places == 0 .. Cardinality(Replicas) - 1

=============================================================================
