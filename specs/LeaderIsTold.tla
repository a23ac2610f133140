---------------------------- MODULE LeaderIsTold ----------------------------
(***************************************************************************)
(* What a leader that goes by its followers' fetches counts and whom it    *)
(* drops, and the steps.                                                   *)
(*                                                                         *)
(* Kip320Brokers, where a leader forgets what it was told when it takes up *)
(* a newer epoch, keeps all promises. Kip320StaleAcks, where it does not,  *)
(* breaks them.                                                            *)
(***************************************************************************)
EXTENDS RemoteLeos

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in Isr(leader) :
            Hw(leader) < KnownLeo(leader, member)                   \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

LeaderShrinkIsr(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ remoteLeo[leader][follower] < Leo(leader)                    \* not_caught_up
    /\ TrueLeader(leader)                                           \* true_leader
    /\ UpdateIsrEffect(leader, Isr(leader) \ {follower})

-----------------------------------------------------------------------------
(* The steps, but for taking up leadership, in which the variants differ.  *)

AnyElectLeader      == \E replica \in Replicas : ControllerElectLeader(replica) /\ UNCHANGED remoteLeo
AnyFailure          == \E replica \in Replicas : ControllerShrinkIsr(replica) /\ UNCHANGED remoteLeo
AnyBecomeFollower   == \E leader, follower \in Replicas, epoch \in Epochs :
                           BecomeFollower(leader, follower, epoch) /\ ForgottenEffect(follower)
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader) /\ UNCHANGED remoteLeo
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ ToldEffect(leader, follower)
AnyAcknowledge      == \E leader, follower \in Replicas : FollowerAcknowledge(leader, follower)
AnyIncHighWatermark == \E leader \in Replicas : LeaderIncHighWatermark(leader) /\ UNCHANGED remoteLeo
AnyShrinkIsr        == \E leader, follower \in Replicas :
                           LeaderShrinkIsr(leader, follower) /\ UNCHANGED remoteLeo
AnyExpandIsr        == \E leader, follower \in Replicas :
                           LeaderExpandIsr(leader, follower) /\ UNCHANGED remoteLeo
AnyRestart          == \E replica \in Replicas, stored \in EndOffsets :
                           Restart(replica, stored) /\ ForgottenEffect(replica)

=============================================================================
