---------------------------- MODULE KafkaReplays ----------------------------
(***************************************************************************)
(* The steps of KafkaBrokers, where a leader that replays the record of an *)
(* ISR that it knows already, by the controller's answer, forgets whom it  *)
(* has proposed since (K12). The controller may have taken that up.        *)
(***************************************************************************)
EXTENDS KafkaBrokers

VARIABLES
    ahead           \* per leader: 1 if it knows its ISR by an answer alone, else 0; -1 for whoever does not lead

replayVars == <<runningVars, ahead>>

ReplayOk ==
    /\ RunningOk
    /\ ahead \in [Replicas -> {-1, 0, 1}]
    /\ \A replica \in Replicas : ahead[replica] = -1 <=> ~ PresumesLeadership(replica)

ReplayInit ==
    /\ RunningInit
    /\ ahead = [replica \in Replicas |-> -1]

NotAheadEffect(replica) == ahead' = [ahead EXCEPT ![replica] = -1]

\* It begins to lead by a record.
BeginsEffect(leader) == ahead' = [ahead EXCEPT ![leader] = 0]

AheadEffect(leader) ==
    ahead' = [ahead EXCEPT ![leader] = IF Isr(leader) # RequestOf(Epoch(leader)).isr THEN 1 ELSE @]

LeaderReplayIsr(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ ahead[leader] = 1                                            \* not_replayed
    /\ maximalIsr' = [maximalIsr EXCEPT ![leader] = Isr(leader)]
    /\ askedIsr' = [askedIsr EXCEPT ![leader] = Isr(leader)]
    /\ ahead' = [ahead EXCEPT ![leader] = 0]
    /\ UNCHANGED <<vars, remoteLeo>>

=============================================================================
