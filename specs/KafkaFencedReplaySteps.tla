----------------------- MODULE KafkaFencedReplaySteps -----------------------
(***************************************************************************)
(* The steps of KafkaReplays and of KafkaFences, for any replicas, epochs  *)
(* and offsets.                                                            *)
(***************************************************************************)
EXTENDS KafkaReplays, KafkaFences

shippedVars == <<replayVars, laterIsr>>

AnyElectLeader      == \E replica \in Replicas :
                           ControllerElectLeader(replica) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyFailure          == \E replica \in Replicas :
                           ControllerShrinkIsr(replica) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyFailOver         == \E failed, newLeader \in Replicas :
                           ControllerFailOver(failed, newLeader) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyGrantIsr         == \E leader \in Replicas :
                           ControllerGrantIsr(leader) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyHearOfLeader     == \E replica \in Replicas, epoch \in Epochs :
                           HearOfLeader(replica, epoch) /\ NoRoleEffect(replica) /\ NotAheadEffect(replica)
                           /\ UNCHANGED <<clientVars, laterIsr>>
AnyTruncatePartly   == \E leader, follower \in Replicas, end \in EndOffsets :
                           TruncatePartly(leader, follower, end) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyRestart          == \E replica \in Replicas, stored \in EndOffsets :
                           Restart(replica, stored) /\ NoRoleEffect(replica) /\ NotAheadEffect(replica)
                           /\ UNCHANGED <<clientVars, laterIsr>>
AnyWrite            == \E leader \in Replicas :
                           LeaderWrite(leader) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyAcknowledge      == \E leader, follower \in Replicas :
                           FollowerAcknowledge(leader, follower)
                           /\ UNCHANGED <<maximalIsr, askedIsr, clientVars, ahead, laterIsr>>
AnyHearHighWatermark == \E leader, follower \in Replicas :
                           FollowerHearHighWatermark(leader, follower)
                           /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED <<leaderVars, clientVars, ahead, laterIsr>>
AnyAskShrink        == \E leader, follower \in Replicas :
                           LeaderAskShrink(leader, follower) /\ UNCHANGED <<clientVars, ahead, laterIsr>>
AnyAskExpand        == \E leader, follower \in Replicas :
                           LeaderAskExpand(leader, follower) /\ UNCHANGED <<clientVars, ahead, laterIsr>>
AnyAskAgain         == \E leader \in Replicas : LeaderAskAgain(leader) /\ UNCHANGED <<clientVars, ahead, laterIsr>>
AnyLearnIsr         == \E leader \in Replicas :
                           LeaderLearnIsr(leader) /\ AheadEffect(leader) /\ UNCHANGED <<clientVars, laterIsr>>
AnyProducerHears    == \E leader \in Replicas, offset \in Offsets :
                           ProducerHears(leader, offset) /\ UNCHANGED <<leaderVars, ahead, laterIsr>>
AnyConsumerReads    == \E leader \in Replicas, offset \in Offsets :
                           ConsumerReads(leader, offset) /\ UNCHANGED <<leaderVars, ahead, laterIsr>>
AnyReplayIsr        == \E leader \in Replicas : LeaderReplayIsr(leader) /\ UNCHANGED <<clientVars, laterIsr>>
AnyFenceFollower    == \E replica \in Replicas :
                           ControllerFenceFollower(replica) /\ UNCHANGED <<leaderVars, clientVars, ahead>>
AnyLearnLaterIsr    == \E leader \in Replicas, place \in Places :
                           LeaderLearnLaterIsr(leader, place) /\ BeginsEffect(leader)
                           /\ UNCHANGED clientVars

=============================================================================
