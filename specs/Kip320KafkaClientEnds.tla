----------------------- MODULE Kip320KafkaClientEnds ------------------------
(***************************************************************************)
(* Kip320KafkaClient with a validation that compares end offsets alone     *)
(* (H1).                                                                   *)
(***************************************************************************)
EXTENDS ValidatesByEnd

Next ==
    \/ PartitionNext
    \/ ConsumerNext
    \/ \E leader \in Replicas : CompleteValidation(leader)
    \/ \E leader \in Replicas : FindTruncation(leader)

Spec == Init /\ [][Next]_vars

=============================================================================
