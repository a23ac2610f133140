------------------------------ MODULE Restarts ------------------------------
(***************************************************************************)
(* Crashes, with a leader that sees its followers' logs.                   *)
(*                                                                         *)
(* Kip320Restarts, where the leader epoch is stored before the replica     *)
(* acts in it, keeps all promises. Kip320Forgets, where it is not, and     *)
(* Kip320Resumes, where a restarted leader goes on leading, do not.        *)
(***************************************************************************)
EXTENDS Crashes, LeaderSees

AnyBecomeFollower == \E leader, follower \in Replicas, epoch \in Epochs :
                          BecomeFollower(leader, follower, epoch)

\* What the KIP's own model assumes to go on: nothing about fetches.
KipFairness ==
    /\ SF_vars(AnyIncHighWatermark)
    /\ SF_vars(AnyExpandIsr)
    /\ SF_vars(AnyWrite)
    /\ WF_vars(AnyBecomeFollower)
    /\ WF_vars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_vars(AnyFetch)

=============================================================================
