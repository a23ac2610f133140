------------------------- MODULE Kip320KafkaClient --------------------------
(***************************************************************************)
(* KIP-320 as Apache Kafka's consumer does it, but for what breaks it:     *)
(* epochs are compared (H1), and what a leader sends that was left since   *)
(* is dropped (V6).                                                        *)
(***************************************************************************)
EXTENDS ValidatesByEpoch

Next ==
    \/ PartitionNext
    \/ ConsumerNext
    \/ \E leader \in Replicas : CompleteValidation(leader)
    \/ \E leader \in Replicas : FindTruncation(leader)

Spec == Init /\ [][Next]_vars

=============================================================================
