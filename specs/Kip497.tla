------------------------------- MODULE Kip497 -------------------------------
(***************************************************************************)
(* KIP-497: the leader asks the controller for another ISR (AlterIsr, in   *)
(* Kafka AlterPartition), and the controller answers. Requests and answers *)
(* may be late, repeated or lost.                                          *)
(*                                                                         *)
(* Partition epochs are counted from 0 in each leader epoch, modulo 2. The *)
(* controller moves on only by a request for the one that it is in, which  *)
(* its leader knows, so that it is at most one ahead.                      *)
(*                                                                         *)
(* With AlterIsr = "maximal" the high watermark waits for the maximal ISR: *)
(* the members that the leader knows, and the replicas that it has         *)
(* proposed to take in or out, which may be in the controller's ISR. All   *)
(* invariants hold. Other values break them:                               *)
(*   "members"  it waits for the known members alone, and the controller   *)
(*           may have let in a replica without a committed record          *)
(*   "until-lost"  the leader goes back to the ISR that it knows when no   *)
(*           answer comes. The controller may have taken the proposal up,  *)
(*           or may yet                                                    *)
(*   "until-fenced"  the same, when the controller answers that it is in a *)
(*           newer leader epoch. It may have taken the proposal up before, *)
(*           and made the new member leader                                *)
(***************************************************************************)
EXTENDS RemoteLeos

CONSTANTS
    AlterIsr    \* which members a leader counts while a proposal is open

ASSUME AlterIsr \in {"maximal", "members", "until-lost", "until-fenced"}

VARIABLES
    quorumPartitionEpoch,   \* the controller's partition epoch
    leaderIsr,              \* per replica that leads: the partition epoch that it knows, and whom it has proposed in it
    alterIsrRequests,       \* per leader epoch and partition epoch: whom requests ask to take in and out
    alterIsrAnswers         \* per leader epoch in which somebody leads: ISR and partition epoch of the last answer

alterVars == <<toldVars, quorumPartitionEpoch, leaderIsr, alterIsrRequests, alterIsrAnswers>>

PartitionEpochs == 0 .. 1
NoPartitionEpoch == -1
Following(partitionEpoch) == 1 - partitionEpoch

NoLeaderIsr == [partitionEpoch |-> NoPartitionEpoch, proposed |-> {}]
NewLeaderIsr == [partitionEpoch |-> 0, proposed |-> {}]
NoRequests == [in |-> {}, out |-> {}]
NoAnswer == [isr |-> {}, partitionEpoch |-> NoPartitionEpoch]

PartitionEpochOf(leader) == leaderIsr[leader].partitionEpoch
Proposed(leader) == leaderIsr[leader].proposed

AlterIsrOk ==
    /\ quorumPartitionEpoch \in PartitionEpochs
    /\ leaderIsr \in [Replicas -> [partitionEpoch : PartitionEpochs \union {NoPartitionEpoch},
                                   proposed : SUBSET Replicas]]
    /\ \A replica \in Replicas : PresumesLeadership(replica) <=> leaderIsr[replica].partitionEpoch # NoPartitionEpoch
    /\ alterIsrRequests \in [Epochs -> [PartitionEpochs -> [in : SUBSET Replicas, out : SUBSET Replicas]]]
    /\ alterIsrAnswers \in [Epochs -> [isr : SUBSET Replicas,
                                       partitionEpoch : PartitionEpochs \union {NoPartitionEpoch}]]

\* A leader that the controller has in its own leader epoch is at most one change of the ISR behind, and its ISR is
\* the controller's where it is not.
LeaderKnowsIsr ==
    \A leader \in Replicas :
        TrueLeader(leader) /\ PartitionEpochOf(leader) = quorumPartitionEpoch => Isr(leader) = quorumState.isr

AlterInit ==
    /\ ToldInit
    /\ quorumPartitionEpoch = 0
    /\ leaderIsr = [replica \in Replicas |-> NoLeaderIsr]
    /\ alterIsrRequests = [epoch \in Epochs |-> [partitionEpoch \in PartitionEpochs |-> NoRequests]]
    /\ alterIsrAnswers = [epoch \in Epochs |-> NoAnswer]

-----------------------------------------------------------------------------
(* What becomes of it in the steps that are as before.                     *)

NewLeaderEpochEffect ==
    /\ quorumPartitionEpoch' = 0
    /\ UNCHANGED <<remoteLeo, leaderIsr, alterIsrRequests, alterIsrAnswers>>

\* Whoever led takes up no more answers.
AnswersWithout(replica) ==
    [epoch \in Epochs |-> IF PresumesLeadership(replica) /\ Epoch(replica) = epoch
                          THEN NoAnswer
                          ELSE alterIsrAnswers[epoch]]

LeadEffect(leader, epoch) ==
    /\ leaderIsr' = [leaderIsr EXCEPT ![leader] = NewLeaderIsr]
    /\ alterIsrAnswers' = [AnswersWithout(leader) EXCEPT
            ![epoch] = [isr |-> RequestOf(epoch).isr, partitionEpoch |-> 0]]
    /\ UNCHANGED <<quorumPartitionEpoch, alterIsrRequests>>

StepDownEffect(replica) ==
    /\ leaderIsr' = [leaderIsr EXCEPT ![replica] = NoLeaderIsr]
    /\ alterIsrAnswers' = AnswersWithout(replica)
    /\ UNCHANGED <<quorumPartitionEpoch, alterIsrRequests>>

SameIsrsEffect == UNCHANGED <<quorumPartitionEpoch, leaderIsr, alterIsrRequests, alterIsrAnswers>>

-----------------------------------------------------------------------------
(* Requests and answers.                                                   *)

ProposeEffect(leader, request) ==
    /\ leaderIsr' = [leaderIsr EXCEPT ![leader].proposed = @ \union request.in \union request.out]
    /\ alterIsrRequests' = [alterIsrRequests EXCEPT ![Epoch(leader)][PartitionEpochOf(leader)] =
            [in |-> @.in \union request.in, out |-> @.out \union request.out]]
    /\ UNCHANGED <<toldVars, quorumPartitionEpoch, alterIsrAnswers>>

LeaderProposeShrink(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ leader # follower                                            \* not_leader_itself
    /\ follower \in Isr(leader)                                     \* in_isr
    /\ remoteLeo[leader][follower] < Leo(leader)                    \* not_caught_up
    /\ follower \notin Proposed(leader)                             \* not_proposed
    /\ ProposeEffect(leader, [in |-> {}, out |-> {follower}])

LeaderProposeExpand(leader, follower) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ follower \notin Isr(leader)                                  \* outside_isr
    /\ Follows(follower, leader)                                    \* follows_leader
    /\ InEpochOf(follower, leader)                                  \* epoch_not_fenced
    /\ Hw(leader) <= Leo(follower)                                  \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                       \* hw_reached_epoch
    /\ follower \notin Proposed(leader)                             \* not_proposed
    /\ ProposeEffect(leader, [in |-> {follower}, out |-> {}])

\* A request asks for some of the changes that its leader has found in a partition epoch: one, two, or none, which the
\* leader itself stands for. What was asked for two partition epochs ago is void for good.
AlterIsrEffect(epoch, asked, changes) ==
    LET newIsr == (quorumState.isr \ (asked.out \intersect changes)) \union (asked.in \intersect changes)
        newPartitionEpoch == Following(quorumPartitionEpoch)
    IN  /\ quorumState' = [quorumState EXCEPT !.isr = newIsr]
        /\ quorumPartitionEpoch' = newPartitionEpoch
        /\ alterIsrRequests' = [alterIsrRequests EXCEPT ![epoch][newPartitionEpoch] = NoRequests]
        /\ alterIsrAnswers' = [alterIsrAnswers EXCEPT
                ![epoch] = IF @ = NoAnswer THEN @ ELSE [isr |-> newIsr, partitionEpoch |-> newPartitionEpoch]]
        /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, replicaState, leaderAndIsrRequests, remoteLeo,
                       leaderIsr>>

ControllerAlterIsr(epoch, partitionEpoch, one, other) ==
    /\ alterIsrRequests[epoch][partitionEpoch] # NoRequests         \* request_sent
    /\ LET asked == alterIsrRequests[epoch][partitionEpoch]
       IN  {one, other} \subseteq asked.in \union asked.out \union {RequestOf(epoch).leader} \* changes_asked
    /\ epoch = quorumState.leaderEpoch                              \* leader_epoch_matches
    /\ partitionEpoch = quorumPartitionEpoch                        \* partition_epoch_matches
    /\ AlterIsrEffect(epoch, alterIsrRequests[epoch][partitionEpoch], {one, other})

\* The answer says what holds, whether it took the request up or refused it.
LeaderTakeIsr(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ alterIsrAnswers[Epoch(leader)].partitionEpoch # PartitionEpochOf(leader) \* partition_epoch_newer
    /\ replicaState' = [replicaState EXCEPT ![leader].isr = alterIsrAnswers[Epoch(leader)].isr]
    /\ leaderIsr' = [leaderIsr EXCEPT ![leader] =
            [partitionEpoch |-> alterIsrAnswers[Epoch(leader)].partitionEpoch, proposed |-> {}]]
    /\ UNCHANGED <<nextRecordId, nextLeaderEpoch, replicaLog, quorumState, leaderAndIsrRequests, remoteLeo,
                   quorumPartitionEpoch, alterIsrRequests, alterIsrAnswers>>

\* What must not be done: no answer came, or the answer was that the leader is fenced.
LeaderForgetProposal(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Proposed(leader) # {}                                        \* proposal_open
    /\ AlterIsr = "until-fenced" => Epoch(leader) < quorumState.leaderEpoch \* fenced
    /\ leaderIsr' = [leaderIsr EXCEPT ![leader].proposed = {}]
    /\ UNCHANGED <<toldVars, quorumPartitionEpoch, alterIsrRequests, alterIsrAnswers>>

\* The members that the leader counts.
Counted(leader) == IF AlterIsr = "members" THEN Isr(leader) ELSE Isr(leader) \union Proposed(leader)

LeaderIncHighWatermark(leader) ==
    /\ PresumesLeadership(leader)                                   \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                     \* record_above_hw
    /\ \A member \in Counted(leader) :
            Hw(leader) < KnownLeo(leader, member)                   \* isr_acknowledges
    /\ IncHighWatermarkEffect(leader)

-----------------------------------------------------------------------------
(* The steps. *)

Forgetting == IF AlterIsr \in {"until-lost", "until-fenced"} THEN Replicas ELSE {}

AnyElectLeader      == \E replica \in Replicas : ControllerElectLeader(replica) /\ NewLeaderEpochEffect
AnyFailure          == \E replica \in Replicas : ControllerShrinkIsr(replica) /\ NewLeaderEpochEffect
AnyBecomeLeader     == \E leader \in Replicas, epoch \in Epochs :
                           BecomeLeader(leader, epoch) /\ ForgottenEffect(leader) /\ LeadEffect(leader, epoch)
AnyBecomeFollower   == \E leader, follower \in Replicas, epoch \in Epochs :
                           BecomeFollower(leader, follower, epoch) /\ ForgottenEffect(follower) /\ StepDownEffect(follower)
AnyWrite            == \E leader \in Replicas : LeaderWrite(leader) /\ UNCHANGED remoteLeo /\ SameIsrsEffect
AnyFetch            == \E leader, follower \in Replicas :
                           FollowerFetch(leader, follower) /\ ToldEffect(leader, follower) /\ SameIsrsEffect
AnyAcknowledge      == \E leader, follower \in Replicas : FollowerAcknowledge(leader, follower) /\ SameIsrsEffect
AnyIncHighWatermark == \E leader \in Replicas :
                           LeaderIncHighWatermark(leader) /\ UNCHANGED remoteLeo /\ SameIsrsEffect
AnyProposeShrink    == \E leader, follower \in Replicas : LeaderProposeShrink(leader, follower)
AnyProposeExpand    == \E leader, follower \in Replicas : LeaderProposeExpand(leader, follower)
AnyAlterIsr         == \E epoch \in Epochs, partitionEpoch \in PartitionEpochs, one, other \in Replicas :
                           ControllerAlterIsr(epoch, partitionEpoch, one, other)
AnyTakeIsr          == \E leader \in Replicas : LeaderTakeIsr(leader)
AnyForgetProposal   == \E leader \in Forgetting : LeaderForgetProposal(leader)
AnyRestart          == \E replica \in Crashing, stored \in EndOffsets :
                           Restart(replica, stored) /\ ForgottenEffect(replica) /\ StepDownEffect(replica)

Next ==
    \/ AnyElectLeader
    \/ AnyFailure
    \/ AnyBecomeLeader
    \/ AnyBecomeFollower
    \/ AnyWrite
    \/ AnyFetch
    \/ AnyAcknowledge
    \/ AnyIncHighWatermark
    \/ AnyProposeShrink
    \/ AnyProposeExpand
    \/ AnyAlterIsr
    \/ AnyTakeIsr
    \/ AnyForgetProposal
    \/ AnyRestart

Spec == AlterInit /\ [][Next]_alterVars

\* What the KIP-320 model assumes to go on: nothing about fetches, nor about the ISR here.
KipFairness ==
    /\ SF_alterVars(AnyIncHighWatermark)
    /\ SF_alterVars(AnyWrite)
    /\ WF_alterVars(AnyBecomeFollower)
    /\ WF_alterVars(AnyBecomeLeader)

\* And with followers that go on fetching.
FairFetches == WF_alterVars(AnyFetch) /\ WF_alterVars(AnyAcknowledge)

=============================================================================
