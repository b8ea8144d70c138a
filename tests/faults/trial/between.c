/* Stands between a process and the system: it is preloaded, sees every file operation below one directory, notes each
 * of them for power cuts, and makes one of them fail.
 *
 * It knows nothing of what it watches. One lock is held over each operation and its note, so the notes are in the order
 * in which the system saw them. What it cannot follow (a shared mapping that is written, a link) it notes as strange,
 * and who reads the notes refuses them. A note that cannot be written ends the process: it must not look like a sound one.
 *
 * TRIAL_BELOW   the directory that is watched, without links in its path
 * TRIAL_RECORD  file that gets the notes
 * TRIAL_LEDGER  file whose writes are noted among the others, and never fail
 * TRIAL_LIST    file that gets a line for each operation that counts: its letter and its path
 * TRIAL_FAULT   AT:HOW:ERRNO:LETTERS; the operation number AT of those that count, from 1 on, fails
 *               HOW: once; on, it and all that follow; short, a write is cut in half and all later ones fail;
 *               kill, it succeeds and the process is killed behind it
 * TRIAL_MATCH   only operations count whose path contains this
 *
 * Letters: w write, s sync of a file, d sync of a directory, t truncation, r rename, u removal of a name, m new directory,
 * c new file, o opening of what is there, g reading.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LONGEST = 4200 };
enum how { NOTHING, ONCE, ON, SHORT, KILL };
enum fate { GO, REFUSE, HALVE, DIE };
enum note {
    OPENED = 1, CREATED, WRITTEN, TRUNCATED, SYNCED, DIRECTORY_SYNCED, SYNC_FAILED, DIRECTORY_SYNC_FAILED,
    RENAMED, UNLINKED, DIRECTORY_MADE, DIRECTORY_REMOVED, NOTED, STRANGE
};

/* The definition that this one hides. */
#define HIDDEN(name) ({ static __typeof__(&name) found; if (!found) found = (__typeof__(&name))dlsym(RTLD_NEXT, #name); found; })

static pthread_mutex_t order = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t begun = PTHREAD_ONCE_INIT;
static const char *below, *ledger, *match, *letters = "wsdtrumc";
static size_t below_length;
static int record = -1, list = -1, fault_errno;
static enum how how;
static long fault_at, counted;
static int has_struck;

/* A process that dies of itself does so between two operations: else the last one might not be noted. */
__attribute__((noreturn)) void abort(void) {
    pthread_mutex_lock(&order);
    HIDDEN(abort)();
    for (;;) pause();
}

static int open_notes(const char *variable) {
    const char *path = getenv(variable);
    if (!path) return -1;
    int file = HIDDEN(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) abort();
    return file;
}

static void begin(void) {
    below = getenv("TRIAL_BELOW");
    if (!below) return;
    below_length = strlen(below);
    ledger = getenv("TRIAL_LEDGER");
    match = getenv("TRIAL_MATCH");
    record = open_notes("TRIAL_RECORD");
    list = open_notes("TRIAL_LIST");
    const char *fault = getenv("TRIAL_FAULT");
    if (!fault) return;
    static char name[16], kinds[32];
    if (sscanf(fault, "%ld:%15[a-z]:%d:%31[a-z]", &fault_at, name, &fault_errno, kinds) != 4) abort();
    letters = kinds;
    how = !strcmp(name, "once") ? ONCE : !strcmp(name, "on") ? ON : !strcmp(name, "short") ? SHORT :
        !strcmp(name, "kill") ? KILL : NOTHING;
    if (how == NOTHING && fault_at) abort();
}

static int is_watched(const char *path) {
    if (!below || strncmp(path, below, below_length)) return 0;
    return path[below_length] == 0 || path[below_length] == '/';
}

static int is_ledger(const char *path) { return ledger && !strcmp(path, ledger); }

/* Gives the path of a file that is open; empty if it has none or nothing is watched. */
static void path_of(int file, char *path) {
    pthread_once(&begun, begin);
    path[0] = 0;
    if (!below || file < 0) return;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, LONGEST - 1);
    path[length > 0 ? length : 0] = 0;
}

/* Gives the path of a name in a directory. */
static void path_at(int directory, const char *name, char *path) {
    pthread_once(&begun, begin);
    if (!below || name[0] == '/') {
        snprintf(path, LONGEST, "%s", name);
        return;
    }
    char folder[LONGEST];
    if (directory != AT_FDCWD) path_of(directory, folder);
    else if (!getcwd(folder, sizeof folder)) folder[0] = 0;
    if (snprintf(path, LONGEST, "%s/%s", folder, name) >= LONGEST) abort();
}

static void put(int file, struct iovec *parts, int count) {
    while (count > 0) {
        ssize_t done = HIDDEN(writev)(file, parts, count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) abort();
        while (count > 0 && (size_t)done >= parts->iov_len) {
            done -= parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= done;
        }
    }
}

struct __attribute__((packed)) head {
    uint8_t note;
    uint64_t file, number;
    uint32_t one, two, bytes;
};

/* Notes an operation: the file's own number, an offset or a length, one or two paths, and what was written. */
static void note(enum note what, uint64_t file, uint64_t number, const char *one, const char *two, const void *bytes,
                 size_t length) {
    if (record < 0) return;
    int kept = errno;
    struct head head = {what, file, number, one ? strlen(one) : 0, two ? strlen(two) : 0, length};
    struct iovec parts[4] = {
        {&head, sizeof head}, {(void *)one, head.one}, {(void *)two, head.two}, {(void *)bytes, length}};
    put(record, parts, 4);
    errno = kept;
}

static void strange(const char *what, const char *path) { note(STRANGE, 0, 0, what, path, NULL, 0); }

/* Decides what becomes of an operation. Called with the lock held. */
static enum fate fate_of(char letter, const char *path, size_t length) {
    if (!strchr(letters, letter) || (match && !strstr(path, match))) return GO;
    counted++;
    if (list >= 0) {
        char start[2] = {letter, ' '};
        struct iovec parts[3] = {{start, 2}, {(void *)path, strlen(path)}, {"\n", 1}};
        put(list, parts, 3);
    }
    int is_it = counted == fault_at;
    errno = fault_errno;
    switch (how) {
    case NOTHING: return GO;
    case ONCE: return is_it ? REFUSE : GO;
    case ON: return fault_at && counted >= fault_at ? REFUSE : GO;
    case KILL: return is_it ? DIE : GO;
    case SHORT:
        if (is_it) has_struck = 1;
        if (is_it) return letter == 'w' && length > 1 ? HALVE : REFUSE;
        return has_struck && letter == 'w' ? REFUSE : GO;
    }
    return GO;
}

static void end_as(enum fate fate) {
    if (fate != DIE) return;
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static uint64_t number_of(int file) {
    struct stat status;
    return fstat(file, &status) ? 0 : status.st_ino;
}

/* Runs an operation under the lock, unless it is to fail; `noted` follows if it succeeded. */
#define ATTEMPT(type, letter, path, call, noted) ({ \
    type result_ = -1; \
    pthread_mutex_lock(&order); \
    enum fate fate_ = fate_of(letter, path, 0); \
    if (fate_ != REFUSE) { \
        result_ = call; \
        if (result_ >= 0) { noted; } \
        int errno_ = errno; \
        end_as(fate_); \
        errno = errno_; \
    } \
    pthread_mutex_unlock(&order); \
    result_; \
})

/* Opening. */

static int open_at(int directory, const char *name, int flags, mode_t mode) {
    char path[LONGEST];
    path_at(directory, name, path);
    if (!is_watched(path)) return HIDDEN(openat)(directory, name, flags, mode);
    struct stat status;
    pthread_mutex_lock(&order);
    int was_there = !lstat(path, &status), is_new = (flags & O_CREAT) && !was_there, file = -1;
    enum fate fate = fate_of(is_new ? 'c' : 'o', path, 0);
    if (fate != REFUSE) {
        file = HIDDEN(openat)(directory, name, flags, mode);
        int kept = errno;
        if (file >= 0 && (flags & O_TMPFILE) == O_TMPFILE) strange("a file without a name", path);
        else if (file >= 0 && !is_ledger(path) && !fstat(file, &status) && S_ISREG(status.st_mode)) {
            note(is_new ? CREATED : OPENED, status.st_ino, 0, path, NULL, NULL, 0);
            if (was_there && (flags & O_TRUNC)) note(TRUNCATED, status.st_ino, 0, NULL, NULL, NULL, 0);
        }
        end_as(fate);
        errno = kept;
    }
    pthread_mutex_unlock(&order);
    return file;
}

#define MODE_OF(flags) ({ \
    mode_t mode_ = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest_; \
        va_start(rest_, flags); \
        mode_ = va_arg(rest_, mode_t); \
        va_end(rest_); \
    } \
    mode_; \
})

int open(const char *name, int flags, ...) { return open_at(AT_FDCWD, name, flags, MODE_OF(flags)); }
int open64(const char *name, int flags, ...) { return open_at(AT_FDCWD, name, flags, MODE_OF(flags)); }
int openat(int directory, const char *name, int flags, ...) { return open_at(directory, name, flags, MODE_OF(flags)); }
int openat64(int directory, const char *name, int flags, ...) { return open_at(directory, name, flags, MODE_OF(flags)); }
int creat(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

DIR *opendir(const char *name) {
    char path[LONGEST];
    path_at(AT_FDCWD, name, path);
    if (is_watched(path)) {
        pthread_mutex_lock(&order);
        enum fate fate = fate_of('o', path, 0);
        end_as(fate);
        pthread_mutex_unlock(&order);
        if (fate == REFUSE) return NULL;
    }
    return HIDDEN(opendir)(name);
}

/* Writing. An offset below 0 is the file's own. */

static ssize_t write_to(int file, const char *path, const void *bytes, size_t length, int64_t at) {
    pthread_mutex_lock(&order);
    ssize_t done = -1;
    enum fate fate = is_ledger(path) ? GO : fate_of('w', path, length);
    if (fate != REFUSE) {
        struct stat status;
        if (fstat(file, &status)) abort();
        int is_at_end = HIDDEN(fcntl)(file, F_GETFL) & O_APPEND;
        int64_t from = at >= 0 ? at : is_at_end ? status.st_size : lseek(file, 0, SEEK_CUR);
        size_t part = fate == HALVE ? length / 2 : length;
        done = at >= 0 ? HIDDEN(pwrite)(file, bytes, part, at) : HIDDEN(write)(file, bytes, part);
        int kept = errno;
        if (done > 0) note(is_ledger(path) ? NOTED : WRITTEN, status.st_ino, from, NULL, NULL, bytes, done);
        end_as(fate);
        errno = kept;
    }
    pthread_mutex_unlock(&order);
    return done;
}

static int is_seen(int file, char *path) {
    path_of(file, path);
    return path[0] && (is_ledger(path) || is_watched(path));
}

ssize_t write(int file, const void *bytes, size_t length) {
    char path[LONGEST];
    return is_seen(file, path) ? write_to(file, path, bytes, length, -1) : HIDDEN(write)(file, bytes, length);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) {
    char path[LONGEST];
    return is_seen(file, path) ? write_to(file, path, bytes, length, at) : HIDDEN(pwrite)(file, bytes, length, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) { return pwrite(file, bytes, length, at); }

static ssize_t write_parts(int file, const char *path, const struct iovec *parts, int count, int64_t at) {
    size_t length = 0;
    for (int i = 0; i < count; i++) length += parts[i].iov_len;
    char *whole = malloc(length + 1), *end = whole;
    if (!whole) abort();
    for (int i = 0; i < count; i++) end = mempcpy(end, parts[i].iov_base, parts[i].iov_len);
    ssize_t done = write_to(file, path, whole, length, at);
    int kept = errno;
    free(whole);
    errno = kept;
    return done;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    char path[LONGEST];
    return is_seen(file, path) ? write_parts(file, path, parts, count, -1) : HIDDEN(writev)(file, parts, count);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    char path[LONGEST];
    return is_seen(file, path) ? write_parts(file, path, parts, count, at) : HIDDEN(pwritev)(file, parts, count, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) { return pwritev(file, parts, count, at); }

/* Copies within the system would pass unseen: they are not offered, and callers read and write instead. */

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    char path[LONGEST];
    if (!is_seen(to, path)) return HIDDEN(copy_file_range)(from, from_at, to, to_at, length, flags);
    errno = ENOSYS;
    return -1;
}

ssize_t sendfile(int to, int from, off_t *at, size_t length) {
    char path[LONGEST];
    if (!is_seen(to, path)) return HIDDEN(sendfile)(to, from, at, length);
    errno = ENOSYS;
    return -1;
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t length) { return sendfile(to, from, at, length); }

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    char path[LONGEST];
    if (!is_seen(to, path)) return HIDDEN(splice)(from, from_at, to, to_at, length, flags);
    errno = EINVAL;
    return -1;
}

void *mmap(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    char path[LONGEST];
    if (file >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE) && is_seen(file, path))
        strange("a shared mapping that is written", path);
    return HIDDEN(mmap)(at, length, protection, flags, file, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int file, off64_t offset) {
    return mmap(at, length, protection, flags, file, offset);
}

/* Length. */

int ftruncate(int file, off_t length) {
    char path[LONGEST];
    if (!is_seen(file, path) || is_ledger(path)) return HIDDEN(ftruncate)(file, length);
    return ATTEMPT(int, 't', path, HIDDEN(ftruncate)(file, length),
                   note(TRUNCATED, number_of(file), length, NULL, NULL, NULL, 0));
}

int ftruncate64(int file, off64_t length) { return ftruncate(file, length); }

int truncate(const char *name, off_t length) {
    char path[LONGEST];
    path_at(AT_FDCWD, name, path);
    if (is_watched(path)) strange("a truncation by name", path);
    return HIDDEN(truncate)(name, length);
}

int truncate64(const char *name, off64_t length) { return truncate(name, length); }

int fallocate(int file, int mode, off_t at, off_t length) {
    char path[LONGEST];
    if (!is_seen(file, path) || is_ledger(path)) return HIDDEN(fallocate)(file, mode, at, length);
    if (mode) strange("room that is given back", path);
    return ATTEMPT(int, 't', path, HIDDEN(fallocate)(file, mode, at, length), {
        struct stat status;
        if (!fstat(file, &status)) note(TRUNCATED, status.st_ino, status.st_size, NULL, NULL, NULL, 0);
    });
}

int fallocate64(int file, int mode, off64_t at, off64_t length) { return fallocate(file, mode, at, length); }
int posix_fallocate(int file, off_t at, off_t length) { return fallocate(file, 0, at, length) ? errno : 0; }
int posix_fallocate64(int file, off64_t at, off64_t length) { return posix_fallocate(file, at, length); }

/* Syncs. A failed one is noted: what it should have written stays in memory alone. */

static int sync_of(int file, const char *path, int (*sync)(int)) {
    struct stat status;
    if (fstat(file, &status)) return -1;
    int is_directory = S_ISDIR(status.st_mode), done = -1;
    pthread_mutex_lock(&order);
    enum fate fate = fate_of(is_directory ? 'd' : 's', path, 0);
    if (fate != REFUSE) done = sync(file);
    int kept = errno;
    if (is_directory) note(done ? DIRECTORY_SYNC_FAILED : DIRECTORY_SYNCED, 0, 0, path, NULL, NULL, 0);
    else note(done ? SYNC_FAILED : SYNCED, status.st_ino, 0, NULL, NULL, NULL, 0);
    end_as(fate);
    errno = kept;
    pthread_mutex_unlock(&order);
    return done;
}

int fsync(int file) {
    char path[LONGEST];
    if (!is_seen(file, path) || is_ledger(path)) return HIDDEN(fsync)(file);
    return sync_of(file, path, HIDDEN(fsync));
}

int fdatasync(int file) {
    char path[LONGEST];
    if (!is_seen(file, path) || is_ledger(path)) return HIDDEN(fdatasync)(file);
    return sync_of(file, path, HIDDEN(fdatasync));
}

/* This one promises nothing after a power cut: it counts as an operation that may fail, and as no sync. */
int sync_file_range(int file, off64_t at, off64_t length, unsigned flags) {
    char path[LONGEST];
    if (!is_seen(file, path)) return HIDDEN(sync_file_range)(file, at, length, flags);
    return ATTEMPT(int, 's', path, HIDDEN(sync_file_range)(file, at, length, flags), (void)0);
}

/* Names. */

static int rename_at(int from, const char *old, int to, const char *new, unsigned flags) {
    char one[LONGEST], two[LONGEST];
    path_at(from, old, one);
    path_at(to, new, two);
    if (!is_watched(one) && !is_watched(two)) return HIDDEN(renameat2)(from, old, to, new, flags);
    if (flags & ~1u) strange("an exchange of names", one);
    return ATTEMPT(int, 'r', two, HIDDEN(renameat2)(from, old, to, new, flags),
                   note(RENAMED, 0, 0, one, two, NULL, 0));
}

int rename(const char *old, const char *new) { return rename_at(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return rename_at(from, old, to, new, 0); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return rename_at(from, old, to, new, flags);
}

int unlinkat(int directory, const char *name, int flags) {
    char path[LONGEST];
    path_at(directory, name, path);
    if (!is_watched(path)) return HIDDEN(unlinkat)(directory, name, flags);
    enum note what = flags & AT_REMOVEDIR ? DIRECTORY_REMOVED : UNLINKED;
    return ATTEMPT(int, 'u', path, HIDDEN(unlinkat)(directory, name, flags), note(what, 0, 0, path, NULL, NULL, 0));
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int directory, const char *name, mode_t mode) {
    char path[LONGEST];
    path_at(directory, name, path);
    if (!is_watched(path)) return HIDDEN(mkdirat)(directory, name, mode);
    return ATTEMPT(int, 'm', path, HIDDEN(mkdirat)(directory, name, mode),
                   note(DIRECTORY_MADE, 0, 0, path, NULL, NULL, 0));
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    char path[LONGEST];
    path_at(to, new, path);
    if (is_watched(path)) strange("a second name", path);
    return HIDDEN(linkat)(from, old, to, new, flags);
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int symlinkat(const char *target, int directory, const char *name) {
    char path[LONGEST];
    path_at(directory, name, path);
    if (is_watched(path)) strange("a link", path);
    return HIDDEN(symlinkat)(target, directory, name);
}

int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }

/* Reading: it may fail, and leaves no note. */

static int read_fails(int file) {
    char path[LONGEST];
    if (how == NOTHING && list < 0) return 0;
    if (!strchr(letters, 'g') || !is_seen(file, path) || is_ledger(path)) return 0;
    pthread_mutex_lock(&order);
    enum fate fate = fate_of('g', path, 0);
    end_as(fate);
    pthread_mutex_unlock(&order);
    return fate == REFUSE;
}

ssize_t read(int file, void *bytes, size_t length) { return read_fails(file) ? -1 : HIDDEN(read)(file, bytes, length); }

ssize_t pread(int file, void *bytes, size_t length, off_t at) {
    return read_fails(file) ? -1 : HIDDEN(pread)(file, bytes, length, at);
}

ssize_t pread64(int file, void *bytes, size_t length, off64_t at) { return pread(file, bytes, length, at); }

ssize_t readv(int file, const struct iovec *parts, int count) {
    return read_fails(file) ? -1 : HIDDEN(readv)(file, parts, count);
}

ssize_t preadv(int file, const struct iovec *parts, int count, off_t at) {
    return read_fails(file) ? -1 : HIDDEN(preadv)(file, parts, count, at);
}

ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t at) { return preadv(file, parts, count, at); }
