------------------------- MODULE Kip320KafkaForgets -------------------------
(***************************************************************************)
(* Apache Kafka 4.4 with one of its faults (K12): a leader that replays    *)
(* the ISR that it knows forgets whom it has proposed since, and commits   *)
(* without a member that the controller has let in.                        *)
(***************************************************************************)
EXTENDS KafkaReplaySteps

AnyBecomeLeader == \E leader \in Replicas, epoch \in Epochs :
                       BecomeLeader(leader, epoch) /\ KeepsInOfficeEffect(leader, epoch) /\ BeginsEffect(leader)
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
