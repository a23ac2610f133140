----------------------------- MODULE RemoteLeos -----------------------------
(***************************************************************************)
(* The leader goes by what its followers' fetches have told it, as brokers *)
(* do: a fetch is asked for at the follower's LEO, and acknowledges all    *)
(* below. A follower may have moved on to a newer epoch since. Replicas    *)
(* crash and come back.                                                    *)
(*                                                                         *)
(* In Kip320Brokers the leader changes its ISR and the controller's in one *)
(* step, in Kip497 by a request that is answered.                          *)
(***************************************************************************)
EXTENDS Followers

VARIABLES
    remoteLeo   \* per leader and follower: the LEO that the last fetch told, NotTold if none or no leader

toldVars == <<vars, remoteLeo>>

NotTold == -1

RemoteLeosOk ==
    /\ remoteLeo \in [Replicas -> [Replicas -> EndOffsets \union {NotTold}]]
    /\ \A leader, follower \in Replicas :
            remoteLeo[leader][follower] # NotTold => PresumesLeadership(leader) /\ leader # follower

ToldInit == Init /\ remoteLeo = [leader \in Replicas |-> [follower \in Replicas |-> NotTold]]

-----------------------------------------------------------------------------
(* What becomes of it. Where a step says nothing of remoteLeo, the relation *)
(* of the steps, below, does.                                               *)

\* The fetch is asked for at the follower's LEO.
ToldEffect(leader, follower) ==
    remoteLeo' = [remoteLeo EXCEPT ![leader][follower] = Leo(follower)]

ForgottenEffect(replica) ==
    remoteLeo' = [remoteLeo EXCEPT ![replica] = [follower \in Replicas |-> NotTold]]

\* A fetch whose response is lost, or brings no record.
FollowerAcknowledge(leader, follower) ==
    /\ leader # follower                                            \* not_leader_itself
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ remoteLeo[leader][follower] # Leo(follower)                  \* something_new
    /\ ToldEffect(leader, follower)
    /\ UNCHANGED vars

\* The end of a member's log, as far as the leader knows.
KnownLeo(leader, member) == IF member = leader THEN Leo(leader) ELSE remoteLeo[leader][member]

=============================================================================
