---------------------- MODULE Kip320KafkaClientShipped ----------------------
(***************************************************************************)
(* KIP-320 as the consumer of Apache Kafka 4.4 does it: end offsets alone  *)
(* are compared (H1), and late answers taken (V6).                         *)
(***************************************************************************)
EXTENDS ValidatesByEnd

Next ==
    \/ PartitionNext
    \/ ConsumerNext
    \/ \E leader \in Replicas : CompleteValidation(leader)
    \/ \E leader \in Replicas : FindTruncation(leader)
    \/ \E leader \in Replicas : ReadLateRecord(leader)

Spec == Init /\ [][Next]_vars

=============================================================================
