/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files by the names that the links in /proc/PID/fd have: proc_pid_fd(5). Nothing here follows
 * a link: a stat of a file on a dead NFS server would never return, and root may not even look at
 * one that is exported with root_squash. */
#include "source/proc_place.h"

#include "base/map.h"
#include "base/pattern.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

enum { LEAST_SLOTS = 1024 };

struct proc_files {
    const struct pattern *scratch;
    uint64_t descriptors;
    size_t n_looked_at;
    bool has_too_many, has_found;
    uint64_t *slots; /* hashes of names; 0: free */
    size_t n_slots;  /* a power of two */
    size_t n;
};

struct proc_files *proc_files_new(const struct pattern *scratch)
{
    struct proc_files *files = heap_alloc(sizeof(*files));

    files->scratch = scratch;
    files->n_slots = LEAST_SLOTS;
    files->slots = heap_alloc(files->n_slots * sizeof(*files->slots));
    return files;
}

struct proc_files *proc_files_free(struct proc_files *files)
{
    if (files) {
        free(files->slots);
        free(files);
    }
    return NULL;
}

void proc_files_begin(struct proc_files *files)
{
    /* Half of it each time, so that jobs of about the same size need not grow it again. */
    if (files->n_slots > LEAST_SLOTS && files->n < files->n_slots / 8) {
        files->n_slots /= 2;
        files->slots = heap_resize(files->slots, files->n_slots, sizeof(*files->slots));
    }
    memset(files->slots, 0, files->n_slots * sizeof(*files->slots));
    files->descriptors = files->n = files->n_looked_at = 0;
    files->has_too_many = files->has_found = false;
}

static void put(struct proc_files *files, uint64_t hash)
{
    size_t mask = files->n_slots - 1, i = hash & mask;

    while (files->slots[i] && files->slots[i] != hash)
        i = (i + 1) & mask;
    files->n += !files->slots[i];
    files->slots[i] = hash;
}

static void grow(struct proc_files *files)
{
    uint64_t *old = files->slots;
    size_t n_old = files->n_slots;

    files->n_slots *= 2;
    files->slots = heap_alloc(files->n_slots * sizeof(*files->slots));
    files->n = 0;
    for (size_t i = 0; i < n_old; i++)
        if (old[i])
            put(files, old[i]);
    free(old);
}

/* Whether it is a regular file, as far as a name tells. A pipe, a socket and what has no inode of
 * its own ("pipe:[7]", "anon_inode:[eventpoll]") begin otherwise than with a slash. A directory and
 * a FIFO cannot be told from a file: they count. A name that ends in " (deleted)" is still a file.
 */
static bool is_regular(struct str name)
{
    static const struct str others[] = {
        STR_INIT("/dev/"),   STR_INIT("/proc/"),   STR_INIT("/sys/"),
        STR_INIT("/memfd:"), STR_INIT("/dmabuf:"),
    };
    /* These are memory, but have names, and several processes open one and the same. */
    static const struct str shared[] = { STR_INIT("/dev/shm/"), STR_INIT("/dev/hugepages/") };
    /* What nearly every process has open, in a chroot too. */
    static const struct str devices[] = { STR_INIT("/dev/null"), STR_INIT("/dev/zero"),
                                          STR_INIT("/dev/urandom"), STR_INIT("/dev/tty") };

    if (name.n < 2 || name.p[0] != '/')
        return false;
    for (size_t i = 0; i < COUNT(shared); i++)
        if (str_starts(name, shared[i]))
            return true;
    for (size_t i = 0; i < COUNT(others); i++)
        if (str_starts(name, others[i]))
            return false;
    for (size_t i = 0; i < COUNT(devices); i++)
        if (str_ends(name, devices[i]))
            return false;
    return true;
}

static void add_name(struct proc_files *files, struct str name)
{
    uint64_t hash;

    if (!is_regular(name))
        return;
    if (files->scratch && !files->has_found)
        files->has_found = pattern_finds(files->scratch, name);
    if (files->n + 1 > files->n_slots / 4 * 3)
        grow(files);
    hash = map_hash(name);
    put(files, hash ? hash : 1);
}

struct descriptors {
    struct proc_files *files;
    int directory;
    bool is_counted; /* by the kernel, as size of the directory: since 6.2 */
    uint64_t n;
};

/* Past the ceiling: returns other than 0 when nothing more need be listed. */
static int count_rest(struct descriptors *all)
{
    struct stat about;

    all->files->has_too_many = true;
    if (!all->is_counted || fstat(all->directory, &about) < 0 || about.st_size <= 0)
        return 0;
    all->n = (uint64_t)about.st_size;
    return 1;
}

static int add_descriptor(void *ctx, const char *number)
{
    struct descriptors *all = ctx;
    struct proc_files *files = all->files;
    char name[PATH_MAX];
    ssize_t n;

    all->n++;
    if (files->n_looked_at == PROC_FILES_MAX)
        return count_rest(all);
    files->n_looked_at++;
    n = readlinkat(all->directory, number, name, sizeof(name));
    if (n < 0)
        return errno == EACCES || errno == EPERM ? -EACCES : 0; /* else it was just closed */
    add_name(files, (struct str){ name, (size_t)n });
    return 0;
}

int proc_files_add(struct proc_files *files, struct proc *proc, pid_t pid)
{
    struct descriptors all = { .files = files, .is_counted = !proc->is_recorded };
    char path[PROC_PATH];
    int code;

    all.directory =
        openat(proc->fd, proc_path(path, pid, "fd"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (all.directory < 0)
        return proc_failure(proc, pid, -errno);
    code = proc_each_name(all.directory, add_descriptor, &all);
    close(all.directory);
    files->descriptors += all.n;
    return code < 0 ? proc_failure(proc, pid, code) : 0;
}

uint64_t proc_files_descriptors(const struct proc_files *files)
{
    return files->descriptors;
}

uint64_t proc_files_distinct(const struct proc_files *files)
{
    return files->has_too_many ? MODEL_UNKNOWN_U64 : files->n;
}

bool proc_files_found(const struct proc_files *files)
{
    return files->has_found;
}
