------------------------------ MODULE Controller ------------------------------
(***************************************************************************)
(* The controller of KIP-631 over its metadata log: who has replayed how   *)
(* much of it, brokers that register and are fenced, partitions with an    *)
(* ISR that their leader proposes, snapshots that the active controller    *)
(* orders by heartbeats.                                                   *)
(*                                                                         *)
(* The quorum is one log, of the controller that became active last: what  *)
(* is stable stays. Whoever is elected has some of the rest, and while it  *)
(* is not active what it lacks may come back with the next election. An    *)
(* offset is that of a batch. An image is what a prefix of the log comes   *)
(* to; controllers, brokers and snapshots each have one of their own, and  *)
(* the prefixes' own are kept beside, to compare. Ends are exclusive.      *)
(*                                                                         *)
(* The variants differ in thirteen constants, their rules:                 *)
(*   Resigns = "first"    who is active gives up leadership first, and     *)
(*                        makes its snapshot as a standby                  *)
(*             "never"    it makes one of the stable state as it works     *)
(*             "pending"  it makes one of what it has in memory            *)
(*   SaysFenced           a snapshot says who is fenced                    *)
(*   HearsFirst           who is newly active waits to hear from all nodes *)
(*   OfOwnEpoch           no node takes an order of an older epoch         *)
(*   ChecksBrokerEpoch    who is proposed is unfenced, and who joins an    *)
(*                        ISR is what it was then                          *)
(*   DoubtsLost           the last member of an ISR is not elected when it *)
(*                        comes back without its logs                      *)
(*   ElectsUnfenced       whoever is elected is unfenced                   *)
(*   StableOnly           standbys and brokers replay stable records only  *)
(*   ChecksLeader         an ISR is proposed by its leader, in its epoch   *)
(*   KeepsLast            the last member of an ISR stays                  *)
(*   Reloads              who was active loads its state anew              *)
(*   AnswersStable        a registration is answered when it is stable     *)
(*   ByChanges            a fence is a batch of one IsrChange for each     *)
(*                        partition                                        *)
(* All of them TRUE but the last, with "first", is the KIP less its holes. *)
(* As it is written the first five are FALSE (DEVIATIONS.md).              *)
(*                                                                         *)
(* The reading rule of Fencing holds here: every conjunct of an action is  *)
(* a guard whose line ends with its name, or an effect.                    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Replicas,           \* the brokers: the naturals below their number
    Nodes,              \* how many controllers there are
    Partitions,         \* how many partitions
    LogSize,            \* how many offsets the metadata log has
    MaxControllerEpoch, \* the largest controller epoch
    Bootstrapped,       \* 1 where brokers and topics are there at first
    Snapshots,          \* 1 where controllers make snapshots
    Removals,           \* 1 where brokers are shut down and topics removed
    Resigns,
    SaysFenced,
    HearsFirst,
    OfOwnEpoch,
    ChecksBrokerEpoch,
    DoubtsLost,
    ElectsUnfenced,
    StableOnly,
    ChecksLeader,
    KeepsLast,
    Reloads,
    AnswersStable,
    ByChanges

None == -1

ASSUME ConstantsOk ==
    /\ Replicas = 0 .. Cardinality(Replicas) - 1 /\ Replicas # {}
    /\ {Nodes, Partitions, LogSize, MaxControllerEpoch} \subseteq Nat
    /\ {Bootstrapped, Snapshots, Removals} \subseteq {0, 1}
    /\ Resigns \in {"first", "never", "pending"}
    /\ {SaysFenced, HearsFirst, OfOwnEpoch, ChecksBrokerEpoch, DoubtsLost, ElectsUnfenced, StableOnly, ChecksLeader,
        KeepsLast, Reloads, AnswersStable, ByChanges} \subseteq BOOLEAN

VARIABLES
    metadataLog,    \* whose it is (activeEpoch), its end, how much of it the newest leader has, what is stable
    prefixImage,    \* per offset: what the log comes to behind its record
    newestEpoch,    \* the newest controller epoch
    nodeState,      \* per controller: its epoch, its role, and what it has replayed; its snapshots
    nodeImage,      \* per controller: what it has in memory
    snapshotImage,  \* per controller: what its latest snapshot says
    brokerState,    \* per broker: whether it runs, its broker epoch, and what it has replayed
    viewImage,      \* per broker: its metadata
    replicaData,    \* per broker and partition: its record, and what it has proposed as a leader
    topics          \* per partition: whether its id is drawn, and what was acknowledged

vars == <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, brokerState, viewImage,
          replicaData, topics>>

-----------------------------------------------------------------------------
(* The shape of the state. *)

NodeIds      == 0 .. Nodes - 1
PartitionIds == 0 .. Partitions - 1
Offsets      == 0 .. LogSize - 1
EndOffsets   == 0 .. LogSize
Versions     == -1 .. LogSize
OffsetOpt    == -1 .. LogSize - 1
EpochOpt     == -1 .. MaxControllerEpoch
ReplicaOpt   == Replicas \union {None}
Kinds == {"register", "register_unclean", "unfence", "shut_down", "fence", "create_topic", "remove_topic", "isr_change"}

NoPartition == [leader |-> None, leaderEpoch |-> -1, partitionEpoch |-> -1, isr |-> {}, doubted |-> 0]
NoImage == [registered |-> {}, unfenced |-> {}, shuttingDown |-> {},
            partitions |-> [p \in PartitionIds |-> NoPartition]]
NoChanges == [p \in PartitionIds |-> [leader |-> None, isr |-> {}]]
NoRecord == [kind |-> "none", broker |-> None, partition |-> -1, leader |-> None, isr |-> {}, changes |-> NoChanges]
NothingProposed == [proposed |-> None, proposedEpoch |-> -1]

\* What there is before the first record.
FirstImage ==
    IF Bootstrapped = 1
    THEN [registered |-> Replicas, unfenced |-> Replicas, shuttingDown |-> {},
          partitions |-> [p \in PartitionIds |->
              [leader |-> None, leaderEpoch |-> 0, partitionEpoch |-> 0, isr |-> Replicas, doubted |-> 0]]]
    ELSE NoImage

Images == [registered : SUBSET Replicas, unfenced : SUBSET Replicas, shuttingDown : SUBSET Replicas,
           partitions : [PartitionIds -> [leader : ReplicaOpt, leaderEpoch : Versions, partitionEpoch : Versions,
                                          isr : SUBSET Replicas, doubted : {0, 1}]]]
Records == [kind : Kinds \union {"none"}, broker : ReplicaOpt, partition : -1 .. Partitions - 1, leader : ReplicaOpt,
            isr : SUBSET Replicas, changes : [PartitionIds -> [leader : ReplicaOpt, isr : SUBSET Replicas]]]

IsUp(broker) == brokerState[broker].run \in {"running", "stopping"}
TakesPart(broker) == IsUp(broker) /\ brokerState[broker].ownEpoch < brokerState[broker].applied
PresumesLeadership(broker, partition) ==
    TakesPart(broker) /\ viewImage[broker].partitions[partition].leader = broker

TypeOk ==
    /\ metadataLog \in [activeEpoch : EpochOpt, end : EndOffsets, leaderEnd : EndOffsets, stable : EndOffsets,
                        records : [Offsets -> Records]]
    /\ prefixImage \in [Offsets -> Images]
    /\ newestEpoch \in EpochOpt
    /\ nodeState \in [NodeIds -> [epoch : EpochOpt, role : {"standby", "elected", "active"}, applied : EndOffsets,
                                  snapshotEnd : -1 .. LogSize, making : {0, 1}, orderEpoch : EpochOpt,
                                  heard : {"unknown", "idle", "busy"}]]
    /\ nodeImage \in [NodeIds -> Images] /\ snapshotImage \in [NodeIds -> Images]
    /\ brokerState \in [Replicas -> [run : {"stopped", "running", "stopping", "lost"}, ownEpoch : OffsetOpt,
                                     awaited : OffsetOpt, applied : EndOffsets, reached : EndOffsets]]
    /\ viewImage \in [Replicas -> Images]
    /\ replicaData \in [Replicas -> [PartitionIds -> [data : Versions, proposed : ReplicaOpt,
                                                      proposedEpoch : OffsetOpt]]]
    /\ topics \in [PartitionIds -> [created : {0, 1}, acknowledged : Versions]]
    /\ \A o \in Offsets :
        /\ o < metadataLog.end <=> metadataLog.records[o].kind # "none"
        /\ metadataLog.end <= o => metadataLog.records[o] = NoRecord /\ prefixImage[o] = NoImage
    /\ \A node \in NodeIds : nodeState[node].snapshotEnd = -1 => snapshotImage[node] = NoImage
    /\ \A broker \in Replicas, partition \in PartitionIds :
        PresumesLeadership(broker, partition) \/
            /\ replicaData[broker][partition].proposed = None
            /\ replicaData[broker][partition].proposedEpoch = -1

Init ==
    /\ metadataLog = [activeEpoch |-> -1, end |-> 0, leaderEnd |-> 0, stable |-> 0,
                      records |-> [o \in Offsets |-> NoRecord]]
    /\ prefixImage = [o \in Offsets |-> NoImage]
    /\ newestEpoch = -1
    /\ nodeState = [node \in NodeIds |-> [epoch |-> -1, role |-> "standby", applied |-> 0, snapshotEnd |-> -1,
                                          making |-> 0, orderEpoch |-> -1, heard |-> "unknown"]]
    /\ nodeImage = [node \in NodeIds |-> FirstImage]
    /\ snapshotImage = [node \in NodeIds |-> NoImage]
    /\ brokerState = [broker \in Replicas |->
            [run |-> IF Bootstrapped = 1 THEN "running" ELSE "stopped", ownEpoch |-> -1, awaited |-> -1,
             applied |-> 0, reached |-> 0]]
    /\ viewImage = [broker \in Replicas |-> FirstImage]
    /\ replicaData = [broker \in Replicas |-> [p \in PartitionIds |->
            [data |-> -1, proposed |-> None, proposedEpoch |-> -1]]]
    /\ topics = [p \in PartitionIds |-> [created |-> Bootstrapped, acknowledged |-> -1]]

-----------------------------------------------------------------------------
(* Images: what one more record makes of them. *)

Max(a, b) == IF a < b THEN b ELSE a
Min(a, b) == IF a < b THEN a ELSE b
GreatestOf(set) == CHOOSE x \in set : \A y \in set : y <= x

PrefixImage(end) == IF end = 0 THEN FirstImage ELSE prefixImage[end - 1]

Registers(offset, broker) ==
    /\ metadataLog.records[offset].kind \in {"register", "register_unclean"}
    /\ metadataLog.records[offset].broker = broker

\* The offset of a broker's latest registration below an end; -1: it was registered before the log begins.
BrokerEpoch(end, broker) ==
    LET mine == {o \in Offsets : o < end /\ Registers(o, broker)}
    IN  IF mine = {} THEN -1 ELSE GreatestOf(mine)

\* What a fenced broker leaves: its successor leads, where it is in the ISR, and it is in no ISR but as its last member.
Leaves(state, broker) == broker \in state.isr /\ (KeepsLast => state.isr # {broker})
Succeeds(state, broker, successor) == state.leader = broker /\ successor # broker /\ successor \in state.isr
LeaderWithout(state, broker, successor) ==
    IF Succeeds(state, broker, successor) THEN successor
    ELSE IF state.leader = broker THEN None ELSE state.leader
IsrWithout(state, broker) == IF Leaves(state, broker) THEN state.isr \ {broker} ELSE state.isr
FencingChanges(state, broker) == state.leader = broker \/ Leaves(state, broker)

ChangesOfFencing(image, record) ==
    [p \in PartitionIds |->
        IF record.kind = "fence" /\ FencingChanges(image.partitions[p], record.broker)
        THEN [leader |-> LeaderWithout(image.partitions[p], record.broker, record.leader),
              isr |-> IsrWithout(image.partitions[p], record.broker)]
        ELSE [leader |-> None, isr |-> {}]]

Changed(state, leader, isr) ==
    [state EXCEPT !.leader = leader,
                  !.leaderEpoch = IF leader # state.leader THEN @ + 1 ELSE @,
                  !.partitionEpoch = @ + 1,
                  !.isr = isr]

ReplayedPartition(state, record, partition) ==
    LET here == record.partition = partition
        change == record.changes[partition]
    IN  CASE record.kind = "fence" /\ ByChanges ->
                 IF change.isr # {} THEN Changed(state, change.leader, change.isr) ELSE state
          [] record.kind = "fence" /\ ~ ByChanges ->
                 IF FencingChanges(state, record.broker)
                 THEN Changed(state, LeaderWithout(state, record.broker, record.leader),
                              IsrWithout(state, record.broker))
                 ELSE state
          [] record.kind = "isr_change" /\ here -> Changed(state, record.leader, record.isr)
          [] record.kind = "create_topic" /\ here ->
                 [leader |-> record.leader, leaderEpoch |-> 0, partitionEpoch |-> 0, isr |-> record.isr, doubted |-> 0]
          [] record.kind = "remove_topic" /\ here -> NoPartition
          [] record.kind = "register_unclean" /\ DoubtsLost /\ state.isr = {record.broker} ->
                 [state EXCEPT !.doubted = 1]
          [] OTHER -> state

Replayed(image, record) ==
    LET registers == record.kind \in {"register", "register_unclean"}
        out == registers \/ record.kind = "fence"
        Moved(set, joins) == IF joins THEN set \union {record.broker}
                             ELSE IF out THEN set \ {record.broker} ELSE set
    IN  [registered |-> IF registers THEN image.registered \union {record.broker} ELSE image.registered,
         unfenced |-> Moved(image.unfenced, record.kind = "unfence"),
         shuttingDown |-> Moved(image.shuttingDown, record.kind = "shut_down"),
         partitions |-> [p \in PartitionIds |-> ReplayedPartition(image.partitions[p], record, p)]]

AboutBroker(kind, broker) == [NoRecord EXCEPT !.kind = kind, !.broker = broker]
AboutPartition(kind, partition, leader, isr) ==
    [NoRecord EXCEPT !.kind = kind, !.partition = partition, !.leader = leader, !.isr = isr]

\* The active controller appends a record, and has replayed it.
AppendEffect(node, record) ==
    LET at == metadataLog.end
        filled == IF ByChanges THEN [record EXCEPT !.changes = ChangesOfFencing(nodeImage[node], record)] ELSE record
        after == Replayed(nodeImage[node], filled)
    IN  /\ metadataLog' = [metadataLog EXCEPT !.end = at + 1, !.records[at] = filled,
                !.leaderEnd = IF nodeState[node].epoch = newestEpoch THEN at + 1 ELSE @]
        /\ prefixImage' = [prefixImage EXCEPT ![at] = after]
        /\ nodeImage' = [nodeImage EXCEPT ![node] = after]
        /\ nodeState' = [nodeState EXCEPT ![node].applied = at + 1]
        /\ UNCHANGED <<newestEpoch, snapshotImage, viewImage, replicaData>>

-----------------------------------------------------------------------------
(* The metadata quorum. *)

\* What a node that may have been active has in memory when it leaves office.
LoadsAnew(node) == Reloads /\ nodeState[node].role = "active"
Reloaded(node) ==
    IF ~ LoadsAnew(node) THEN nodeImage[node]
    ELSE IF nodeState[node].snapshotEnd # -1 THEN snapshotImage[node] ELSE FirstImage
ReloadedEnd(node) ==
    IF LoadsAnew(node) THEN Max(nodeState[node].snapshotEnd, 0) ELSE nodeState[node].applied

ElectController(node, kept) ==
    /\ newestEpoch < MaxControllerEpoch                                         \* epoch_available
    /\ metadataLog.stable <= kept                                               \* committed_is_kept
    /\ kept <= metadataLog.end                                                  \* within_log
    /\ newestEpoch' = newestEpoch + 1
    /\ metadataLog' = [metadataLog EXCEPT !.leaderEnd = kept]
    /\ nodeState' = [nodeState EXCEPT ![node].epoch = newestEpoch + 1, ![node].role = "elected",
                                      ![node].applied = ReloadedEnd(node)]
    /\ nodeImage' = [nodeImage EXCEPT ![node] = Reloaded(node)]
    /\ UNCHANGED <<prefixImage, snapshotImage, brokerState, viewImage, replicaData, topics>>

HearOfEpoch(node, epoch) ==
    /\ nodeState[node].epoch < epoch                                            \* epoch_newer
    /\ epoch <= newestEpoch                                                     \* epoch_elected
    /\ nodeState' = [nodeState EXCEPT ![node].epoch = epoch, ![node].role = "standby",
                                      ![node].applied = ReloadedEnd(node)]
    /\ nodeImage' = [nodeImage EXCEPT ![node] = Reloaded(node)]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, snapshotImage, brokerState, viewImage, replicaData, topics>>

Resign(node) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Resigns = "first" /\ Snapshots = 1                                       \* snapshots_made
    /\ Max(nodeState[node].snapshotEnd, 0) < metadataLog.stable                 \* enough_records
    /\ nodeState' = [nodeState EXCEPT ![node].role = "standby", ![node].applied = ReloadedEnd(node)]
    /\ nodeImage' = [nodeImage EXCEPT ![node] = Reloaded(node)]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, snapshotImage, brokerState, viewImage, replicaData, topics>>

Activate(node) ==
    /\ nodeState[node].role = "elected"                                         \* is_elected
    /\ metadataLog.activeEpoch < nodeState[node].epoch                          \* none_active_since
    /\ nodeState[node].applied = metadataLog.leaderEnd                          \* caught_up
    /\ LET end == nodeState[node].applied
       IN  /\ metadataLog' = [metadataLog EXCEPT !.activeEpoch = nodeState[node].epoch, !.end = end,
                  !.records = [o \in Offsets |-> IF o < end THEN @[o] ELSE NoRecord]]
           /\ prefixImage' = [o \in Offsets |-> IF o < end THEN prefixImage[o] ELSE NoImage]
    /\ nodeState' = [n \in NodeIds |->
            [nodeState[n] EXCEPT !.role = IF n = node THEN "active" ELSE @, !.heard = "unknown"]]
    /\ brokerState' = [b \in Replicas |-> [brokerState[b] EXCEPT !.awaited = -1]]
    /\ UNCHANGED <<newestEpoch, nodeImage, snapshotImage, viewImage, replicaData, topics>>

Commit(node) ==
    /\ nodeState[node].role # "standby"                                         \* leads
    /\ nodeState[node].epoch = newestEpoch                                      \* epoch_is_newest
    /\ metadataLog.stable < metadataLog.leaderEnd                               \* something_pending
    /\ metadataLog' = [metadataLog EXCEPT !.stable = @ + 1]
    /\ UNCHANGED <<prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, brokerState, viewImage,
                   replicaData, topics>>

Replayable(applied) == applied < (IF StableOnly THEN metadataLog.stable ELSE metadataLog.end)

ReplayRecord(node) ==
    /\ nodeState[node].role # "active"                                          \* not_active
    /\ Replayable(nodeState[node].applied)                                      \* record_stable
    /\ nodeImage' = [nodeImage EXCEPT ![node] = Replayed(@, metadataLog.records[nodeState[node].applied])]
    /\ nodeState' = [nodeState EXCEPT ![node].applied = @ + 1]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, snapshotImage, brokerState, viewImage, replicaData, topics>>

-----------------------------------------------------------------------------
(* Brokers. *)

RegisterBroker(node, broker) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ brokerState[broker].run \in {"stopped", "lost"}                          \* starts
    /\ brokerState[broker].awaited = -1                                         \* not_awaited
    /\ broker \notin nodeImage[node].unfenced                                   \* session_over
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutBroker(
            IF brokerState[broker].run = "lost" THEN "register_unclean" ELSE "register", broker))
    /\ brokerState' = [brokerState EXCEPT ![broker].awaited = metadataLog.end]
    /\ UNCHANGED topics

HearRegistration(broker) ==
    /\ brokerState[broker].awaited # -1                                         \* awaits_answer
    /\ AnswersStable => brokerState[broker].awaited < metadataLog.stable        \* registration_stable
    /\ brokerState' = [brokerState EXCEPT ![broker].run = "running", ![broker].ownEpoch = brokerState[broker].awaited,
                                          ![broker].awaited = -1]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, viewImage,
                   replicaData, topics>>

NamesOwnEpoch(node, broker) ==
    /\ broker \in nodeImage[node].registered
    /\ brokerState[broker].ownEpoch = BrokerEpoch(nodeState[node].applied, broker)

UnfenceBroker(node, broker) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ brokerState[broker].run = "running"                                      \* runs
    /\ NamesOwnEpoch(node, broker)                                              \* broker_epoch_matches
    /\ brokerState[broker].ownEpoch < brokerState[broker].applied               \* caught_up
    /\ broker \notin nodeImage[node].unfenced                                   \* is_fenced
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutBroker("unfence", broker))
    /\ UNCHANGED <<brokerState, topics>>

\* Somebody who is unfenced and stays leads some partition of a broker's when that is fenced.
MaySucceed(node, broker, successor) ==
    /\ successor \in nodeImage[node].unfenced \ nodeImage[node].shuttingDown
    /\ \E p \in PartitionIds : Succeeds(nodeImage[node].partitions[p], broker, successor)

FenceBroker(node, broker, successor) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ broker \in nodeImage[node].unfenced                                      \* is_unfenced
    /\ \/ MaySucceed(node, broker, successor)
       \/ successor = broker /\ ~ \E b \in Replicas : MaySucceed(node, broker, b) \* may_succeed
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, [AboutBroker("fence", broker)
            EXCEPT !.leader = IF successor = broker THEN None ELSE successor])
    /\ UNCHANGED <<brokerState, topics>>

RequestShutdown(node, broker) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Removals = 1                                                             \* removals_asked
    /\ brokerState[broker].run = "running"                                      \* runs
    /\ NamesOwnEpoch(node, broker)                                              \* broker_epoch_matches
    /\ broker \in nodeImage[node].unfenced                                      \* is_unfenced
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutBroker("shut_down", broker))
    /\ brokerState' = [brokerState EXCEPT ![broker].run = "stopping"]
    /\ UNCHANGED topics

\* A broker that is gone leads nothing, and proposes nothing.
ProposesNothing(broker) ==
    [p \in PartitionIds |-> [replicaData[broker][p] EXCEPT !.proposed = None, !.proposedEpoch = -1]]

StopBroker(node, broker) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ brokerState[broker].run = "stopping"                                     \* wants_to_stop
    /\ broker \notin nodeImage[node].unfenced                                   \* is_fenced
    /\ metadataLog.stable = metadataLog.end                                     \* nothing_pending
    /\ brokerState' = [brokerState EXCEPT ![broker].run = "stopped"]
    /\ replicaData' = [replicaData EXCEPT ![broker] = ProposesNothing(broker)]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, viewImage, topics>>

CrashBroker(broker) ==
    /\ IsUp(broker)                                                             \* runs
    /\ brokerState' = [brokerState EXCEPT ![broker].run = "lost"]
    /\ replicaData' = [replicaData EXCEPT ![broker] =
            [p \in PartitionIds |-> [data |-> -1, proposed |-> None, proposedEpoch |-> -1]]]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, viewImage, topics>>

\* A broker has other metadata.
TakeUpEffect(broker, end, image) ==
    /\ viewImage' = [viewImage EXCEPT ![broker] = image]
    /\ brokerState' = [brokerState EXCEPT ![broker].applied = end, ![broker].reached = Max(@, end)]
    /\ replicaData' = [replicaData EXCEPT ![broker] = [p \in PartitionIds |->
            LET same == image.partitions[p].partitionEpoch = viewImage[broker].partitions[p].partitionEpoch
                now == replicaData[broker][p]
            IN  [data |-> IF image.partitions[p].leaderEpoch = -1 THEN -1 ELSE now.data,
                 proposed |-> IF same THEN now.proposed ELSE None,
                 proposedEpoch |-> IF same THEN now.proposedEpoch ELSE -1]]]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, topics>>

ReplayMetadata(broker) ==
    /\ IsUp(broker)                                                             \* runs
    /\ Replayable(brokerState[broker].applied)                                  \* record_stable
    /\ TakeUpEffect(broker, brokerState[broker].applied + 1,
            Replayed(viewImage[broker], metadataLog.records[brokerState[broker].applied]))

LoadSnapshot(broker, node) ==
    /\ IsUp(broker)                                                             \* runs
    /\ brokerState[broker].applied < nodeState[node].snapshotEnd                \* is_behind
    /\ TakeUpEffect(broker, nodeState[node].snapshotEnd, snapshotImage[node])

-----------------------------------------------------------------------------
(* Partitions. *)

Known(node, partition) == nodeImage[node].partitions[partition]
View(broker, partition) == viewImage[broker].partitions[partition]
Data(broker, partition) == replicaData[broker][partition].data
Proposed(broker, partition) == replicaData[broker][partition].proposed

CreateTopic(node, partition, leader) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ topics[partition].created = 0                                            \* id_is_new
    /\ leader \in nodeImage[node].unfenced                                      \* leader_unfenced
    /\ nodeImage[node].shuttingDown = {}                                        \* none_shuts_down
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutPartition("create_topic", partition, leader, nodeImage[node].unfenced))
    /\ topics' = [topics EXCEPT ![partition].created = 1]
    /\ UNCHANGED brokerState

RemoveTopic(node, partition) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Removals = 1                                                             \* removals_asked
    /\ Known(node, partition).leaderEpoch # -1                                  \* exists
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutPartition("remove_topic", partition, None, {}))
    /\ UNCHANGED <<brokerState, topics>>

ElectLeader(node, partition, leader) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Known(node, partition).leaderEpoch # -1                                  \* exists
    /\ Known(node, partition).leader \in nodeImage[node].shuttingDown \union {None} \* none_leads
    /\ leader \in Known(node, partition).isr                                    \* in_isr
    /\ ElectsUnfenced => leader \in nodeImage[node].unfenced                    \* is_unfenced
    /\ leader \notin nodeImage[node].shuttingDown                               \* stays
    /\ DoubtsLost => Known(node, partition).doubted = 0                         \* not_doubted
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutPartition("isr_change", partition, leader, Known(node, partition).isr))
    /\ UNCHANGED <<brokerState, topics>>

\* The follower follows in the leader's own epoch, and has what it has: its last fetch has said so.
HasLeadersData(leader, follower, partition) ==
    /\ TakesPart(follower) /\ View(follower, partition).leader = leader
    /\ View(follower, partition).leaderEpoch = View(leader, partition).leaderEpoch
    /\ Data(follower, partition) = Data(leader, partition)

ProposeEffect(leader, partition, member, epoch) ==
    /\ replicaData' = [replicaData EXCEPT ![leader][partition].proposed = member,
                                          ![leader][partition].proposedEpoch = epoch]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, brokerState, viewImage,
                   topics>>

ProposeExpand(leader, member, partition) ==
    /\ PresumesLeadership(leader, partition)                                    \* presumes_leadership
    /\ Proposed(leader, partition) = None                                       \* nothing_proposed
    /\ member \notin View(leader, partition).isr                                \* outside_isr
    /\ HasLeadersData(leader, member, partition)                                \* caught_up
    /\ ChecksBrokerEpoch => member \in viewImage[leader].unfenced               \* known_unfenced
    /\ ProposeEffect(leader, partition, member, brokerState[member].ownEpoch)

ProposeShrink(leader, member, partition) ==
    /\ PresumesLeadership(leader, partition)                                    \* presumes_leadership
    /\ Proposed(leader, partition) = None                                       \* nothing_proposed
    /\ member \in View(leader, partition).isr                                   \* in_isr
    /\ member # leader                                                          \* not_leader_itself
    /\ ProposeEffect(leader, partition, member, -1)

Joins(leader, partition) == Proposed(leader, partition) \notin View(leader, partition).isr

\* Who is to join is unfenced, stays, and is what it was when it was proposed.
IsEligible(node, leader, partition) ==
    LET member == Proposed(leader, partition)
    IN  /\ member \in nodeImage[node].unfenced /\ member \notin nodeImage[node].shuttingDown
        /\ ChecksBrokerEpoch =>
            replicaData[leader][partition].proposedEpoch = BrokerEpoch(nodeState[node].applied, member)

AlterPartition(node, leader, partition) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Proposed(leader, partition) # None                                       \* proposed
    /\ Known(node, partition).leaderEpoch # -1                                  \* exists
    /\ ChecksLeader => Known(node, partition).leader = leader                   \* is_leader
    /\ ChecksLeader => View(leader, partition).leaderEpoch = Known(node, partition).leaderEpoch \* leader_epoch_matches
    /\ ChecksLeader =>
            View(leader, partition).partitionEpoch = Known(node, partition).partitionEpoch \* partition_epoch_matches
    /\ ChecksLeader => NamesOwnEpoch(node, leader)                              \* broker_epoch_matches
    /\ Joins(leader, partition) => IsEligible(node, leader, partition)          \* is_eligible
    /\ metadataLog.end < LogSize                                                \* log_not_full
    /\ AppendEffect(node, AboutPartition("isr_change", partition, leader,
            IF Joins(leader, partition)
            THEN View(leader, partition).isr \union {Proposed(leader, partition)}
            ELSE View(leader, partition).isr \ {Proposed(leader, partition)}))
    /\ UNCHANGED <<brokerState, topics>>

RefuseMember(node, leader, partition) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Proposed(leader, partition) # None                                       \* proposed
    /\ Known(node, partition).leaderEpoch # -1                                  \* exists
    /\ ChecksLeader => Known(node, partition).leader = leader                   \* is_leader
    /\ ChecksLeader => View(leader, partition).leaderEpoch = Known(node, partition).leaderEpoch \* leader_epoch_matches
    /\ ChecksLeader =>
            View(leader, partition).partitionEpoch = Known(node, partition).partitionEpoch \* partition_epoch_matches
    /\ ChecksLeader => NamesOwnEpoch(node, leader)                              \* broker_epoch_matches
    /\ Joins(leader, partition)                                                 \* joins
    /\ ~ IsEligible(node, leader, partition)                                    \* not_eligible
    /\ ProposeEffect(leader, partition, None, -1)

LeaderWrite(leader, partition) ==
    /\ PresumesLeadership(leader, partition)                                    \* presumes_leadership
    /\ topics[partition].acknowledged = -1                                      \* not_acknowledged
    /\ Data(leader, partition) # View(leader, partition).leaderEpoch            \* not_written
    /\ replicaData' = [replicaData EXCEPT ![leader][partition].data = View(leader, partition).leaderEpoch]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, brokerState, viewImage,
                   topics>>

FollowerFetch(leader, follower, partition) ==
    /\ PresumesLeadership(leader, partition)                                    \* presumes_leadership
    /\ TakesPart(follower)                                                      \* takes_part
    /\ View(follower, partition).leader = leader                                \* follows_leader
    /\ View(follower, partition).leaderEpoch = View(leader, partition).leaderEpoch \* epoch_not_fenced
    /\ Data(follower, partition) # Data(leader, partition)                      \* differs
    /\ replicaData' = [replicaData EXCEPT ![follower][partition].data = Data(leader, partition)]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, brokerState, viewImage,
                   topics>>

Acknowledge(leader, partition) ==
    /\ PresumesLeadership(leader, partition)                                    \* presumes_leadership
    /\ Data(leader, partition) = View(leader, partition).leaderEpoch            \* written
    /\ topics[partition].acknowledged = -1                                      \* not_acknowledged
    /\ \A m \in View(leader, partition).isr \union ({Proposed(leader, partition)} \ {None}) :
            m = leader \/ HasLeadersData(leader, m, partition)                  \* isr_has_it
    /\ topics' = [topics EXCEPT ![partition].acknowledged = Data(leader, partition)]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeState, nodeImage, snapshotImage, brokerState, viewImage,
                   replicaData>>

-----------------------------------------------------------------------------
(* Snapshots. *)

NodeEffect(node, state) ==
    /\ nodeState' = [nodeState EXCEPT ![node] = state]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeImage, snapshotImage, brokerState, viewImage,
                   replicaData, topics>>

Says(node) == IF nodeState[node].making = 1 THEN "busy" ELSE "idle"

Heartbeat(node, active) ==
    /\ nodeState[active].role = "active"                                        \* is_active
    /\ nodeState[active].epoch = metadataLog.activeEpoch                        \* none_active_since
    /\ node # active                                                            \* another
    /\ nodeState[node].epoch = nodeState[active].epoch                          \* epoch_matches
    /\ nodeState[node].orderEpoch # nodeState[node].epoch                       \* order_taken
    /\ nodeState[node].heard # Says(node)                                       \* something_new
    /\ NodeEffect(node, [nodeState[node] EXCEPT !.heard = Says(node)])

NoneMakesOne(active) ==
    /\ nodeState[active].making = 0
    /\ \A n \in NodeIds \ {active} :
        IF HearsFirst THEN nodeState[n].heard = "idle" ELSE nodeState[n].heard # "busy"

OrderSnapshot(active, node) ==
    /\ nodeState[active].role = "active"                                        \* is_active
    /\ nodeState[active].epoch = metadataLog.activeEpoch                        \* none_active_since
    /\ Snapshots = 1                                                            \* snapshots_made
    /\ node # active                                                            \* another
    /\ NoneMakesOne(active)                                                     \* none_makes_one
    /\ Max(nodeState[node].snapshotEnd, 0) < nodeState[node].applied            \* enough_records
    /\ \A n \in NodeIds \ {active, node} : nodeState[n].applied = metadataLog.stable \* none_has_fallen_behind
    /\ NodeEffect(node, [nodeState[node] EXCEPT !.orderEpoch = nodeState[active].epoch, !.heard = "busy"])

BeginSnapshot(node) ==
    /\ nodeState[node].orderEpoch # -1                                          \* ordered
    /\ nodeState[node].role = "standby"                                         \* is_standby
    /\ OfOwnEpoch => nodeState[node].orderEpoch = nodeState[node].epoch         \* of_own_epoch
    /\ nodeState[node].making = 0                                               \* not_making_one
    /\ NodeEffect(node, [nodeState[node] EXCEPT !.making = 1, !.orderEpoch = -1])

Outdated(node) ==
    IF OfOwnEpoch THEN nodeState[node].orderEpoch < nodeState[node].epoch ELSE nodeState[node].making = 1

DropOrder(node) ==
    /\ nodeState[node].orderEpoch # -1                                          \* ordered
    /\ nodeState[node].role # "standby" \/ Outdated(node)                       \* not_taken
    /\ NodeEffect(node, [nodeState[node] EXCEPT !.orderEpoch = -1])

BeginOwnSnapshot(node) ==
    /\ nodeState[node].role = "active"                                          \* is_active
    /\ nodeState[node].epoch = metadataLog.activeEpoch                          \* none_active_since
    /\ Resigns # "first" /\ Snapshots = 1                                       \* snapshots_made
    /\ NoneMakesOne(node)                                                       \* none_makes_one
    /\ Max(nodeState[node].snapshotEnd, 0) < metadataLog.stable                 \* enough_records
    /\ NodeEffect(node, [nodeState[node] EXCEPT !.making = 1])

\* Of which end a node's snapshot is, and what it says: who works on takes the state at the last stable offset.
WorksOn(node) == Resigns = "never" /\ nodeState[node].role = "active"
ContentEnd(node) ==
    IF WorksOn(node) THEN Min(nodeState[node].applied, metadataLog.stable) ELSE nodeState[node].applied
Content(node) ==
    LET image == IF WorksOn(node) THEN PrefixImage(ContentEnd(node)) ELSE nodeImage[node]
    IN  IF SaysFenced THEN image ELSE [image EXCEPT !.unfenced = {}, !.shuttingDown = {}]

FinishSnapshot(node) ==
    /\ nodeState[node].making = 1                                               \* makes_one
    /\ Resigns = "first" => nodeState[node].role # "active"                     \* not_active
    /\ nodeState' = [nodeState EXCEPT ![node].making = 0, ![node].snapshotEnd = ContentEnd(node)]
    /\ snapshotImage' = [snapshotImage EXCEPT ![node] = Content(node)]
    /\ UNCHANGED <<metadataLog, prefixImage, newestEpoch, nodeImage, brokerState, viewImage, replicaData, topics>>

-----------------------------------------------------------------------------

Next ==
    \/ \E node \in NodeIds, kept \in EndOffsets : ElectController(node, kept)
    \/ \E node \in NodeIds, epoch \in 0 .. MaxControllerEpoch : HearOfEpoch(node, epoch)
    \/ \E node \in NodeIds : Resign(node)
    \/ \E node \in NodeIds : Activate(node)
    \/ \E node \in NodeIds : Commit(node)
    \/ \E node \in NodeIds : ReplayRecord(node)
    \/ \E node \in NodeIds, broker \in Replicas : RegisterBroker(node, broker)
    \/ \E broker \in Replicas : HearRegistration(broker)
    \/ \E node \in NodeIds, broker \in Replicas : UnfenceBroker(node, broker)
    \/ \E node \in NodeIds, broker, successor \in Replicas : FenceBroker(node, broker, successor)
    \/ \E node \in NodeIds, broker \in Replicas : RequestShutdown(node, broker)
    \/ \E node \in NodeIds, broker \in Replicas : StopBroker(node, broker)
    \/ \E broker \in Replicas : CrashBroker(broker)
    \/ \E broker \in Replicas : ReplayMetadata(broker)
    \/ \E broker \in Replicas, node \in NodeIds : LoadSnapshot(broker, node)
    \/ \E node \in NodeIds, partition \in PartitionIds, leader \in Replicas : CreateTopic(node, partition, leader)
    \/ \E node \in NodeIds, partition \in PartitionIds : RemoveTopic(node, partition)
    \/ \E node \in NodeIds, partition \in PartitionIds, leader \in Replicas : ElectLeader(node, partition, leader)
    \/ \E leader, member \in Replicas, partition \in PartitionIds : ProposeExpand(leader, member, partition)
    \/ \E leader, member \in Replicas, partition \in PartitionIds : ProposeShrink(leader, member, partition)
    \/ \E node \in NodeIds, leader \in Replicas, partition \in PartitionIds : AlterPartition(node, leader, partition)
    \/ \E node \in NodeIds, leader \in Replicas, partition \in PartitionIds : RefuseMember(node, leader, partition)
    \/ \E leader \in Replicas, partition \in PartitionIds : LeaderWrite(leader, partition)
    \/ \E leader, follower \in Replicas, partition \in PartitionIds : FollowerFetch(leader, follower, partition)
    \/ \E leader \in Replicas, partition \in PartitionIds : Acknowledge(leader, partition)
    \/ \E node, active \in NodeIds : Heartbeat(node, active)
    \/ \E active, node \in NodeIds : OrderSnapshot(active, node)
    \/ \E node \in NodeIds : BeginSnapshot(node)
    \/ \E node \in NodeIds : DropOrder(node)
    \/ \E node \in NodeIds : BeginOwnSnapshot(node)
    \/ \E node \in NodeIds : FinishSnapshot(node)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What is promised. *)

SnapshotIsSufficient ==
    \A node \in NodeIds : nodeState[node].snapshotEnd # -1 =>
        /\ nodeState[node].snapshotEnd <= metadataLog.stable
        /\ snapshotImage[node] = PrefixImage(nodeState[node].snapshotEnd)

StateIsOfStablePrefix ==
    \A node \in NodeIds : nodeState[node].role # "active" =>
        /\ nodeState[node].applied <= metadataLog.stable
        /\ nodeImage[node] = PrefixImage(nodeState[node].applied)

ViewIsOfStablePrefix ==
    \A broker \in Replicas :
        /\ brokerState[broker].applied <= metadataLog.stable
        /\ brokerState[broker].applied = brokerState[broker].reached
        /\ viewImage[broker] = PrefixImage(brokerState[broker].applied)

ActiveStateIsAtEnd ==
    \A node \in NodeIds : nodeState[node].role = "active" /\ nodeState[node].epoch = metadataLog.activeEpoch =>
        /\ nodeState[node].applied = metadataLog.end
        /\ nodeImage[node] = PrefixImage(metadataLog.end)

OneLeaderPerControllerEpoch ==
    \A one, other \in NodeIds :
        one < other /\ nodeState[one].role # "standby" /\ nodeState[other].role # "standby" =>
            nodeState[one].epoch # nodeState[other].epoch

FencedBrokerLeadsNothing ==
    \A o \in Offsets, p \in PartitionIds : o < metadataLog.end =>
        \A broker \in Replicas \ prefixImage[o].unfenced :
            /\ prefixImage[o].partitions[p].leader # broker
            /\ broker \notin prefixImage[o].partitions[p].isr \/ prefixImage[o].partitions[p].isr = {broker}

IsrIsNeverEmpty ==
    \A o \in Offsets, p \in PartitionIds :
        LET state == prefixImage[o].partitions[p]
        IN  state.leaderEpoch # -1 => state.isr # {} /\ state.leader \in state.isr \union {None}

\* In the state at an end the broker is in the ISR, or leads, and it is still the one that was registered there.
MayBeElected(end, partition, broker) ==
    /\ broker \in PrefixImage(end).partitions[partition].isr
    /\ \/ PrefixImage(end).partitions[partition].doubted = 0
       \/ PrefixImage(end).partitions[partition].leader = broker
    /\ \/ brokerState[broker].run = "stopped"
       \/ IsUp(broker) /\ brokerState[broker].ownEpoch = BrokerEpoch(end, broker)

AcknowledgedIsKept ==
    \A p \in PartitionIds : topics[p].acknowledged # -1 =>
        \A end \in metadataLog.stable .. metadataLog.end, broker \in Replicas :
            MayBeElected(end, p, broker) => Data(broker, p) = topics[p].acknowledged

OneSnapshotInTheMaking ==
    \A one, other \in NodeIds : one < other => ~ (nodeState[one].making = 1 /\ nodeState[other].making = 1)

BrokerEpochIsItsOwn ==
    \A broker \in Replicas : brokerState[broker].ownEpoch # -1 => Registers(brokerState[broker].ownEpoch, broker)
=============================================================================
