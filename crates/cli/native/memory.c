/* memcpy, memmove, memcmp and bcmp of the static program, on x86-64.

   musl's are small rather than fast: memcpy begins string instructions, which take longer to start
   than most of our copies last, memmove goes backward by one word at a time, and memcmp compares
   single bytes. Here 16 bytes are taken at once, by SSE2, which every x86-64 has. With musl's, a
   fifth of the time of inserts into a collection with four indexes went into memmove, and a seventh
   of an aggregation's into memcpy (docs/notes/2026-11-29-build.md).

   Short lengths are done without a loop, by two accesses that overlap: the first bytes and the
   last. What a store could change is loaded before it, so that the ranges may overlap.

   crates/cli/build.rs compiles this with `-fno-builtin`, or the compiler would make calls of memcpy
   out of it. */
#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m128i block;
typedef uint16_t __attribute__((aligned(1), may_alias)) any_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) any_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) any_u64;

/* From here on string instructions pay, if the ranges are apart. */
enum { LONG = 2048 };

static inline block load(const char *at) { return _mm_loadu_si128((const block *)at); }

static inline void store(char *at, block bytes) { _mm_storeu_si128((block *)at, bytes); }

static void move_16_at_most(char *to, const char *from, size_t size) {
    if (size >= 8) {
        uint64_t first = *(const any_u64 *)from, last = *(const any_u64 *)(from + size - 8);
        *(any_u64 *)to = first;
        *(any_u64 *)(to + size - 8) = last;
    } else if (size >= 4) {
        uint32_t first = *(const any_u32 *)from, last = *(const any_u32 *)(from + size - 4);
        *(any_u32 *)to = first;
        *(any_u32 *)(to + size - 4) = last;
    } else if (size >= 2) {
        uint16_t first = *(const any_u16 *)from, last = *(const any_u16 *)(from + size - 2);
        *(any_u16 *)to = first;
        *(any_u16 *)(to + size - 2) = last;
    } else if (size == 1) {
        *to = *from;
    }
}

static void move_64_at_most(char *to, const char *from, size_t size) {
    const char *from_end = from + size;
    char *to_end = to + size;
    block a = load(from), z = load(from_end - 16);
    if (size > 32) {
        block b = load(from + 16), y = load(from_end - 32);
        store(to + 16, b);
        store(to_end - 32, y);
    }
    store(to, a);
    store(to_end - 16, z);
}

/* Above 64 bytes, `to` below `from` or beyond its end. */
static void move_forward(char *to, const char *from, size_t size) {
    const char *from_last = from + size - 64;
    char *to_last = to + size - 64;
    block a = load(from_last), b = load(from_last + 16);
    block c = load(from_last + 32), d = load(from_last + 48);
    for (; to < to_last; to += 64, from += 64) {
        block e = load(from), f = load(from + 16), g = load(from + 32), h = load(from + 48);
        store(to, e);
        store(to + 16, f);
        store(to + 32, g);
        store(to + 48, h);
    }
    store(to_last, a);
    store(to_last + 16, b);
    store(to_last + 32, c);
    store(to_last + 48, d);
}

/* Above 64 bytes, `to` within the bytes to move. */
static void move_backward(char *to, const char *from, size_t size) {
    block a = load(from), b = load(from + 16), c = load(from + 32), d = load(from + 48);
    for (; size > 64; size -= 64) {
        const char *last = from + size - 64;
        block e = load(last), f = load(last + 16), g = load(last + 32), h = load(last + 48);
        store(to + size - 64, e);
        store(to + size - 48, f);
        store(to + size - 32, g);
        store(to + size - 16, h);
    }
    store(to, a);
    store(to + 16, b);
    store(to + 32, c);
    store(to + 48, d);
}

void *memmove(void *to, const void *from, size_t size) {
    char *t = to;
    const char *f = from;
    if (size <= 16) {
        move_16_at_most(t, f, size);
    } else if (size <= 64) {
        move_64_at_most(t, f, size);
    } else if ((size_t)(t - f) < size) {
        move_backward(t, f, size);
    } else if (size < LONG || (size_t)(f - t) < size) {
        move_forward(t, f, size);
    } else {
        __asm__ volatile("rep movsb" : "+D"(t), "+S"(f), "+c"(size) : : "memory");
    }
    return to;
}

void *memcpy(void *restrict, const void *restrict, size_t) __attribute__((alias("memmove")));

/* As a number whose order is that of the bytes. */
static inline uint64_t number(const char *at) { return __builtin_bswap64(*(const any_u64 *)at); }

static inline uint64_t short_number(const char *at) {
    return __builtin_bswap32(*(const any_u32 *)at);
}

static int order(uint64_t left, uint64_t right) { return (left > right) - (left < right); }

static int compare_15_at_most(const char *left, const char *right, size_t size) {
    if (size >= 8) {
        uint64_t l = number(left), r = number(right);
        size_t last = l == r ? size - 8 : 0;
        return order(number(left + last), number(right + last));
    }
    if (size >= 4) {
        uint64_t l = short_number(left) << 32 | short_number(left + size - 4);
        uint64_t r = short_number(right) << 32 | short_number(right + size - 4);
        return order(l, r);
    }
    for (size_t i = 0; i < size; i++) {
        if (left[i] != right[i]) return (unsigned char)left[i] - (unsigned char)right[i];
    }
    return 0;
}

int memcmp(const void *left, const void *right, size_t size) {
    const char *l = left, *r = right;
    if (size < 16) return compare_15_at_most(l, r, size);
    for (size_t at = 0;; at = at + 32 <= size ? at + 16 : size - 16) {
        unsigned equal = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(load(l + at), load(r + at)));
        if (equal != 0xffff) {
            size_t first = at + (size_t)__builtin_ctz(~equal);
            return (unsigned char)l[first] - (unsigned char)r[first];
        }
        if (at + 16 == size) return 0;
    }
}

int bcmp(const void *, const void *, size_t) __attribute__((alias("memcmp")));
