---------------------- MODULE Kip320KafkaShippedFences ----------------------
(***************************************************************************)
(* Kip320KafkaShipped with a controller that takes a failed follower out   *)
(* of the ISR in the leader epoch that there is (K14).                     *)
(***************************************************************************)
EXTENDS KafkaFencedReplaySteps

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ KeepsAllEffect(leader, epoch) /\ BeginsEffect(leader)
                                                   /\ UNCHANGED <<clientVars, laterIsr>>

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyFailOver
    \/ AnyGrantIsr
    \/ AnyBecomeLeader
    \/ AnyHearOfLeader
    \/ AnyTruncatePartly
    \/ AnyRestart
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyAcknowledge
    \/ AnyHearHighWatermark
    \/ AnyIncHighWatermark
    \/ AnyAskShrink
    \/ AnyAskExpand
    \/ AnyAskAgain
    \/ AnyLearnIsr
    \/ AnyReplayIsr
    \/ AnyProducerHears
    \/ AnyConsumerReads
    \/ AnyFenceFollower
    \/ AnyLearnLaterIsr

Spec == ReplayInit /\ NoneLater /\ [][Next]_shippedVars

\* What the KIP's own model assumes to go on, as far as there are such steps: nothing about fetches.
KipFairness ==
    /\ SF_shippedVars(AnyIncHighWatermark)
    /\ SF_shippedVars(AnyWrite)
    /\ WF_shippedVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_shippedVars(AnyFetch) /\ WF_shippedVars(AnyAcknowledge)

=============================================================================
