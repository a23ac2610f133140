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

-----------------------------------------------------------------------------
(* The steps, for any replicas, epochs and offsets. *)

AnyElectLeader      == \E replica \in Replicas :
                           ControllerElectLeader(replica) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyFailure          == \E replica \in Replicas :
                           ControllerShrinkIsr(replica) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyFailOver         == \E failed, newLeader \in Replicas :
                           ControllerFailOver(failed, newLeader) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyGrantIsr         == \E leader \in Replicas :
                           ControllerGrantIsr(leader) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyHearOfLeader     == \E replica \in Replicas, epoch \in Epochs :
                           HearOfLeader(replica, epoch) /\ NoRoleEffect(replica) /\ NotAheadEffect(replica)
                           /\ UNCHANGED clientVars
AnyTruncatePartly   == \E leader, follower \in Replicas, end \in EndOffsets :
                           TruncatePartly(leader, follower, end) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyRestart          == \E replica \in Replicas, stored \in EndOffsets :
                           Restart(replica, stored) /\ NoRoleEffect(replica) /\ NotAheadEffect(replica)
                           /\ UNCHANGED clientVars
AnyWrite            == \E leader \in Replicas :
                           LeaderWrite(leader) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyAcknowledge      == \E leader, follower \in Replicas :
                           FollowerAcknowledge(leader, follower)
                           /\ UNCHANGED <<maximalIsr, askedIsr, clientVars, ahead>>
AnyHearHighWatermark == \E leader, follower \in Replicas :
                           FollowerHearHighWatermark(leader, follower)
                           /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyAskShrink        == \E leader, follower \in Replicas :
                           LeaderAskShrink(leader, follower) /\ UNCHANGED <<clientVars, ahead>>
AnyAskExpand        == \E leader, follower \in Replicas :
                           LeaderAskExpand(leader, follower) /\ UNCHANGED <<clientVars, ahead>>
AnyAskAgain         == \E leader \in Replicas : LeaderAskAgain(leader) /\ UNCHANGED <<clientVars, ahead>>
AnyLearnIsr         == \E leader \in Replicas :
                           LeaderLearnIsr(leader) /\ AheadEffect(leader) /\ UNCHANGED clientVars
AnyProducerHears    == \E leader \in Replicas, offset \in Offsets :
                           ProducerHears(leader, offset) /\ UNCHANGED <<leaderVars, ahead>>
AnyConsumerReads    == \E leader \in Replicas, offset \in Offsets :
                           ConsumerReads(leader, offset) /\ UNCHANGED <<leaderVars, ahead>>
AnyReplayIsr        == \E leader \in Replicas : LeaderReplayIsr(leader) /\ UNCHANGED clientVars

=============================================================================
