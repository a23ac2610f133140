------------------------- MODULE Kip320KafkaFences --------------------------
(***************************************************************************)
(* Kip320Kafka with a controller that takes a failed follower out of the   *)
(* ISR in the leader epoch that there is (K14). All promises are kept.     *)
(***************************************************************************)
EXTENDS KafkaFencedSteps

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ KeepsInOfficeEffect(leader, epoch)
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
    \/ AnyProducerHears
    \/ AnyConsumerReads
    \/ AnyFenceFollower
    \/ AnyLearnLaterIsr

Spec == RunningInit /\ NoneLater /\ [][Next]_fencedVars

\* What the KIP's own model assumes to go on, as far as there are such steps: nothing about fetches.
KipFairness ==
    /\ SF_fencedVars(AnyIncHighWatermark)
    /\ SF_fencedVars(AnyWrite)
    /\ WF_fencedVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_fencedVars(AnyFetch) /\ WF_fencedVars(AnyAcknowledge)

=============================================================================
