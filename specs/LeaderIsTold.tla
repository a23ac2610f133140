---------------------------- MODULE LeaderIsTold ----------------------------
(***************************************************************************)
(* The leader goes by what its followers' fetches have told it, as brokers *)
(* do: a fetch is asked for at the follower's LEO, and acknowledges all    *)
(* below. A follower may have moved on to a newer epoch since. Replicas    *)
(* crash and come back.                                                    *)
(*                                                                         *)
(* Kip320Brokers, where a leader forgets what it was told when it takes up *)
(* a newer epoch, keeps all promises. Kip320StaleAcks, where it does not,  *)
(* breaks them.                                                            *)
(***************************************************************************)
EXTENDS Crashes

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

Restart(replica, stored) ==
    /\ stored <= Hw(replica)                                        \* stored_high_watermark
    /\ SomethingLost(replica, stored)                               \* something_lost
    /\ RestartEffect(replica, stored, Epoch(replica))

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
