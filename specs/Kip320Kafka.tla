---------------------------- MODULE Kip320Kafka -----------------------------
(***************************************************************************)
(* What Apache Kafka's brokers do, but for what breaks it (K11, K12): a    *)
(* leader keeps what its followers' fetches told it in another epoch,      *)
(* unless somebody else has led in between. All promises are kept.         *)
(***************************************************************************)
EXTENDS KafkaSteps

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ KeepsInOfficeEffect(leader, epoch)
                                                   /\ UNCHANGED clientVars

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

Spec == RunningInit /\ [][Next]_runningVars

\* What the KIP's own model assumes to go on, as far as there are such steps: nothing about fetches.
KipFairness ==
    /\ SF_runningVars(AnyIncHighWatermark)
    /\ SF_runningVars(AnyWrite)
    /\ WF_runningVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_runningVars(AnyFetch) /\ WF_runningVars(AnyAcknowledge)

=============================================================================
