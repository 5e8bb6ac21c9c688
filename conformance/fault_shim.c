/* Makes chosen calls on the files of one directory fail: preloaded into a server by fault_control.py.

   LD_PRELOAD=fault_shim.so FROND_FAULTS=<control file> FROND_FAULTS_DIRECTORY=<absolute path> frond serve ...

   The control file is mapped by the shim and by the test (fault_control.py has the same layout), so that a test arms
   and disarms faults while the server runs. Calls of the kinds in `kinds` on files whose name contains `name`
   are counted in `seen`; those from number `first` on, `count` of them, fail with `error`.

   A sync whose `error` is 0 isn't done and says that it was: what a disk does that lies, or a program that forgets.
   A write that fails may have written a part before (`torn`), as on a disk that fills up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The open64 and pwrite64 of programs that say so are other names of the same calls. */
#undef open64
#undef openat64
#undef pwrite64
#undef pwritev64
#undef ftruncate64
#undef fallocate64
#undef posix_fallocate64

enum kind { FSYNC, FDATASYNC, WRITE, FTRUNCATE, RENAME, FALLOCATE, UNLINK, OPEN, READ };

#define NAME_BYTES 64
#define FILES_MAX 65536

struct control {
    _Atomic uint64_t kinds;    /* bits by `enum kind`: which calls are counted */
    _Atomic uint64_t first;    /* the first of them to fail; 0: none */
    _Atomic uint64_t count;    /* how many fail from there on */
    _Atomic uint64_t error;    /* with this errno */
    _Atomic uint64_t torn;     /* whether a write that fails writes the first half before */
    _Atomic uint64_t seen;     /* calls counted so far */
    _Atomic uint64_t injected; /* calls that failed so far */
    char name[NAME_BYTES];     /* only files whose name contains this */
    char failed[NAME_BYTES];   /* the last file of which a call failed */
};

static struct control *control;
static const char *directory;
static size_t directory_bytes;
/* By descriptor: the name below the directory, empty if it is elsewhere. */
static char names[FILES_MAX][NAME_BYTES];

#define REAL(result, call, ...) \
    static result (*real_##call)(__VA_ARGS__); \
    if (!real_##call) real_##call = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #call)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FROND_FAULTS");
    directory = getenv("FROND_FAULTS_DIRECTORY");
    if (!path || !directory) return;
    directory_bytes = strlen(directory);
    REAL(int, open, const char *, int, ...);
    int file = real_open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) abort();
    control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (control == MAP_FAILED) abort();
    close(file);
}

/* The name of a path below the directory ("." for itself); NULL for any other. */
static const char *name_of(const char *path) {
    if (!control || strncmp(path, directory, directory_bytes) != 0) return NULL;
    const char *rest = path + directory_bytes;
    if (*rest == 0) return ".";
    return *rest == '/' ? rest + 1 : NULL;
}

static const char *name_of_file(int file) {
    return control && 0 <= file && file < FILES_MAX && names[file][0] ? names[file] : NULL;
}

static void note(int file, const char *name) {
    if (file < 0 || file >= FILES_MAX) return;
    names[file][0] = 0;
    if (name) strncpy(names[file], name, NAME_BYTES - 1);
}

/* Whether this call fails; sets errno then. */
static int fails(enum kind kind, const char *name) {
    if (!name || !(control->kinds >> kind & 1) || !strstr(name, control->name)) return 0;
    uint64_t first = control->first, number = ++control->seen;
    if (first == 0 || number < first || number - first >= control->count) return 0;
    ++control->injected;
    strncpy(control->failed, name, NAME_BYTES - 1);
    errno = (int)control->error;
    return 1;
}

static int failed_sync(void) {
    return control->error == 0 ? 0 : -1;
}

int fsync(int file) {
    REAL(int, fsync, int);
    return fails(FSYNC, name_of_file(file)) ? failed_sync() : real_fsync(file);
}

int fdatasync(int file) {
    REAL(int, fdatasync, int);
    return fails(FDATASYNC, name_of_file(file)) ? failed_sync() : real_fdatasync(file);
}

ssize_t write(int file, const void *bytes, size_t count) {
    REAL(ssize_t, write, int, const void *, size_t);
    if (!fails(WRITE, name_of_file(file))) return real_write(file, bytes, count);
    int error = errno;
    if (control->torn && count > 1) (void)!real_write(file, bytes, count / 2);
    errno = error;
    return -1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    if (!fails(WRITE, name_of_file(file))) return real_pwrite(file, bytes, count, offset);
    int error = errno;
    if (control->torn && count > 1) (void)!real_pwrite(file, bytes, count / 2, offset);
    errno = error;
    return -1;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) {
    return pwrite(file, bytes, count, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    return fails(WRITE, name_of_file(file)) ? -1 : real_writev(file, parts, count);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    REAL(ssize_t, pwritev, int, const struct iovec *, int, off_t);
    return fails(WRITE, name_of_file(file)) ? -1 : real_pwritev(file, parts, count, offset);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t offset) {
    return pwritev(file, parts, count, offset);
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
    REAL(ssize_t, pread, int, void *, size_t, off_t);
    return fails(READ, name_of_file(file)) ? -1 : real_pread(file, bytes, count, offset);
}

ssize_t pread64(int file, void *bytes, size_t count, off_t offset) {
    return pread(file, bytes, count, offset);
}

int ftruncate(int file, off_t bytes) {
    REAL(int, ftruncate, int, off_t);
    return fails(FTRUNCATE, name_of_file(file)) ? -1 : real_ftruncate(file, bytes);
}

int ftruncate64(int file, off_t bytes) {
    return ftruncate(file, bytes);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
    REAL(int, fallocate, int, int, off_t, off_t);
    return fails(FALLOCATE, name_of_file(file)) ? -1 : real_fallocate(file, mode, offset, bytes);
}

int fallocate64(int file, int mode, off_t offset, off_t bytes) {
    return fallocate(file, mode, offset, bytes);
}

int posix_fallocate(int file, off_t offset, off_t bytes) {
    REAL(int, posix_fallocate, int, off_t, off_t);
    return fails(FALLOCATE, name_of_file(file)) ? errno : real_posix_fallocate(file, offset, bytes);
}

int posix_fallocate64(int file, off_t offset, off_t bytes) {
    return posix_fallocate(file, offset, bytes);
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    return fails(RENAME, name_of(to)) ? -1 : real_rename(from, to);
}

int renameat(int from_in, const char *from, int to_in, const char *to) {
    REAL(int, renameat, int, const char *, int, const char *);
    return fails(RENAME, name_of(to)) ? -1 : real_renameat(from_in, from, to_in, to);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    return fails(UNLINK, name_of(path)) ? -1 : real_unlink(path);
}

int unlinkat(int in, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    return fails(UNLINK, name_of(path)) ? -1 : real_unlinkat(in, path, flags);
}

static int opened(int file, const char *path) {
    note(file, name_of(path));
    return file;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define WITH_MODE(flags) \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = mode_of(flags, rest); \
    va_end(rest)

int open(const char *path, int flags, ...) {
    WITH_MODE(flags);
    REAL(int, open, const char *, int, ...);
    return fails(OPEN, name_of(path)) ? -1 : opened(real_open(path, flags, mode), path);
}

int open64(const char *path, int flags, ...) {
    WITH_MODE(flags);
    return open(path, flags | O_LARGEFILE, mode);
}

int openat(int in, const char *path, int flags, ...) {
    WITH_MODE(flags);
    REAL(int, openat, int, const char *, int, ...);
    return fails(OPEN, name_of(path)) ? -1 : opened(real_openat(in, path, flags, mode), path);
}

int openat64(int in, const char *path, int flags, ...) {
    WITH_MODE(flags);
    return openat(in, path, flags | O_LARGEFILE, mode);
}

int close(int file) {
    REAL(int, close, int);
    note(file, NULL);
    return real_close(file);
}
