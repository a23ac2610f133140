--------------------------- MODULE Kip320Resumes ----------------------------
(***************************************************************************)
(* A restarted leader goes on leading in its own epoch, with the ISR of    *)
(* now, as long as the quorum has it lead. Its high watermark may have     *)
(* fallen below what it committed in this epoch, and then HwReachedEpoch   *)
(* says nothing of what a follower must have to join the ISR.              *)
(***************************************************************************)
EXTENDS Restarts

Restart(replica, stored) ==
    /\ stored <= Hw(replica)                                        \* stored_high_watermark
    /\ SomethingLost(replica, stored)                               \* something_lost
    /\ RestartEffect(replica, stored, Epoch(replica))

ResumeLeadership(leader) ==
    /\ replicaState[leader].leader = None                           \* lost_role
    /\ quorumState.leader = leader                                  \* quorum_has_it_lead
    /\ Epoch(leader) = quorumState.leaderEpoch                      \* epoch_is_quorums
    /\ replicaState' = [replicaState EXCEPT ![leader].leader = leader, ![leader].isr = quorumState.isr]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests>>

AnyRestart == \E replica \in Replicas, stored \in EndOffsets : Restart(replica, stored)
AnyResume  == \E leader \in Replicas : ResumeLeadership(leader)

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
    \/ AnyResume

Spec == Init /\ [][Next]_vars

=============================================================================
