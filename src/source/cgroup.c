/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the numbers of a cgroup from files that stay open. */
#include "source/cgroup.h"

#include "base/arena.h"
#include "source/cgroup_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    FIRST_READS = 4, /* in which what was absent is looked for again */
    SETTING_READS = 8,
    SMALL_FILE = 8192,
    LARGEST_FILE = 256 * 1024, /* the times of CGROUP_CORES */

    ABSENT = -1,  /* could not be opened: yet, perhaps */
    REFUSED = -2, /* not to be tried again */
    BRIEF = -3,   /* past the limit of open files: opened for each read */
};

struct cgroup {
    const struct cgroup_mounts *mounts;
    struct cgroup_kept *kept; /* NULL: of events, which most cgroups are read for, nothing is */
    const struct cgroup_file *files;
    struct quota *quota;
    uint64_t memory_limit_bytes, cpus; /* settings, when last looked at */
    char *path;                        /* NULL: all that was to be opened has been */
    unsigned wanted;
    uint32_t reads;
    bool has_gone, has_brief;
    int fd[]; /* of the wanted files that are no settings, in their order */
};

/* Room for what a file says: on the stack, and larger only for machines with many cores. */
struct page {
    char *p;
    size_t size;
    char small[SMALL_FILE];
};

static void page_init(struct page *page)
{
    page->p = page->small;
    page->size = sizeof(page->small);
}

static void page_free(struct page *page)
{
    if (page->p != page->small)
        free(page->p);
}

static void page_grow(struct page *page)
{
    page_free(page);
    page->size *= 2;
    page->p = heap_array(page->size, 1);
}

/* The kernel makes the text anew at offset 0, and whole: what does not fill the page is all. */
static int read_text(int fd, struct page *page, struct str *ret)
{
    for (;;) {
        ssize_t n = pread(fd, page->p, page->size, 0);

        if (n < 0)
            return -errno;
        if ((size_t)n < page->size) {
            *ret = (struct str){ page->p, (size_t)n };
            return 0;
        }
        if (page->size >= LARGEST_FILE)
            return -EFBIG;
        page_grow(page);
    }
}

/* A descriptor, or -errno. */
static int open_file(const char *mount, struct str path, const char *name)
{
    char full[PATH_MAX];
    int fd;

    if (!mount[0] ||
        snprintf(full, sizeof(full), "%s/%.*s/%s", mount, STR_ARG(path), name) >= PATH_MAX)
        return -ENOENT;
    fd = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

static int open_row(const struct cgroup *cgroup, const struct cgroup_file *file)
{
    const struct cgroup_mounts *mounts = cgroup->mounts;

    return open_file(mounts->is_v2 ? mounts->unified : mounts->controller[file->controller],
                     str_of(cgroup->path), file->name);
}

static bool stays_open(const struct cgroup_file *file, unsigned wanted)
{
    return (file->wanted & wanted) && !file->is_setting;
}

static size_t count_open(const struct cgroup_file *file, unsigned wanted)
{
    size_t n = 0;

    for (; file->name; file++)
        n += stays_open(file, wanted);
    return n;
}

static bool lacks_descriptors(int code)
{
    return code == -EMFILE || code == -ENFILE;
}

/* A descriptor to keep, ABSENT or BRIEF. */
static int open_to_keep(struct cgroup *cgroup, const struct cgroup_file *file)
{
    int fd;

    if (!quota_take(cgroup->quota, 1))
        return BRIEF;
    fd = open_row(cgroup, file);
    if (fd < 0)
        quota_give(cgroup->quota, 1);
    return fd >= 0 ? fd : lacks_descriptors(fd) ? BRIEF : ABSENT;
}

static void open_files(struct cgroup *cgroup)
{
    int *fd = cgroup->fd;

    cgroup->has_brief = false;
    for (const struct cgroup_file *file = cgroup->files; file->name; file++) {
        if (!stays_open(file, cgroup->wanted))
            continue;
        if ((*fd == ABSENT && !(file->is_instead && fd[-1] >= 0)) || *fd == BRIEF)
            *fd = open_to_keep(cgroup, file);
        cgroup->has_brief |= *fd == BRIEF;
        fd++;
    }
}

static unsigned wanted_by(struct cgroup_wish wish)
{
    unsigned wanted = wish.cores ? CGROUP_WANT_CORES : 0;

    if (wish.only_events)
        return CGROUP_WANT_EVENTS;
    return wanted | (wish.details ? CGROUP_WANT_DETAILS : CGROUP_WANT_BASIC);
}

struct cgroup *cgroup_open(const struct cgroup_mounts *mounts, struct str path,
                           struct cgroup_wish wish)
{
    const struct cgroup_file *files = mounts->is_v2 ? cgroup_files_v2 : cgroup_files_v1;
    unsigned wanted = wanted_by(wish);
    size_t n = count_open(files, wanted);
    struct cgroup *cgroup = heap_alloc(sizeof(*cgroup) + n * sizeof(cgroup->fd[0]));

    cgroup->mounts = mounts;
    if (!wish.only_events) {
        cgroup->kept = heap_alloc(sizeof(*cgroup->kept));
        cgroup->kept->mounts = mounts;
    }
    cgroup->files = files;
    cgroup->quota = wish.files;
    cgroup->wanted = wanted;
    cgroup->memory_limit_bytes = cgroup->cpus = MODEL_UNKNOWN_U64;
    cgroup->path = heap_str(path);
    for (size_t i = 0; i < n; i++)
        cgroup->fd[i] = ABSENT;
    open_files(cgroup);
    return cgroup;
}

struct cgroup *cgroup_close(struct cgroup *cgroup)
{
    if (!cgroup)
        return NULL;
    for (size_t i = 0, n = count_open(cgroup->files, cgroup->wanted); i < n; i++) {
        if (cgroup->fd[i] < 0)
            continue;
        close(cgroup->fd[i]);
        quota_give(cgroup->quota, 1);
    }
    if (cgroup->kept)
        cgroup_kept_clear(cgroup->kept);
    free(cgroup->kept);
    free(cgroup->path);
    free(cgroup);
    return NULL;
}

/* ENODEV: its directory was removed. EOPNOTSUPP: the kernel was told not to measure pressure. */
static void give_up(struct cgroup *cgroup, int *fd, int code)
{
    if (code != -ENODEV && code != -EOPNOTSUPP)
        return;
    close(*fd);
    quota_give(cgroup->quota, 1);
    *fd = REFUSED;
    cgroup->has_gone |= code == -ENODEV;
}

/* Opens a file for one read; true if it could be read. */
static bool read_briefly(struct cgroup *cgroup, const struct cgroup_file *file, struct page *page,
                         struct cgroup_use *use)
{
    int fd = open_row(cgroup, file);
    struct str text;
    bool is_read = fd >= 0 && read_text(fd, page, &text) == 0;

    if (is_read)
        file->read(file, text, cgroup->kept, use);
    if (fd >= 0)
        close(fd);
    return is_read;
}

static bool read_kept(struct cgroup *cgroup, const struct cgroup_file *file, int *fd,
                      struct page *page, struct cgroup_use *use)
{
    struct str text;
    int code = read_text(*fd, page, &text);

    if (code == 0)
        file->read(file, text, cgroup->kept, use);
    else
        give_up(cgroup, fd, code);
    return code == 0;
}

/* How many could be read. */
static size_t read_files(struct cgroup *cgroup, struct page *page, struct cgroup_use *use)
{
    int *fd = cgroup->fd;
    bool is_read = false;
    size_t n = 0;

    for (const struct cgroup_file *file = cgroup->files; file->name; file++) {
        if (!stays_open(file, cgroup->wanted))
            continue;
        if (file->is_instead && is_read)
            is_read = false;
        else if (*fd >= 0)
            is_read = read_kept(cgroup, file, fd, page, use);
        else
            is_read = *fd == BRIEF && read_briefly(cgroup, file, page, use);
        n += is_read;
        fd++;
    }
    return n;
}

static void read_settings(struct cgroup *cgroup, struct page *page)
{
    struct cgroup_use use = { .memory_limit_bytes = cgroup->memory_limit_bytes,
                              .cpus = cgroup->cpus };

    for (const struct cgroup_file *file = cgroup->files; file->name; file++)
        if (file->is_setting && (file->wanted & cgroup->wanted))
            read_briefly(cgroup, file, page, &use);
    cgroup->memory_limit_bytes = use.memory_limit_bytes;
    cgroup->cpus = use.cpus;
}

static void show_settings(const struct cgroup *cgroup, struct cgroup_use *use)
{
    use->memory_limit_bytes = cgroup->memory_limit_bytes;
    use->cpus = cgroup->cpus;
    if (use->core_ns)
        use->core_set = cgroup->kept->core_set;
}

/* v1 measures the time itself, but how it is shared by user and system mode it only samples, at the
 * clock's ticks: their sum was seen 10 % off. The samples give the ratio, as in v2 and in
 * /proc/PID/stat (cputime_adjust in the kernel), and neither falls. */
static void share_cpu_time(struct cgroup_use *use, uint64_t user_before, uint64_t system_before)
{
    uint64_t user = use->cpu_user_ns, kernel = use->cpu_system_ns, all = use->cpu_ns;

    if (user == MODEL_UNKNOWN_U64 || kernel == MODEL_UNKNOWN_U64 || all == MODEL_UNKNOWN_U64)
        return;
    user = kernel ? (uint64_t)((long double)all * user / ((long double)user + kernel)) : all;
    if (user_before != MODEL_UNKNOWN_U64 && user < user_before)
        user = user_before;
    if (system_before != MODEL_UNKNOWN_U64 && all >= system_before && user > all - system_before)
        user = all - system_before;
    use->cpu_user_ns = user < all ? user : all;
    use->cpu_system_ns = all - use->cpu_user_ns;
}

int cgroup_read(struct cgroup *cgroup, struct cgroup_use *use)
{
    const uint64_t user_before = use->cpu_user_ns, system_before = use->cpu_system_ns;
    bool has_settings = cgroup->wanted & (CGROUP_WANT_DETAILS | CGROUP_WANT_CORES);
    bool is_early = cgroup->reads < FIRST_READS;
    bool is_turn = is_early || (has_settings && cgroup->reads % SETTING_READS == 0);
    struct page page;

    page_init(&page);
    if (cgroup->path && (is_turn || cgroup->has_brief))
        open_files(cgroup);
    if (read_files(cgroup, &page, use) == 0 && cgroup->has_gone) {
        page_free(&page);
        return -ENODEV;
    }
    if (cgroup->files == cgroup_files_v1)
        share_cpu_time(use, user_before, system_before);
    if (has_settings && is_turn)
        read_settings(cgroup, &page);
    if (has_settings) {
        show_settings(cgroup, use);
    } else if (!is_early && !cgroup->has_brief) {
        free(cgroup->path);
        cgroup->path = NULL;
    }
    page_free(&page);
    cgroup->reads++;
    return 0;
}

int cgroup_allows_device(const struct cgroup_mounts *mounts, struct str path, unsigned major,
                         unsigned minor)
{
    struct page page;
    struct str text;
    int fd =
        mounts->is_v2 ? -1 : open_file(mounts->controller[CGROUP_DEVICES], path, "devices.list");
    int answer = -1;

    if (fd < 0)
        return -1;
    page_init(&page);
    if (read_text(fd, &page, &text) == 0)
        answer = cgroup_device_list(text, major, minor);
    page_free(&page);
    close(fd);
    return answer;
}
