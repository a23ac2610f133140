------------------------------ MODULE Tiering ------------------------------
(***************************************************************************)
(* KIP-1023: an empty follower begins at the offset behind the last tiered *)
(* one. One partition: its replicas' logs, whose first part is in remote   *)
(* storage, and the segments that its leaders have uploaded (KIP-405).     *)
(*                                                                         *)
(* A log is told by the leader epoch of each record, from the log start to *)
(* the LEO; a replica has the records themselves from the local log start  *)
(* on. A segment is told by the leader epoch in which it was uploaded and  *)
(* its first offset; with it goes the leader epoch checkpoint up to its    *)
(* end, which is kept once for each leader epoch. Ends are exclusive.      *)
(* How replicas agree on leaders and records is in Fencing: a leader takes *)
(* office at once, others hear of it late and cut off what differs.        *)
(*                                                                         *)
(* The variants differ in twenty constants, their rules:                   *)
(*   WaitsForLeader   an unknown EPUO is the local log start only where    *)
(*                    that is the log start                                *)
(*   HeedsLogStart    no follower begins at an EPUO below the log start    *)
(*   BuildsToTarget   epochs are built up to where the follower begins     *)
(*   HeedsFlag        only where the flag is set                           *)
(*   OnlyEmpty        only an empty follower                               *)
(*   DropsUncompared  what a new follower cannot compare is below its log  *)
(*                    start                                                *)
(*   EpochsFirst      no crash comes between offsets and epochs            *)
(*   FromCheckpoint   the log start is no lower than the epochs found      *)
(*   Uploads          up to "stable", "committed" or "written"             *)
(*   ByLineage        a segment counts where its epochs are the log's      *)
(*   AfterCommit      local deletion waits for the metadata                *)
(*   LogStart         of a new leader: "its-own", "first" on remote, or    *)
(*                    "contiguous"                                         *)
(*   LooksAnew        who is elected forgets what it knew of remote        *)
(*   FencesDeletion   no deposed leader deletes a segment                  *)
(*   WholeIsr         tiering is switched off only under an ISR that has   *)
(*                    all that its leader has locally                      *)
(*   IsrHearsStart    where it is switched off the log begins for all of   *)
(*                    the ISR where its leader's does                      *)
(*   LooksOnce        a leader looks in remote storage once in its epoch    *)
(*   HighestStands    the highest offset on remote stands for all below it *)
(*   ForgetsRemote    a log that is cut below its local log start is empty *)
(*   KeepsOlder       a segment of epochs before all of the log's stays    *)
(* All TRUE, with "stable" and "contiguous", is the KIP less its holes.    *)
(*                                                                         *)
(* The reading rule of Fencing holds here: every conjunct of an action is  *)
(* a guard whose line ends with its name, or an effect.                    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Replicas,           \* the naturals below their number
    LogSize,            \* how many offsets each log has
    MaxLeaderEpoch,     \* the largest leader epoch
    LastTieredOffset,   \* follower.fetch.last.tiered.offset.enable
    Unclean,            \* unclean.leader.election.enable
    Transactions,       \* 1 where the last stable offset may be below the high watermark
    Switches,           \* 1 where tiering is switched off and on
    Expires,            \* 1 where retention moves the log start
    WaitsForLeader,
    HeedsLogStart,
    BuildsToTarget,
    HeedsFlag,
    OnlyEmpty,
    DropsUncompared,
    EpochsFirst,
    FromCheckpoint,
    Uploads,
    ByLineage,
    AfterCommit,
    LogStart,
    LooksAnew,
    FencesDeletion,
    WholeIsr,
    IsrHearsStart,
    LooksOnce,
    HighestStands,
    ForgetsRemote,
    KeepsOlder

None == -1
NotLooked == -2

ASSUME ConstantsOk ==
    /\ Replicas = 0 .. Cardinality(Replicas) - 1 /\ Replicas # {}
    /\ {LogSize, MaxLeaderEpoch} \subseteq Nat
    /\ {LastTieredOffset, Unclean, Transactions, Switches, Expires} \subseteq {0, 1}
    /\ Uploads \in {"stable", "committed", "written"}
    /\ LogStart \in {"its-own", "first", "contiguous"}
    /\ {WaitsForLeader, HeedsLogStart, BuildsToTarget, HeedsFlag, OnlyEmpty, DropsUncompared, EpochsFirst,
        FromCheckpoint, ByLineage, AfterCommit, LooksAnew, FencesDeletion, WholeIsr, IsrHearsStart,
        LooksOnce, HighestStands, ForgetsRemote, KeepsOlder} \subseteq BOOLEAN

VARIABLES
    partition,      \* the newest leader epoch, who leads each, the ISR, whether there is tiering, what is stable
    replicaState,   \* per replica: its leader epoch, its offsets, what it knows of remote, from where it jumped
    checkpoint,     \* per replica and offset: the leader epoch of the record there
    segments,       \* per leader epoch and first offset: how far the upload is, and the segment's end
    remoteEpoch     \* per leader epoch and offset: the leader epoch of the record, by what was uploaded

vars == <<partition, replicaState, checkpoint, segments, remoteEpoch>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

Offsets    == 0 .. LogSize - 1
EndOffsets == 0 .. LogSize
Epochs     == 0 .. MaxLeaderEpoch
EpochOpt   == -1 .. MaxLeaderEpoch
ReplicaOpt == Replicas \union {None}

Max(a, b) == IF a < b THEN b ELSE a
Min(a, b) == IF a < b THEN a ELSE b
LastOf(set, default) == IF set = {} THEN default ELSE CHOOSE x \in set : \A y \in set : y <= x
FirstOf(set, default) == IF set = {} THEN default ELSE CHOOSE x \in set : \A y \in set : x <= y

\* An offset out of range has no epoch.
At(cells, offset) == IF offset \in Offsets THEN cells[offset] ELSE -1
Within(cells, start, end) == [o \in Offsets |-> IF start <= o /\ o < end THEN cells[o] ELSE -1]

Epoch(replica)      == replicaState[replica].leaderEpoch
LogStartOf(replica) == replicaState[replica].logStart
LocalStart(replica) == replicaState[replica].localStart
Leo(replica)        == replicaState[replica].leo
Hw(replica)         == replicaState[replica].hw
Highest(replica)    == replicaState[replica].highestRemote
Tiered              == partition.tiered = 1

Leads(replica) == Epoch(replica) \in Epochs /\ partition.epochLeader[Epoch(replica)] = replica
LeadsNewest(replica) == Leads(replica) /\ Epoch(replica) = partition.newestEpoch
Follows(leader, follower) == leader # follower /\ Leads(leader) /\ Epoch(leader) = Epoch(follower)
LastStable(leader) == Min(Hw(leader), partition.stable)
InLineage(replica, offset) == LogStartOf(replica) <= offset /\ offset < Leo(replica)

Stored(state) == state \in {"copied", "copy_finished"}
NoSegment == [state |-> "none", end |-> -1]
CheckpointEnd(row) == LastOf({row[o].end : o \in {o \in Offsets : Stored(row[o].state)}}, 0)

IsReadable(epoch, offset) ==
    \E start \in Offsets :
        /\ segments[epoch][start].state = "copy_finished"
        /\ start <= offset /\ offset < segments[epoch][start].end
IsSameRecord(epoch, replica, offset) ==
    At(checkpoint[replica], offset) # -1 /\ At(remoteEpoch[epoch], offset) = At(checkpoint[replica], offset)
IsTiered(replica, offset) == \E epoch \in Epochs : IsReadable(epoch, offset) /\ IsSameRecord(epoch, replica, offset)

TypeOk ==
    /\ partition \in [newestEpoch : EpochOpt, epochLeader : [Epochs -> ReplicaOpt], isr : SUBSET Replicas,
                      tiered : {0, 1}, stable : EndOffsets]
    /\ replicaState \in [Replicas -> [leaderEpoch : EpochOpt, logStart : EndOffsets, localStart : EndOffsets,
                                      leo : EndOffsets, hw : EndOffsets, highestRemote : NotLooked .. LogSize - 1,
                                      jumpedFrom : -1 .. LogSize - 1]]
    /\ checkpoint \in [Replicas -> [Offsets -> EpochOpt]]
    /\ segments \in [Epochs -> [Offsets -> [state : {"none", "copy_started", "copied", "copy_finished"},
                                            end : -1 .. LogSize]]]
    /\ remoteEpoch \in [Epochs -> [Offsets -> EpochOpt]]
    /\ \A replica \in Replicas :
        /\ checkpoint[replica] = Within(checkpoint[replica], LogStartOf(replica), Leo(replica))
        /\ LocalStart(replica) # Leo(replica) => replicaState[replica].jumpedFrom = -1
        /\ ~ Leads(replica) /\ LooksAnew => Highest(replica) = NotLooked
    /\ \A epoch \in Epochs :
        /\ remoteEpoch[epoch] = Within(remoteEpoch[epoch], 0, CheckpointEnd(segments[epoch]))
        /\ \A o \in Offsets : segments[epoch][o].state = "none" <=> segments[epoch][o].end = -1

Init ==
    /\ partition = [newestEpoch |-> -1, epochLeader |-> [e \in Epochs |-> None], isr |-> Replicas, tiered |-> 1,
                    stable |-> IF Transactions = 1 THEN 0 ELSE LogSize]
    /\ replicaState = [r \in Replicas |-> [leaderEpoch |-> -1, logStart |-> 0, localStart |-> 0, leo |-> 0, hw |-> 0,
                                           highestRemote |-> NotLooked, jumpedFrom |-> -1]]
    /\ checkpoint = [r \in Replicas |-> [o \in Offsets |-> -1]]
    /\ segments = [e \in Epochs |-> [o \in Offsets |-> NoSegment]]
    /\ remoteEpoch = [e \in Epochs |-> [o \in Offsets |-> -1]]

\* A replica has another state and other cells; what it says nothing of is nothing.
ReplicaEffect(replica, state, cells) ==
    /\ replicaState' = [replicaState EXCEPT ![replica] =
            [state EXCEPT !.jumpedFrom = IF state.localStart = state.leo THEN @ ELSE -1]]
    /\ checkpoint' = [checkpoint EXCEPT ![replica] = Within(cells, state.logStart, state.leo)]
OffsetsEffect(replica, state) == ReplicaEffect(replica, state, checkpoint[replica])

\* A log begins no lower than at an offset, and has nothing locally below that.
BeginsAt(state, offset) ==
    LET local == Max(state.localStart, offset)
    IN  [state EXCEPT
            !.logStart = Max(@, offset),
            !.localStart = local,
            !.hw = Max(@, local),
            !.jumpedFrom = IF local = state.leo THEN @ ELSE -1]
AllBeginEffect(replicas, offset) ==
    LET after == [r \in Replicas |-> IF r \in replicas THEN BeginsAt(replicaState[r], offset) ELSE replicaState[r]]
    IN  /\ replicaState' = after
        /\ checkpoint' = [r \in Replicas |-> Within(checkpoint[r], after[r].logStart, after[r].leo)]

-----------------------------------------------------------------------------
(* Replication. *)

TakeOfficeEffect(replica, isr) ==
    LET epoch == partition.newestEpoch + 1
    IN  /\ partition' = [partition EXCEPT !.newestEpoch = epoch, !.epochLeader[epoch] = replica, !.isr = isr]
        /\ OffsetsEffect(replica, [replicaState[replica] EXCEPT
                !.leaderEpoch = epoch,
                !.logStart = IF Tiered THEN @ ELSE LocalStart(replica),
                !.jumpedFrom = -1,
                !.highestRemote = IF LooksAnew THEN NotLooked ELSE @])
        /\ UNCHANGED <<segments, remoteEpoch>>

ElectLeader(replica) ==
    /\ partition.newestEpoch < MaxLeaderEpoch                                   \* epoch_available
    /\ replica \in partition.isr                                                \* in_isr
    /\ TakeOfficeEffect(replica, partition.isr)

ElectUncleanLeader(replica) ==
    /\ Unclean = 1                                                              \* unclean_allowed
    /\ partition.newestEpoch < MaxLeaderEpoch                                   \* epoch_available
    /\ replica \notin partition.isr                                             \* outside_isr
    /\ TakeOfficeEffect(replica, {replica})

BecomeFollowerEffect(leader, follower) ==
    LET begin == Max(LogStartOf(leader), LogStartOf(follower))
        end == Min(Leo(leader), Leo(follower))
        cut == FirstOf({o \in Offsets : begin <= o /\ o < end /\ checkpoint[leader][o] # checkpoint[follower][o]}, end)
        emptied == cut < LocalStart(follower)
        kept == IF DropsUncompared /\ begin <= cut THEN begin ELSE LogStartOf(follower)
        start == IF ~ emptied THEN kept ELSE IF ForgetsRemote THEN cut ELSE Min(kept, cut)
        local == IF emptied THEN cut
                 ELSE IF DropsUncompared THEN Max(LocalStart(follower), kept) ELSE LocalStart(follower)
    IN  OffsetsEffect(follower, [replicaState[follower] EXCEPT
            !.leaderEpoch = Epoch(leader),
            !.leo = cut,
            !.hw = Max(local, Min(Hw(follower), cut)),
            !.localStart = local,
            !.logStart = start,
            !.jumpedFrom = -1,
            !.highestRemote = IF LooksAnew THEN NotLooked ELSE @])

BecomeFollower(leader, follower) ==
    /\ leader # follower                                                        \* not_leader_itself
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Epoch(follower) < Epoch(leader)                                          \* epoch_newer
    /\ BecomeFollowerEffect(leader, follower)
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

LeaderWrite(leader) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Leo(leader) < LogSize                                                    \* log_not_full
    /\ ReplicaEffect(leader, [replicaState[leader] EXCEPT !.leo = @ + 1],
                     [checkpoint[leader] EXCEPT ![Leo(leader)] = Epoch(leader)])
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

FollowerFetchEffect(leader, follower) ==
    LET end == Leo(follower)
        local == Max(LocalStart(follower), LogStartOf(leader))
    IN  ReplicaEffect(follower, [replicaState[follower] EXCEPT
                !.leo = end + 1,
                !.hw = Max(local, Min(Hw(leader), end + 1)),
                !.logStart = Max(@, LogStartOf(leader)),
                !.localStart = local],
            [checkpoint[follower] EXCEPT ![end] = checkpoint[leader][end]])

FollowerFetch(leader, follower) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ LocalStart(leader) <= Leo(follower)                                      \* offset_is_local
    /\ Leo(follower) < Leo(leader)                                              \* record_available
    /\ FollowerFetchEffect(leader, follower)
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

LeaderIncHighWatermark(leader) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Hw(leader) < Leo(leader)                                                 \* record_above_hw
    /\ leader \in partition.isr                                                 \* in_isr
    /\ \A member \in partition.isr \ {leader} : Follows(leader, member) /\ Hw(leader) < Leo(member)  \* isr_has_it
    /\ OffsetsEffect(leader, [replicaState[leader] EXCEPT !.hw = @ + 1])
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

EndTransaction ==
    /\ partition.stable < LogSize                                               \* transaction_open
    /\ partition' = [partition EXCEPT !.stable = @ + 1]
    /\ UNCHANGED <<replicaState, checkpoint, segments, remoteEpoch>>

LeaderShrinkIsr(leader, follower) ==
    /\ LeadsNewest(leader)                                                      \* true_leader
    /\ leader # follower                                                        \* not_leader_itself
    /\ follower \in partition.isr                                               \* in_isr
    /\ partition' = [partition EXCEPT !.isr = @ \ {follower}]
    /\ UNCHANGED <<replicaState, checkpoint, segments, remoteEpoch>>

HwReachedEpoch(leader) ==
    Hw(leader) = Leo(leader) \/ (Hw(leader) < Leo(leader) /\ checkpoint[leader][Hw(leader)] = Epoch(leader))

LeaderExpandIsr(leader, follower) ==
    /\ LeadsNewest(leader)                                                      \* true_leader
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ follower \notin partition.isr                                            \* outside_isr
    /\ Hw(leader) <= Leo(follower)                                              \* reached_high_watermark
    /\ HwReachedEpoch(leader)                                                   \* hw_reached_epoch
    /\ WholeIsr => Tiered \/ LocalStart(follower) <= LogStartOf(leader)         \* has_all_there_is
    /\ partition' = [partition EXCEPT !.isr = @ \union {follower}]
    /\ IF IsrHearsStart /\ ~ Tiered
       THEN OffsetsEffect(follower, BeginsAt(replicaState[follower], LogStartOf(leader)))
       ELSE UNCHANGED <<replicaState, checkpoint>>
    /\ UNCHANGED <<segments, remoteEpoch>>

ReplaceReplica(replica) ==
    /\ replica \notin partition.isr                                             \* outside_isr
    /\ Leo(replica) # 0                                                         \* not_empty
    /\ OffsetsEffect(replica, [leaderEpoch |-> -1, logStart |-> 0, localStart |-> 0, leo |-> 0, hw |-> 0,
                               highestRemote |-> NotLooked, jumpedFrom |-> -1])
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

-----------------------------------------------------------------------------
(* The remote log manager of a leader. *)

IsFound(leader, offset) == IF ByLineage THEN IsTiered(leader, offset) ELSE \E e \in Epochs : IsReadable(e, offset)
Found(leader) == {o \in Offsets : InLineage(leader, o) /\ IsFound(leader, o)}
HighestFound(leader) == LastOf(Found(leader), -1)

StartFound(leader) ==
    LET below == Max(HighestFound(leader) + 1, LocalStart(leader))
        lacks == LastOf({o \in Offsets : o < below} \ Found(leader), -1)
    IN  CASE LogStart = "its-own" -> LogStartOf(leader)
          [] LogStart = "first" -> FirstOf(Found(leader), LocalStart(leader))
          [] OTHER -> Max(LogStartOf(leader), lacks + 1)

FindHighestRemoteOffset(leader) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Tiered                                                                   \* tiering_enabled
    /\ LooksOnce => Highest(leader) = NotLooked                                 \* not_looked
    /\ StartFound(leader) <= Hw(leader)                                         \* log_start_is_committed
    /\ OffsetsEffect(leader, [replicaState[leader] EXCEPT
            !.highestRemote = IF LooksAnew /\ LooksOnce THEN HighestFound(leader) ELSE Max(HighestFound(leader), @),
            !.logStart = StartFound(leader),
            !.localStart = Max(@, StartFound(leader))])
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

NextUpload(leader) == Max(Highest(leader) + 1, LogStartOf(leader))
UploadBound(leader) ==
    CASE Uploads = "stable" -> LastStable(leader) [] Uploads = "committed" -> Hw(leader) [] OTHER -> Leo(leader)
IsUploading(leader) == \E o \in Offsets : segments[Epoch(leader)][o].state \in {"copy_started", "copied"}

StartCopy(leader, end) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Tiered                                                                   \* tiering_enabled
    /\ Highest(leader) # NotLooked                                              \* has_looked
    /\ ~ IsUploading(leader)                                                    \* one_at_a_time
    /\ NextUpload(leader) < end                                                 \* has_records
    /\ end <= UploadBound(leader)                                               \* below_last_stable
    /\ LocalStart(leader) <= NextUpload(leader)                                 \* is_local
    /\ segments' = [segments EXCEPT ![Epoch(leader)][NextUpload(leader)] = [state |-> "copy_started", end |-> end]]
    /\ UNCHANGED <<partition, replicaState, checkpoint, remoteEpoch>>

CopySegmentEffect(leader, start) ==
    LET epoch == Epoch(leader)
        new == {o \in Offsets : LogStartOf(leader) <= o /\ o < segments[epoch][start].end}
    IN  /\ segments' = [segments EXCEPT ![epoch][start].state = "copied"]
        /\ remoteEpoch' = [remoteEpoch EXCEPT ![epoch] =
                [o \in Offsets |-> IF o \in new THEN checkpoint[leader][o] ELSE @[o]]]

CopySegment(leader, start) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Tiered                                                                   \* tiering_enabled
    /\ segments[Epoch(leader)][start].state = "copy_started"                    \* copy_started
    /\ LocalStart(leader) <= start                                              \* is_local
    /\ CopySegmentEffect(leader, start)
    /\ UNCHANGED <<partition, replicaState, checkpoint>>

FinishCopy(leader, start) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Tiered                                                                   \* tiering_enabled
    /\ segments[Epoch(leader)][start].state = "copied"                          \* copied
    /\ segments' = [segments EXCEPT ![Epoch(leader)][start].state = "copy_finished"]
    /\ LET last == segments[Epoch(leader)][start].end - 1
       IN  OffsetsEffect(leader, [replicaState[leader] EXCEPT
                !.highestRemote = IF LooksOnce THEN last ELSE Max(@, last)])
    /\ UNCHANGED <<partition, remoteEpoch>>

IsCopied(leader, offset) ==
    \E start \in Offsets :
        /\ segments[Epoch(leader)][start].state = "copied"
        /\ start <= offset /\ offset < segments[Epoch(leader)][start].end

IsUploaded(leader, offset) ==
    \/ IF HighestStands THEN offset <= Highest(leader) ELSE IsFound(leader, offset)
    \/ ~ AfterCommit /\ IsCopied(leader, offset)

DeleteLocal(leader) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Tiered                                                                   \* tiering_enabled
    /\ LocalStart(leader) < LastStable(leader)                                  \* below_last_stable
    /\ IsUploaded(leader, LocalStart(leader))                                   \* is_uploaded
    /\ OffsetsEffect(leader, [replicaState[leader] EXCEPT !.localStart = @ + 1])
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

IncrementLogStart(leader) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Expires = 1                                                              \* retention_expires
    /\ LogStartOf(leader) < LastStable(leader)                                  \* below_last_stable
    /\ ~ Tiered \/ Highest(leader) # NotLooked                                  \* has_looked
    /\ OffsetsEffect(leader, [replicaState[leader] EXCEPT
            !.logStart = @ + 1,
            !.localStart = Max(@, LogStartOf(leader) + 1)])
    /\ UNCHANGED <<partition, segments, remoteEpoch>>

DeleteSegmentEffect(epoch, start) ==
    LET row == [segments[epoch] EXCEPT ![start] = NoSegment]
    IN  /\ segments' = [segments EXCEPT ![epoch] = row]
        /\ remoteEpoch' = [remoteEpoch EXCEPT ![epoch] = Within(@, 0, CheckpointEnd(row))]

FirstEpoch(leader) ==
    IF LogStartOf(leader) < Leo(leader) THEN At(checkpoint[leader], LogStartOf(leader)) ELSE Epoch(leader)
IsUseless(leader, epoch, start) ==
    LET end == segments[epoch][start].end
    IN  end <= LogStartOf(leader) \/ (~ KeepsOlder /\ At(remoteEpoch[epoch], end - 1) < FirstEpoch(leader))

DeleteSegment(leader, epoch, start) ==
    /\ Leads(leader)                                                            \* presumes_leadership
    /\ Tiered                                                                   \* tiering_enabled
    /\ FencesDeletion => Epoch(leader) = partition.newestEpoch                  \* epoch_is_newest
    /\ segments[epoch][start].state = "copy_finished"                           \* copy_finished
    /\ IsUseless(leader, epoch, start)                                          \* below_log_start
    /\ DeleteSegmentEffect(epoch, start)
    /\ UNCHANGED <<partition, replicaState, checkpoint>>

DisableTiering(leader) ==
    /\ LeadsNewest(leader)                                                      \* true_leader
    /\ Switches = 1                                                             \* switches_made
    /\ Tiered                                                                   \* is_enabled
    /\ WholeIsr => \A member \in partition.isr : LocalStart(member) <= LocalStart(leader)  \* isr_is_whole
    /\ IsrHearsStart => \A member \in partition.isr : LocalStart(leader) <= Leo(member)     \* isr_reaches_start
    /\ partition' = [partition EXCEPT !.tiered = 0]
    /\ IF IsrHearsStart THEN AllBeginEffect(partition.isr \union {leader}, LocalStart(leader))
       ELSE OffsetsEffect(leader, [replicaState[leader] EXCEPT !.logStart = LocalStart(leader)])
    /\ UNCHANGED <<segments, remoteEpoch>>

EnableTiering(leader) ==
    /\ LeadsNewest(leader)                                                      \* true_leader
    /\ ~ Tiered                                                                 \* is_disabled
    /\ partition' = [partition EXCEPT !.tiered = 1]
    /\ UNCHANGED <<replicaState, checkpoint, segments, remoteEpoch>>

-----------------------------------------------------------------------------
(* A follower whose fetch offset is not on its leader. *)

EpuoIsKnown(leader) == Highest(leader) >= 0
Epuo(leader) == Highest(leader) + 1
BeginsAtEpuo(follower) ==
    Tiered /\ (HeedsFlag => LastTieredOffset = 1) /\ (OnlyEmpty => Leo(follower) = 0)
NotLocal(leader, follower) == Leo(follower) < LocalStart(leader)

\* The log of a follower goes from a log start to an end, and it has nothing of it locally.
BeginEffect(follower, start, end, cells, jumped) ==
    /\ ReplicaEffect(follower, [replicaState[follower] EXCEPT
            !.logStart = start, !.localStart = end, !.leo = end, !.hw = end, !.jumpedFrom = jumped], cells)
    /\ UNCHANGED <<partition, segments, remoteEpoch>>
StartAtEffect(follower, offset) == BeginEffect(follower, offset, offset, checkpoint[follower], -1)

TruncateFully(leader, follower) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ NotLocal(leader, follower)                                               \* offset_not_local
    /\ Leo(follower) < LogStartOf(leader)                                       \* below_log_start
    /\ ~ BeginsAtEpuo(follower)                                                 \* old_behaviour
    /\ StartAtEffect(follower, LogStartOf(leader))

OfLineage(leader, epoch, offset) == ByLineage => IsSameRecord(epoch, leader, offset)

BuiltEffect(leader, follower, epoch, target, jumped) ==
    LET lacks == LastOf({o \in Offsets : o < target /\ remoteEpoch[epoch][o] = -1}, -1)
        start == IF FromCheckpoint THEN Max(LogStartOf(leader), lacks + 1) ELSE LogStartOf(leader)
        local == LocalStart(leader)
        built == [o \in Offsets |-> IF BuildsToTarget \/ o < local THEN remoteEpoch[epoch][o]
                                    ELSE At(remoteEpoch[epoch], local - 1)]
    IN  BeginEffect(follower, start, target, built, jumped)

BuildToLocalStart(leader, follower, epoch) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ NotLocal(leader, follower)                                               \* offset_not_local
    /\ LogStartOf(leader) <= Leo(follower)                                      \* moved_to_tiered_storage
    /\ ~ BeginsAtEpuo(follower)                                                 \* old_behaviour
    /\ IsReadable(epoch, LocalStart(leader) - 1)                                \* segment_is_readable
    /\ OfLineage(leader, epoch, LocalStart(leader) - 1)                         \* segment_is_of_lineage
    /\ BuiltEffect(leader, follower, epoch, LocalStart(leader), -1)

BuildToEpuo(leader, follower, epoch) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ NotLocal(leader, follower)                                               \* offset_not_local
    /\ BeginsAtEpuo(follower)                                                   \* begins_at_epuo
    /\ EpuoIsKnown(leader)                                                      \* epuo_is_known
    /\ LogStartOf(leader) < Epuo(leader)                                        \* above_log_start
    /\ IsReadable(epoch, Epuo(leader) - 1)                                      \* segment_is_readable
    /\ OfLineage(leader, epoch, Epuo(leader) - 1)                               \* segment_is_of_lineage
    /\ BuiltEffect(leader, follower, epoch, Epuo(leader), Leo(follower))

\* As what it had of other offsets is nothing for a follower that is empty.
UnbuiltEffect(leader, follower, end) ==
    BeginEffect(follower, LogStartOf(leader), end, checkpoint[follower], replicaState[follower].jumpedFrom)

StartAtLocalStart(leader, follower) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ NotLocal(leader, follower)                                               \* offset_not_local
    /\ BeginsAtEpuo(follower)                                                   \* begins_at_epuo
    /\ ~ EpuoIsKnown(leader)                                                    \* epuo_is_unknown
    /\ WaitsForLeader => LogStartOf(leader) = LocalStart(leader)                \* nothing_uploaded
    /\ IF WaitsForLeader THEN StartAtEffect(follower, LocalStart(leader))
       ELSE UnbuiltEffect(leader, follower, LocalStart(leader))

StartAtLogStart(leader, follower) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ NotLocal(leader, follower)                                               \* offset_not_local
    /\ BeginsAtEpuo(follower)                                                   \* begins_at_epuo
    /\ EpuoIsKnown(leader)                                                      \* epuo_is_known
    /\ Epuo(leader) <= LogStartOf(leader)                                       \* not_above_log_start
    /\ IF HeedsLogStart THEN StartAtEffect(follower, LogStartOf(leader))
       ELSE UnbuiltEffect(leader, follower, Epuo(leader))

CrashWhileBuilding(leader, follower) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ NotLocal(leader, follower)                                               \* offset_not_local
    /\ BeginsAtEpuo(follower)                                                   \* begins_at_epuo
    /\ EpuoIsKnown(leader)                                                      \* epuo_is_known
    /\ LogStartOf(leader) < Epuo(leader)                                        \* above_log_start
    /\ ~ EpochsFirst /\ UnbuiltEffect(leader, follower, Epuo(leader))

CopyAnew(leader, follower) ==
    /\ Follows(leader, follower)                                                \* follows_leader
    /\ ~ Tiered                                                                 \* tiering_disabled
    /\ follower \notin partition.isr                                            \* outside_isr
    /\ LogStartOf(leader) < LocalStart(follower)                                \* lacks_the_beginning
    /\ WholeIsr /\ StartAtEffect(follower, LogStartOf(leader))

-----------------------------------------------------------------------------
Next ==
    \/ \E replica \in Replicas : ElectLeader(replica)
    \/ \E replica \in Replicas : ElectUncleanLeader(replica)
    \/ \E leader, follower \in Replicas : BecomeFollower(leader, follower)
    \/ \E leader \in Replicas : LeaderWrite(leader)
    \/ \E leader, follower \in Replicas : FollowerFetch(leader, follower)
    \/ \E leader \in Replicas : LeaderIncHighWatermark(leader)
    \/ EndTransaction
    \/ \E leader, follower \in Replicas : LeaderShrinkIsr(leader, follower)
    \/ \E leader, follower \in Replicas : LeaderExpandIsr(leader, follower)
    \/ \E replica \in Replicas : ReplaceReplica(replica)
    \/ \E leader \in Replicas : FindHighestRemoteOffset(leader)
    \/ \E leader \in Replicas, end \in EndOffsets : StartCopy(leader, end)
    \/ \E leader \in Replicas, start \in Offsets : CopySegment(leader, start)
    \/ \E leader \in Replicas, start \in Offsets : FinishCopy(leader, start)
    \/ \E leader \in Replicas : DeleteLocal(leader)
    \/ \E leader \in Replicas : IncrementLogStart(leader)
    \/ \E leader \in Replicas, epoch \in Epochs, start \in Offsets : DeleteSegment(leader, epoch, start)
    \/ \E leader \in Replicas : DisableTiering(leader)
    \/ \E leader \in Replicas : EnableTiering(leader)
    \/ \E leader, follower \in Replicas : TruncateFully(leader, follower)
    \/ \E leader, follower \in Replicas, epoch \in Epochs : BuildToLocalStart(leader, follower, epoch)
    \/ \E leader, follower \in Replicas, epoch \in Epochs : BuildToEpuo(leader, follower, epoch)
    \/ \E leader, follower \in Replicas : StartAtLocalStart(leader, follower)
    \/ \E leader, follower \in Replicas : StartAtLogStart(leader, follower)
    \/ \E leader, follower \in Replicas : CrashWhileBuilding(leader, follower)
    \/ \E leader, follower \in Replicas : CopyAnew(leader, follower)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What is promised. *)

OffsetsInOrder ==
    \A r \in Replicas : LogStartOf(r) <= LocalStart(r) /\ LocalStart(r) <= Hw(r) /\ Hw(r) <= Leo(r)

UploadedIsStable ==
    \A leader \in Replicas : Leads(leader) =>
        \A start \in Offsets : segments[Epoch(leader)][start].state # "none" =>
            /\ start < segments[Epoch(leader)][start].end
            /\ segments[Epoch(leader)][start].end <= LastStable(leader)

LeaderCanServe ==
    \A leader \in Replicas : LeadsNewest(leader) /\ (~ Tiered \/ Highest(leader) # NotLooked) =>
        \A o \in Offsets : LogStartOf(leader) <= o /\ o < LocalStart(leader) => Tiered /\ IsTiered(leader, o)

IsrCanServe ==
    ~ Tiered => \A leader \in Replicas : LeadsNewest(leader) =>
        \A member \in partition.isr, o \in Offsets : LogStartOf(leader) <= o /\ o < Hw(leader) =>
            o < LogStartOf(member) \/ (LocalStart(member) <= o /\ o < Leo(member))

LineageIsLeaders ==
    \A leader, follower \in Replicas : Follows(leader, follower) =>
        \A o \in Offsets : InLineage(leader, o) /\ InLineage(follower, o) =>
            checkpoint[follower][o] # -1 /\ checkpoint[follower][o] = checkpoint[leader][o]

OnlyEmptyFollowerJumps ==
    \A r \in Replicas : replicaState[r].jumpedFrom # -1 => replicaState[r].jumpedFrom = 0 /\ LastTieredOffset = 1

BuiltIsUploaded ==
    \A leader, follower \in Replicas : LeadsNewest(leader) /\ Follows(leader, follower) =>
        \/ replicaState[follower].jumpedFrom = -1 \/ ~ Tiered
        \/ Leo(follower) - 1 < LogStartOf(leader) \/ IsTiered(leader, Leo(follower) - 1)

SegmentsAgree ==
    Unclean = 1 \/ \A one, other \in Epochs, o \in Offsets :
        IsReadable(one, o) /\ IsReadable(other, o) => remoteEpoch[one][o] = remoteEpoch[other][o]
=============================================================================
