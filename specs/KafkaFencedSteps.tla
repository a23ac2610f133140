-------------------------- MODULE KafkaFencedSteps --------------------------
(***************************************************************************)
(* The steps of KafkaFences, for any replicas, epochs and offsets, where a *)
(* leader that replays its ISR goes on counting whoever it has proposed.   *)
(***************************************************************************)
EXTENDS KafkaFences

AnyElectLeader      == \E replica \in Replicas :
                           ControllerElectLeader(replica) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyFailure          == \E replica \in Replicas :
                           ControllerShrinkIsr(replica) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyFailOver         == \E failed, newLeader \in Replicas :
                           ControllerFailOver(failed, newLeader) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyGrantIsr         == \E leader \in Replicas :
                           ControllerGrantIsr(leader) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyHearOfLeader     == \E replica \in Replicas, epoch \in Epochs :
                           HearOfLeader(replica, epoch) /\ NoRoleEffect(replica) /\ UNCHANGED <<clientVars, laterIsr>>
AnyTruncatePartly   == \E leader, follower \in Replicas, end \in EndOffsets :
                           TruncatePartly(leader, follower, end) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyRestart          == \E replica \in Replicas, stored \in EndOffsets :
                           Restart(replica, stored) /\ NoRoleEffect(replica) /\ UNCHANGED <<clientVars, laterIsr>>
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyAcknowledge      == \E leader, follower \in Replicas :
                           FollowerAcknowledge(leader, follower)
                           /\ UNCHANGED <<maximalIsr, askedIsr, clientVars, laterIsr>>
AnyHearHighWatermark == \E leader, follower \in Replicas :
                           FollowerHearHighWatermark(leader, follower) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED <<leaderVars, clientVars, laterIsr>>
AnyAskShrink        == \E leader, follower \in Replicas :
                           LeaderAskShrink(leader, follower) /\ UNCHANGED <<clientVars, laterIsr>>
AnyAskExpand        == \E leader, follower \in Replicas :
                           LeaderAskExpand(leader, follower) /\ UNCHANGED <<clientVars, laterIsr>>
AnyAskAgain         == \E leader \in Replicas : LeaderAskAgain(leader) /\ UNCHANGED <<clientVars, laterIsr>>
AnyLearnIsr         == \E leader \in Replicas : LeaderLearnIsr(leader) /\ UNCHANGED <<clientVars, laterIsr>>
AnyProducerHears    == \E leader \in Replicas, offset \in Offsets :
                           ProducerHears(leader, offset) /\ UNCHANGED <<leaderVars, laterIsr>>
AnyConsumerReads    == \E leader \in Replicas, offset \in Offsets :
                           ConsumerReads(leader, offset) /\ UNCHANGED <<leaderVars, laterIsr>>
AnyFenceFollower    == \E replica \in Replicas :
                           ControllerFenceFollower(replica) /\ UNCHANGED <<leaderVars, clientVars>>
AnyLearnLaterIsr    == \E leader \in Replicas, place \in Places :
                           LeaderLearnLaterIsr(leader, place) /\ UNCHANGED clientVars

=============================================================================
