----------------------- MODULE Kip320KafkaClientLate ------------------------
(***************************************************************************)
(* Kip320KafkaClient with answers taken of a leader that was left since    *)
(* (V6).                                                                   *)
(***************************************************************************)
EXTENDS ValidatesByEpoch

Next ==
    \/ PartitionNext
    \/ ConsumerNext
    \/ \E leader \in Replicas : CompleteValidation(leader)
    \/ \E leader \in Replicas : FindTruncation(leader)
    \/ \E leader \in Replicas : ReadLateRecord(leader)

Spec == Init /\ [][Next]_vars

=============================================================================
