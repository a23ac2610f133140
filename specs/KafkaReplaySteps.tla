-------------------------- MODULE KafkaReplaySteps --------------------------
(***************************************************************************)
(* The steps of KafkaReplays, for any replicas, epochs and offsets.        *)
(***************************************************************************)
EXTENDS KafkaReplays

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
