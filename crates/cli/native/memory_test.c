/* Compares memory.c's functions with simple ones, byte by byte: memory.rs compiles and runs both.

   Lengths up to 400 with distances up to 80 between the ranges, longer ones by chance; each range
   ends where a page ends behind which nothing may be read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 1 << 15 };

static uint64_t state = 88172645463325252u;

static uint64_t random_below(uint64_t bound) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % bound;
}

/* Returns the end of ROOM bytes behind which there is no page. */
static unsigned char *edge(void) {
    long page = sysconf(_SC_PAGESIZE);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *start = mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (start == MAP_FAILED || mprotect(start + ROOM, page, PROT_NONE) != 0) abort();
    return (unsigned char *)start + ROOM;
}

static void check_move(unsigned char *end, size_t size, long distance) {
    static unsigned char model[ROOM];
    unsigned char *start = end - ROOM;
    size_t from = ROOM - size - (distance > 0 ? (size_t)distance : 0);
    size_t to = from + distance;
    for (size_t i = 0; i < ROOM; i++) start[i] = model[i] = (unsigned char)random_below(256);
    for (size_t i = 0; i < size; i++) model[to + i] = start[from + i];
    if (memmove(start + to, start + from, size) != start + to) abort();
    for (size_t i = 0; i < ROOM; i++) {
        if (start[i] != model[i]) {
            printf("%zu bytes moved by %ld: byte %ld is wrong\n", size, distance, (long)(i - to));
            exit(1);
        }
    }
}

static int sign(int order) { return (order > 0) - (order < 0); }

/* Ranges that differ from byte `first` on. */
static void check_order(unsigned char *one_end, unsigned char *other_end, size_t size,
                        size_t first) {
    unsigned char *one = one_end - size, *other = other_end - size;
    for (size_t i = 0; i < size; i++) {
        one[i] = (unsigned char)random_below(256);
        other[i] = i < first ? one[i] : (unsigned char)random_below(256);
    }
    if (first < size) other[first] = one[first] ^ (unsigned char)(1 << random_below(8));
    int order = first < size ? (one[first] > other[first] ? 1 : -1) : 0;
    int found = memcmp(one, other, size);
    if (sign(found) != order || sign(memcmp(other, one, size)) != -order) {
        printf("%zu bytes that differ at %zu: order %d\n", size, first, found);
        exit(1);
    }
}

int main(void) {
    unsigned char *one = edge(), *other = edge();
    for (size_t size = 0; size <= 400; size++) {
        check_move(one, size, (long)random_below(161) - 80);
        check_move(one, size, (long)size);
        check_move(one, size, -(long)size);
        for (size_t first = 0; first <= size; first++) check_order(one, other, size, first);
    }
    for (int i = 0; i < 2000; i++) {
        size_t size = random_below(ROOM / 3);
        check_move(one, size, (long)random_below(2 * size + 1) - (long)size);
        check_order(one, other, size, random_below(size + 1));
    }
    for (size_t size = 1; size < 200; size++) {
        long step = 1 + (long)random_below(9);
        for (long distance = -(long)size; distance <= (long)size; distance += step) {
            check_move(one, size, distance);
        }
    }
    return 0;
}
