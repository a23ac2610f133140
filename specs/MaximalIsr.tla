----------------------------- MODULE MaximalIsr -----------------------------
(***************************************************************************)
(* KIP-497's leader: the high watermark waits for the maximal ISR, the     *)
(* members that the leader knows and whoever it has proposed to take in or *)
(* out and may be, or remain, in the controller's ISR.                     *)
(***************************************************************************)
EXTENDS AlterIsr

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ AcknowledgedBy(leader, Isr(leader) \union Proposed(leader))  \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED remoteLeo /\ SameIsrsEffect

=============================================================================
