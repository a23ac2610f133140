------------------------- MODULE Kip630KafkaShipped -------------------------
(***************************************************************************)
(* Kip630Kafka with what is wrong in 4.4.0: whose process ends by itself   *)
(* (F22), and which errors are never told (F24). Neither is a step: the    *)
(* first is a Resume, the second leaves things as they are.                *)
(***************************************************************************)
EXTENDS KafkaQuorum

=============================================================================
