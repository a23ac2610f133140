package fencepost.kafka;

/** A change of a few lines in Kafka's remote log manager, or its fetcher: whoever judges tiered brokers must see it. */
public enum TieringDefect {
    NONE,
    /** A leader uploads up to the end of its log, whatever is committed. */
    UPLOADS_UNCOMMITTED,
    /** The leader epochs that are uploaded along with a segment lack the first one of the log. */
    LOSES_FIRST_EPOCH,
    /** Who is deposed goes on with the segments that are left. */
    NEVER_CANCELS,
    /** A new leader takes one record more for uploaded than there is. */
    COUNTS_UNCOPIED,
    /** A follower that has data begins at the earliest pending upload offset as an empty one does. */
    JUMPS_WITH_DATA;

    private static TieringDefect planted = NONE;

    /** Have it hold in brokers that are made from now on. */
    static void plant(String name) {
        planted = valueOf(name);
    }

    public boolean isPlanted() {
        return this == planted;
    }
}
