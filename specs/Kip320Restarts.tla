--------------------------- MODULE Kip320Restarts ---------------------------
(***************************************************************************)
(* A replica has stored its leader epoch before it acts in it, and so      *)
(* comes back in the epoch in which it was. All promises are kept. But     *)
(* nothing obliges the controller to elect anew when the leader is back,   *)
(* so nothing need be committed in the end.                                *)
(***************************************************************************)
EXTENDS Restarts

Restart(replica, stored) ==
    /\ stored <= Hw(replica)                                        \* stored_high_watermark
    /\ SomethingLost(replica, stored)                               \* something_lost
    /\ RestartEffect(replica, stored, Epoch(replica))

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

FairFetchSpec == Spec /\ KipFairness /\ FairFetches

=============================================================================
