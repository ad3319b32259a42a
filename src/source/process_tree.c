/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/process_tree.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

enum {
    BLOCK_BYTES = 512,                    /* getrusage's unit, whatever the file system's */
    LONGEST_FILE = PROCESS_TREE_MOST * 8, /* a list of children */
    PIECE = 4096,
};

/* One look at all of it. */
struct look {
    DIR *proc;
    struct buf text; /* the file at hand */
    pid_t *pids;     /* parents before their children */
    size_t n_pids, n_room;
    struct err *err;
};

/* False if it cannot be read: most often, because the process has ended. */
static bool read_file(struct look *look, const char *path)
{
    int fd = openat(dirfd(look->proc), path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    char *room;

    if (fd < 0)
        return false;
    buf_reset(&look->text);
    while ((room = buf_room(&look->text, PIECE)) && (n = read(fd, room, PIECE)) > 0)
        look->text.n += (size_t)n;
    buf_end(&look->text);
    close(fd);
    return n == 0;
}

static bool get_pid(struct str text, pid_t *ret)
{
    uint64_t pid;

    if (!num_get_u64(text, &pid) || pid == 0 || pid > INT_MAX)
        return false;
    *ret = (pid_t)pid;
    return true;
}

static int add_pid(struct look *look, pid_t pid)
{
    if (look->n_pids == PROCESS_TREE_MOST)
        return err_set(look->err, EFBIG,
                       "there are more than %d processes, too many to look through",
                       PROCESS_TREE_MOST);
    look->pids = heap_grow(look->pids, look->n_pids, &look->n_room, sizeof(*look->pids));
    look->pids[look->n_pids++] = pid;
    return 0;
}

static int add_children_of_thread(struct look *look, pid_t pid, const char *thread)
{
    char path[320];
    int code = 0;

    snprintf(path, sizeof(path), "%d/task/%s/children", (int)pid, thread);
    if (!read_file(look, path))
        return 0;
    for (struct str rest = buf_str(&look->text); rest.p && !code;) {
        pid_t child;

        if (get_pid(str_cut(&rest, ' '), &child))
            code = add_pid(look, child);
    }
    return code;
}

static int add_children(struct look *look, pid_t pid)
{
    char path[32];
    int fd, code = 0;
    DIR *threads;

    snprintf(path, sizeof(path), "%d/task", (int)pid);
    fd = openat(dirfd(look->proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    threads = fd < 0 ? NULL : fdopendir(fd);
    if (!threads)
        return 0;
    for (struct dirent *entry; !code && (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            code = add_children_of_thread(look, pid, entry->d_name);
    closedir(threads);
    return code;
}

/* Reads of the descendants alone: on a node where each of a hundred tasks is looked after, nobody
 * should read of all its thousands of processes. */
static int walk_down(struct look *look, pid_t ancestor)
{
    int code = add_children(look, ancestor);

    for (size_t i = 0; i < look->n_pids && !code; i++)
        code = add_children(look, look->pids[i]);
    return code;
}

struct process {
    pid_t pid, parent;
    char state;
    uint64_t threads, cpu_ticks, resident_pages;
};

/* The second field is the program's name in parentheses, which may hold anything, parentheses
 * included: what follows the last one is the third. */
static struct str after_name(struct str stat)
{
    size_t n = stat.n;

    while (n && stat.p[n - 1] != ')')
        n--;
    return n ? str_skip(stat, n + 1) : STR("");
}

static bool read_stat(struct look *look, pid_t pid, struct process *ret)
{
    enum {
        PARENT = 4,
        UTIME = 14,
        STIME = 15,
        CUTIME = 16, /* of the children that it has waited for */
        CSTIME = 17,
        THREADS = 20,
        RSS = 24,
    };
    uint64_t fields[RSS + 1] = { 0 };
    struct str rest, state;
    char path[32];

    snprintf(path, sizeof(path), "%d/stat", (int)pid);
    if (!read_file(look, path))
        return false;
    rest = after_name(buf_str(&look->text));
    state = str_cut(&rest, ' ');
    if (state.n != 1)
        return false;
    for (int i = PARENT; i <= RSS; i++) {
        struct str field = rest.p ? str_cut(&rest, ' ') : STR("");

        /* Those that may be negative are not asked for. */
        if (!num_get_u64(field, &fields[i]) && (!field.n || field.p[0] != '-'))
            return false;
    }
    *ret = (struct process){
        .pid = pid,
        .parent = (pid_t)fields[PARENT],
        .state = state.p[0],
        .threads = fields[THREADS],
        .cpu_ticks = fields[UTIME] + fields[STIME] + fields[CUTIME] + fields[CSTIME],
        .resident_pages = fields[RSS],
    };
    return true;
}

static int by_parent(const void *a, const void *b)
{
    const struct process *left = a, *right = b;

    return (left->parent > right->parent) - (left->parent < right->parent);
}

static int list_all(struct look *look, struct process **ret, size_t *ret_n)
{
    struct process *all = NULL;
    size_t n = 0, n_room = 0;
    int code = 0;

    for (struct dirent *entry; !code && (entry = readdir(look->proc));) {
        pid_t pid;

        if (get_pid(str_of(entry->d_name), &pid))
            code = add_pid(look, pid);
    }
    for (size_t i = 0; i < look->n_pids && !code; i++) {
        all = heap_grow(all, n, &n_room, sizeof(*all));
        n += read_stat(look, look->pids[i], &all[n]);
    }
    if (n)
        qsort(all, n, sizeof(*all), by_parent);
    *ret = all;
    *ret_n = n;
    return code;
}

/* The first of those with that parent, or the place where they would be. */
static size_t first_child(const struct process *all, size_t n, pid_t parent)
{
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;

        if (all[middle].parent < parent)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* For kernels without CONFIG_PROC_CHILDREN. */
static int search_all(struct look *look, pid_t ancestor)
{
    struct process *all;
    size_t n;
    int code = list_all(look, &all, &n);
    pid_t parent = ancestor;

    look->n_pids = 0;
    for (size_t next = 0; !code; parent = look->pids[next++]) {
        for (size_t i = first_child(all, n, parent); i < n && all[i].parent == parent; i++)
            if (all[i].pid != ancestor && !code)
                code = add_pid(look, all[i].pid);
        if (next == look->n_pids)
            break;
    }
    free(all);
    return code;
}

static bool lists_children(struct look *look, pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "%d/task/%d/children", (int)pid, (int)pid);
    return faccessat(dirfd(look->proc), path, R_OK, 0) == 0;
}

/* False if it may not be read (another user's, after sudo) or the kernel does not count. */
static bool read_io(struct look *look, pid_t pid, struct process_use *use)
{
    uint64_t bytes[2];
    char path[32];
    int n = 0;

    snprintf(path, sizeof(path), "%d/io", (int)pid);
    if (!read_file(look, path))
        return false;
    for (struct str rest = buf_str(&look->text); rest.p;) {
        struct str value = str_cut(&rest, '\n'), key = str_cut(&value, ':');

        if (str_eq(key, STR("read_bytes")))
            n += num_get_u64(str_trim(value), &bytes[0]);
        else if (str_eq(key, STR("write_bytes")))
            n += num_get_u64(str_trim(value), &bytes[1]);
    }
    if (n != 2)
        return false;
    use->read_bytes += bytes[0];
    use->write_bytes += bytes[1];
    return true;
}

static void add_process(struct look *look, pid_t pid, struct process_tree_sample *sample)
{
    struct process process;

    if (!read_stat(look, pid, &process))
        return;
    sample->processes++;
    /* A zombie still counts as a thread of its own, unless others have outlived it. */
    sample->threads += process.threads - (process.state == 'Z' && process.threads);
    sample->resident_bytes += process.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    sample->used.cpu_ns += process.cpu_ticks * (uint64_t)(NS_PER_SEC / sysconf(_SC_CLK_TCK));
    if (read_io(look, pid, &sample->used))
        sample->has_io = true;
}

/* From the ancestor down: who ends meanwhile is then missing for once, but never counted both by
 * himself and by who has waited for him. */
static int take(struct look *look, const struct process_tree *tree, struct process_tree_sample *ret)
{
    int code = lists_children(look, tree->ancestor) ? walk_down(look, tree->ancestor)
                                                    : search_all(look, tree->ancestor);

    if (code < 0)
        return code;
    *ret = (struct process_tree_sample){ 0 };
    tree->reaped(&ret->used);
    for (size_t i = 0; i < look->n_pids; i++)
        add_process(look, look->pids[i], ret);
    return 0;
}

static int look_once(const struct process_tree *tree, struct process_tree_sample *ret,
                     struct err *err)
{
    struct look look = { .proc = opendir(tree->proc), .err = err };
    int code;

    if (!look.proc)
        return err_set(err, errno, "cannot read %s: %s", tree->proc, err_words(errno));
    buf_init(&look.text, LONGEST_FILE);
    code = take(&look, tree, ret);
    free(look.pids);
    buf_free(&look.text);
    closedir(look.proc);
    return code;
}

static bool has_fallen(const struct process_use *before, const struct process_use *now)
{
    return now->cpu_ns < before->cpu_ns || now->read_bytes < before->read_bytes ||
           now->write_bytes < before->write_bytes;
}

static void add_growth(uint64_t *total, uint64_t before, uint64_t now)
{
    if (now > before)
        *total += now - before;
}

int process_tree_read(struct process_tree *tree, struct process_tree_sample *ret, struct err *err)
{
    struct process_tree_sample sample;
    int code = look_once(tree, &sample, err);

    /* Who ended during the first look is found with his parent in the second. */
    if (code == 0 && has_fallen(&tree->seen, &sample.used))
        code = look_once(tree, &sample, err);
    if (code < 0)
        return code;
    add_growth(&tree->total.cpu_ns, tree->seen.cpu_ns, sample.used.cpu_ns);
    add_growth(&tree->total.read_bytes, tree->seen.read_bytes, sample.used.read_bytes);
    add_growth(&tree->total.write_bytes, tree->seen.write_bytes, sample.used.write_bytes);
    tree->seen = sample.used;
    tree->has_io = tree->has_io || sample.has_io;
    *ret = sample;
    ret->used = tree->total;
    ret->has_io = tree->has_io;
    return 0;
}

static uint64_t as_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * NS_PER_SEC + (uint64_t)time.tv_usec * 1000;
}

void process_reaped(struct process_use *ret)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    *ret = (struct process_use){
        .cpu_ns = as_ns(usage.ru_utime) + as_ns(usage.ru_stime),
        .read_bytes = (uint64_t)usage.ru_inblock * BLOCK_BYTES,
        .write_bytes = (uint64_t)usage.ru_oublock * BLOCK_BYTES,
    };
}
