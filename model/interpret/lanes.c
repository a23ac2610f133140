/* Cells of a group of states side by side: one vector for each cell, one lane for each state.
 *
 * Before this text come WORDS (64-bit words of a key), INSTANCES, INVARIANTS, WITNESSES and ELEMENT_BITS, as integers.
 * After it comes group(), printed from the system; then search.c. A condition is a vector of 0 and -1.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if ELEMENT_BITS == 8
typedef int8_t T;
typedef uint8_t UT;
#elif ELEMENT_BITS == 16
typedef int16_t T;
typedef uint16_t UT;
#elif ELEMENT_BITS == 32
typedef int32_t T;
typedef uint32_t UT;
#else
typedef int64_t T;
typedef uint64_t UT;
#endif

#if defined(__AVX2__)
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define LANES (VECTOR * 8 / ELEMENT_BITS)

typedef T V __attribute__((vector_size(VECTOR)));
typedef char Chars __attribute__((vector_size(VECTOR)));
typedef uint8_t U8 __attribute__((vector_size(VECTOR)));
typedef uint16_t U16 __attribute__((vector_size(VECTOR)));

/* A number in every lane. */
#define K(number) ((V){0} + (T)(number))
#define K8(number) ((U8){0} + (uint8_t)(number))
#define PICK(when, then, otherwise) (((when) & (then)) | (~(when) & (otherwise)))

/* Bit i says whether the condition holds in lane i. */
static inline uint32_t bits(V condition)
{
    /* Both compilers know these by name; their header takes longer to read than all of this text. */
#if defined(__AVX2__) && ELEMENT_BITS == 8
    return (uint32_t)__builtin_ia32_pmovmskb256((Chars)condition);
#elif defined(__SSE2__) && !defined(__AVX2__) && ELEMENT_BITS == 8
    return (uint32_t)__builtin_ia32_pmovmskb128((Chars)condition);
#else
    uint32_t found = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        found |= (uint32_t)(condition[lane] & 1) << lane;
    return found;
#endif
}

#if ELEMENT_BITS == 8
/* The keys of a group, byte by byte: planes[b] has byte b of each key. */
static inline void split(const uint64_t *keys, U8 *planes)
{
    uint8_t *at = (uint8_t *)planes;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned word = 0; word < WORDS; word++) {
            uint64_t bytes = keys[lane * WORDS + word];
            for (unsigned byte = 0; byte < 8; byte++)
                at[(word * 8 + byte) * LANES + lane] = (uint8_t)(bytes >> (8 * byte));
        }
}

/* A field within one byte, and one that goes on in the next. Bits that a shift brings from a neighbour are cut off. */
#define WITHIN(byte, shift, width, low) \
    ((V)((U8)((U16)planes[byte] >> (shift)) & K8((1 << (width)) - 1)) + (T)(low))
#define ACROSS(byte, shift, width, low) \
    ((V)((((U8)((U16)planes[byte] >> (shift)) & K8(0xFF >> (shift))) \
          | ((U8)((U16)planes[(byte) + 1] << (8 - (shift))) & K8(0xFF << (8 - (shift))))) \
         & K8((1 << (width)) - 1)) + (T)(low))
#else
/* A field of each key, whatever its width. */
static inline V field(const uint64_t *keys, unsigned word, unsigned shift, uint64_t mask, T low)
{
    V values;
    for (unsigned lane = 0; lane < LANES; lane++)
        values[lane] = (T)((T)(keys[lane * WORDS + word] >> shift & mask) + low);
    return values;
}
#endif

/* What a part of the search has found; search.c has the rest. Which lanes hold is given as bits. */
#define PARTS 4
#define ENTRY (WORDS + 1)

typedef struct {
    uint32_t count;    /* members when a round was expanded */
    uint32_t finished; /* all of its level is */
    uint32_t broken;
} Note;

typedef struct {
    uint64_t *keys;    /* the members, a key's words side by side */
    uint32_t *parents; /* number * PARTS + part of a member that leads here */
    uint32_t *slots;   /* 0, or the number and one, with some bits of the hash above it */
    uint32_t count, room, slot_count, number_bits, stale;
    uint32_t at, end; /* of the level: the next member to expand, and the end */
    uint32_t broken, broken_row, broken_invariant;
    uint32_t escaped, escaped_row, escaped_instance;
    uint64_t transitions[INSTANCES], discoveries[INSTANCES], witnesses[WITNESSES + 1];
    uint64_t *staged; /* successors of a group: a key, then the parent and the instance */
    uint32_t staged_count;
    uint64_t *found[2][PARTS]; /* successors of a round, by the part that they belong to; two rounds take turns */
    uint32_t found_count[2][PARTS];
    Note note[2];
} Part;

static void mark_broken(Part *part, unsigned invariant, uint32_t at, uint32_t lanes)
{
    uint32_t row = at + (uint32_t)__builtin_ctz(lanes);
    if (!part->broken || row < part->broken_row) {
        part->broken = 1;
        part->broken_row = row;
        part->broken_invariant = invariant;
    }
}

static void mark_escaped(Part *part, unsigned instance, uint32_t at, uint32_t lanes)
{
    uint32_t row = at + (uint32_t)__builtin_ctz(lanes);
    if (!part->escaped || row < part->escaped_row) {
        part->escaped = 1;
        part->escaped_row = row;
        part->escaped_instance = instance;
    }
}
