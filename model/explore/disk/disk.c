/* The successors of a level, in one table in the order of the files on disk, printed after search.c.
 *
 * The order of a key is ``hashed``, which order.py has too: files written by either are the same.
 * A slot follows from the high bits of a key's order, so that slots from first to last are in that order, but within a
 * run of slots without an empty one. What is known is struck out by reading it in its order: the table is then read
 * from first to last, too. Nothing here takes memory for states: whoever calls gives the arrays, and knows what they are.
 */
#define SEEN 0x8000u      /* of a mark: the key is on disk already */
#define FETCHED 16        /* keys whose slot is fetched ahead; a power of two */

typedef struct {
    uint64_t *keys;       /* a key's words side by side */
    uint16_t *marks;      /* 0 where there is no key, else the action that led there first, and one */
    uint64_t slots, ends; /* those that a key's search begins in, and all of them */
    uint64_t count, most;
    unsigned shared;      /* leading bits of the order that are those of every key here */
    uint16_t *actions;    /* of each instance */
    uint32_t *rows;       /* places of a group's successors, by the state that they come from */
    uint8_t wanted[INVARIANTS + 1], none[INVARIANTS + 1];
    uint64_t broken[3];   /* whether a state is, which, and by which invariant */
    uint64_t escaped[3];  /* whether a successor is out of the domains, of which state, and by which instance */
    Part part;
} Level;

static inline uint64_t first_slot(const Level *level, uint64_t order)
{
    return (uint64_t)((unsigned __int128)(order << level->shared) * level->slots >> 64);
}

static inline void fetch(const Level *level, uint64_t slot)
{
    __builtin_prefetch(level->marks + slot);
    __builtin_prefetch(level->keys + slot * WORDS);
}

/* The slot of this key, or the empty one where it belongs; all slots where there is none. */
static inline uint64_t found_at(const Level *level, const uint64_t *key, uint64_t slot)
{
    while (slot < level->ends && level->marks[slot] && !same(level->keys + slot * WORDS, key))
        slot++;
    return slot;
}

/* 0 where there is no room. */
static inline int put(Level *level, const uint64_t *key, uint64_t slot, uint16_t mark)
{
    slot = found_at(level, key, slot);
    if (slot == level->ends)
        return 0;
    if (!level->marks[slot]) {
        level->marks[slot] = mark;
        memcpy(level->keys + slot * WORDS, key, 8 * WORDS);
        level->count++;
    }
    return 1;
}

void level_finish(Level *level)
{
    if (!level)
        return;
    free(level->part.staged);
    free(level->actions);
    free(level->rows);
    free(level);
}

/* A level without a table. ``wanted``: of each invariant, whether it is checked; ``actions``: of each instance. */
Level *level_start(const uint8_t *wanted, const uint16_t *actions)
{
    Level *level = calloc(1, sizeof *level);
    if (!level)
        return NULL;
    level->part.staged = malloc((size_t)8 * ENTRY * LANES * (INSTANCES + 1));
    level->actions = malloc(sizeof *actions * (INSTANCES + 1));
    level->rows = malloc(sizeof *level->rows * LANES * (INSTANCES + 1));
    if (!level->part.staged || !level->actions || !level->rows) {
        level_finish(level);
        return NULL;
    }
    memcpy(level->wanted, wanted, INVARIANTS);
    memcpy(level->actions, actions, sizeof *actions * INSTANCES);
    return level;
}

/* States that a group has at most, and successors. */
void level_told(uint64_t *out)
{
    out[0] = LANES;
    out[1] = (uint64_t)LANES * INSTANCES;
}

/* Take this table, whose marks are all 0, for ``most`` keys that share so many leading bits of their order. */
void level_take(Level *level, uint64_t *keys, uint16_t *marks, uint64_t slots, uint64_t ends, uint64_t most,
                unsigned shared)
{
    level->keys = keys;
    level->marks = marks;
    level->slots = slots;
    level->ends = ends;
    level->most = most;
    level->shared = shared;
    level->count = 0;
}

uint64_t level_count(const Level *level)
{
    return level->count;
}

/* Forget what was counted, and what was found broken. */
void level_begin(Level *level)
{
    Part *part = &level->part;
    level->broken[0] = level->escaped[0] = 0;
    memset(part->transitions, 0, sizeof part->transitions);
    memset(part->witnesses, 0, sizeof part->witnesses);
}

/* The group's successors by the state that they come from, and for each in the order of the instances. */
static void by_state(Level *level)
{
    const Part *part = &level->part;
    uint32_t begins[LANES + 1] = {0};
    for (uint32_t i = 0; i < part->staged_count; i++)
        begins[(uint32_t)(part->staged[(size_t)i * ENTRY + WORDS] >> 32) / PARTS - part->at + 1]++;
    for (unsigned lane = 0; lane < LANES; lane++)
        begins[lane + 1] += begins[lane];
    for (uint32_t i = 0; i < part->staged_count; i++)
        level->rows[begins[(uint32_t)(part->staged[(size_t)i * ENTRY + WORDS] >> 32) / PARTS - part->at]++] = i;
}

static int take_successors(Level *level)
{
    const Part *part = &level->part;
    uint64_t slots[FETCHED];
    by_state(level);
    for (uint32_t i = 0; i < part->staged_count + FETCHED; i++) {
        if (i >= FETCHED) {
            const uint64_t *entry = part->staged + (size_t)level->rows[i - FETCHED] * ENTRY;
            if (!put(level, entry, slots[i % FETCHED], level->actions[(uint32_t)entry[WORDS]] + 1))
                return 0;
        }
        if (i < part->staged_count) {
            slots[i % FETCHED] = first_slot(level, hashed(part->staged + (size_t)level->rows[i] * ENTRY));
            fetch(level, slots[i % FETCHED]);
        }
    }
    return 1;
}

/* Check and expand states of the level, of which the first has the number ``begins`` in it. How many were: fewer where
 * the table is full, or where one breaks an invariant; -1 where the table has no room at its end. Nothing is put in any
 * more once a successor has left the domains: the search ends with the level.
 */
int64_t level_expand(Level *level, const uint64_t *keys, uint64_t begins, uint32_t count)
{
    Part *part = &level->part;
    uint32_t at = 0;
    while (at < count && !level->broken[0] && level->count + (uint64_t)LANES * INSTANCES <= level->most) {
        uint32_t many = count - at < LANES ? count - at : LANES;
        part->at = at;
        part->staged_count = part->broken = part->escaped = 0;
        group(part, 0, keys + (size_t)at * WORDS, many, level->wanted);
        if (part->broken) {
            const uint64_t of[] = {1, begins + part->broken_row, part->broken_invariant};
            memcpy(level->broken, of, sizeof of);
        } else if (part->escaped && !level->escaped[0]) {
            const uint64_t of[] = {1, begins + part->escaped_row, part->escaped_instance};
            memcpy(level->escaped, of, sizeof of);
        } else if (!level->escaped[0] && !take_successors(level)) {
            return -1;
        }
        at += many;
    }
    return at;
}

/* Put in keys that were taken out, which come in the order in which they were found. 0 where there is no room. */
int level_load(Level *level, const uint64_t *keys, const uint16_t *marks, uint64_t count)
{
    if (level->count + count > level->most)
        return 0;
    for (uint64_t i = 0; i < count; i++)
        if (!put(level, keys + i * WORDS, first_slot(level, hashed(keys + i * WORDS)), marks[i]))
            return 0;
    return 1;
}

/* Strike out these keys. */
void level_strike(Level *level, const uint64_t *keys, uint64_t count)
{
    uint64_t slots[FETCHED];
    for (uint64_t i = 0; i < count + FETCHED; i++) {
        if (i >= FETCHED) {
            uint64_t slot = found_at(level, keys + (i - FETCHED) * WORDS, slots[i % FETCHED]);
            if (slot < level->ends && level->marks[slot])
                level->marks[slot] |= SEEN;
        }
        if (i < count) {
            slots[i % FETCHED] = first_slot(level, hashed(keys + i * WORDS));
            fetch(level, slots[i % FETCHED]);
        }
    }
}

static int before(const uint64_t *one, uint64_t of_one, const uint64_t *other, uint64_t of_other)
{
    if (of_one != of_other)
        return of_one < of_other;
    for (unsigned word = 0; word < WORDS; word++)
        if (one[word] != other[word])
            return one[word] < other[word];
    return 0;
}

/* Lay out keys that were not struck out, with their marks, in their order, from the slot ``from`` on. How many: there is
 * room for ``room``, and ``from`` is where to go on; ``orders`` has as much room. 0 at the end, -1 where a run of slots
 * is longer than that.
 */
int64_t level_fresh(const Level *level, uint64_t *from, uint64_t *keys, uint16_t *marks, uint64_t *orders, uint64_t room)
{
    uint64_t slot = *from, laid = 0;
    while (slot < level->ends) {
        uint64_t begins = laid, ends = slot;
        if (!level->marks[slot]) {
            slot++;
            continue;
        }
        while (ends < level->ends && level->marks[ends])
            ends++;
        if (ends - slot > room - laid) {
            *from = slot;
            return laid ? (int64_t)laid : -1;
        }
        for (; slot < ends; slot++) {
            const uint64_t *key = level->keys + slot * WORDS;
            uint64_t order, at = laid;
            if (level->marks[slot] & SEEN)
                continue;
            order = hashed(key);
            for (; at > begins && before(key, order, keys + (at - 1) * WORDS, orders[at - 1]); at--) {
                memcpy(keys + at * WORDS, keys + (at - 1) * WORDS, 8 * WORDS);
                marks[at] = marks[at - 1];
                orders[at] = orders[at - 1];
            }
            memcpy(keys + at * WORDS, key, 8 * WORDS);
            marks[at] = level->marks[slot];
            orders[at] = order;
            laid++;
        }
    }
    *from = slot;
    return (int64_t)laid;
}

/* The first of these states that has a step to the key, or ``count`` where none has. What is counted is spoilt. */
uint32_t level_leads(Level *level, const uint64_t *keys, uint32_t count, const uint64_t *key)
{
    Part *part = &level->part;
    for (uint32_t at = 0; at < count; at += LANES) {
        uint32_t first = UINT32_MAX;
        part->at = at;
        part->staged_count = part->broken = part->escaped = 0;
        group(part, 0, keys + (size_t)at * WORDS, count - at < LANES ? count - at : LANES, level->none);
        for (uint32_t i = 0; i < part->staged_count; i++) {
            const uint64_t *entry = part->staged + (size_t)i * ENTRY;
            uint32_t row = (uint32_t)(entry[WORDS] >> 32) / PARTS;
            if (row < first && same(entry, key))
                first = row;
        }
        if (first != UINT32_MAX)
            return first;
    }
    return count;
}

/* Since level_begin: transitions by instance, how often each witness was met, and the first state that breaks an
 * invariant and the first with a successor outside of the domains (three numbers each).
 */
void level_counted(const Level *level, uint64_t *transitions, uint64_t *witnesses, uint64_t *first)
{
    memcpy(transitions, level->part.transitions, sizeof level->part.transitions);
    memcpy(witnesses, level->part.witnesses, sizeof *witnesses * WITNESSES);
    memcpy(first, level->broken, sizeof level->broken);
    memcpy(first + 3, level->escaped, sizeof level->escaped);
}
