--------------------------- MODULE Kip320Forgets ----------------------------
(***************************************************************************)
(* A replica does not store its leader epoch, and comes back in none: any  *)
(* request that was ever sent is a new one to it. It may lead again in an  *)
(* epoch that is long over, with the ISR of then.                          *)
(***************************************************************************)
EXTENDS Restarts

Restart(replica, stored) ==
    /\ stored <= Hw(replica)                                        \* stored_high_watermark
    /\ SomethingLost(replica, stored)                               \* something_lost
    /\ RestartEffect(replica, stored, NoEpoch)

AnyRestart == \E replica \in Replicas, stored \in EndOffsets : Restart(replica, stored)

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyBecomeLeader
    \/ AnyBecomeFollower
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyIncHighWatermark
    \/ AnyShrinkIsr
    \/ AnyExpandIsr
    \/ AnyRestart

Spec == Init /\ [][Next]_vars

=============================================================================
