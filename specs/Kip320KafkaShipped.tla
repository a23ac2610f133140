------------------------- MODULE Kip320KafkaShipped -------------------------
(***************************************************************************)
(* Apache Kafka 4.4 with both of its faults, those of Kip320KafkaStaleAcks *)
(* (K11) and of Kip320KafkaForgets (K12).                                  *)
(***************************************************************************)
EXTENDS KafkaReplaySteps

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ KeepsAllEffect(leader, epoch) /\ BeginsEffect(leader)
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
    \/ AnyReplayIsr
    \/ AnyProducerHears
    \/ AnyConsumerReads

Spec == ReplayInit /\ [][Next]_replayVars

\* What the KIP's own model assumes to go on, as far as there are such steps: nothing about fetches.
KipFairness ==
    /\ SF_replayVars(AnyIncHighWatermark)
    /\ SF_replayVars(AnyWrite)
    /\ WF_replayVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_replayVars(AnyFetch) /\ WF_replayVars(AnyAcknowledge)

=============================================================================
