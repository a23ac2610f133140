------------------------ MODULE Kip320KafkaStaleAcks ------------------------
(***************************************************************************)
(* Apache Kafka 4.4 with one of its faults (K11): a leader that hears of   *)
(* two elections at once keeps what it was told in its former epoch,       *)
(* though its followers may have truncated since.                          *)
(***************************************************************************)
EXTENDS KafkaSteps

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ KeepsAllEffect(leader, epoch)
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
