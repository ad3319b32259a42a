/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes there are, and who has started whom: proc(5), /proc/PID/stat and
 * task/TID/children. */
#include "source/proc_place.h"

#include <fcntl.h>

static int add_if_pid(void *ctx, const char *name)
{
    struct pid_list *to = ctx;
    pid_t pid;

    if (!proc_pid_of(str_of(name), &pid))
        return 0;
    if (to->n == PROC_PIDS_MAX)
        return -EFBIG;
    pid_list_add(to, pid);
    return 0;
}

int proc_all(struct proc *proc, struct pid_list *to, struct err *err)
{
    int code;

    if (lseek(proc->fd, 0, SEEK_SET) < 0)
        return err_set(err, errno, "cannot list processes: %s", err_words(errno));
    code = proc_each_name(proc->fd, add_if_pid, to);
    if (code == -EFBIG)
        return err_set(err, EFBIG, "there are more than %d processes, too many to look through",
                       PROC_PIDS_MAX);
    return code < 0 ? err_set(err, -code, "cannot list processes: %s", err_words(-code)) : 0;
}

struct children {
    int tasks; /* the directory of the parent's threads */
    struct pid_list *to;
    size_t max;
};

static int add_children_of_thread(void *ctx, const char *thread)
{
    struct children *children = ctx;
    char path[300];
    int fd, code;

    snprintf(path, sizeof(path), "%s/children", thread);
    fd = openat(children->tasks, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    code = pid_list_read(children->to, fd, children->max);
    close(fd);
    /* The thread may have ended. */
    return code == -EFBIG ? code : 0;
}

static int add_children(struct proc *proc, pid_t pid, struct pid_list *to, size_t max)
{
    struct children children = { .to = to, .max = max };
    char path[PROC_PATH];
    int code;

    children.tasks =
        openat(proc->fd, proc_path(path, pid, "task"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (children.tasks < 0)
        return 0;
    code = proc_each_name(children.tasks, add_children_of_thread, &children);
    close(children.tasks);
    return code == -EFBIG ? code : 0;
}

/* Reads of the descendants alone: on a node where each of a hundred tasks is looked after, nobody
 * should read of all its thousands of processes. */
static int walk_down(struct proc *proc, pid_t ancestor, size_t most, struct pid_list *to)
{
    size_t next = to->n, max = to->n + most;
    int code = add_children(proc, ancestor, to, max);

    while (next < to->n && !code)
        code = add_children(proc, to->pid[next++], to, max);
    return code;
}

static int by_parent(const void *a, const void *b)
{
    const struct proc_kin *left = a, *right = b;

    return (left->parent > right->parent) - (left->parent < right->parent);
}

/* Who started whom, of the whole host, in the order of the parents. */
static int list_kin(struct proc *proc, size_t most, size_t *ret_n)
{
    struct proc_stat stat;
    size_t n = 0;
    int code;

    proc->pids.n = 0;
    code = proc_all(proc, &proc->pids, NULL);
    if (code < 0)
        return code;
    if (proc->pids.n > most)
        return -EFBIG;
    for (size_t i = 0; i < proc->pids.n; i++) {
        proc->kin = heap_grow(proc->kin, n, &proc->kin_room, sizeof(*proc->kin));
        if (proc_stat(proc, proc->pids.pid[i], &stat))
            proc->kin[n++] = (struct proc_kin){ stat.pid, stat.parent };
    }
    if (n)
        qsort(proc->kin, n, sizeof(*proc->kin), by_parent);
    *ret_n = n;
    return 0;
}

/* The first of those with that parent, or the place where they would be. */
static size_t first_child(const struct proc_kin *kin, size_t n, pid_t parent)
{
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;

        if (kin[middle].parent < parent)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* For kernels without CONFIG_PROC_CHILDREN. */
static int search_all(struct proc *proc, pid_t ancestor, size_t most, struct pid_list *to)
{
    size_t n, next = to->n;
    pid_t parent = ancestor;
    int code = list_kin(proc, most, &n);

    while (!code) {
        const struct proc_kin *kin = proc->kin;

        for (size_t i = first_child(kin, n, parent); i < n && kin[i].parent == parent; i++)
            /* A number that was reused meanwhile may close a circle. */
            if (kin[i].pid != ancestor)
                pid_list_add(to, kin[i].pid);
        if (next == to->n)
            break;
        parent = to->pid[next++];
    }
    return code;
}

static bool lists_children(struct proc *proc, pid_t pid)
{
    char path[PROC_PATH], name[PROC_PATH] = "task/";

    proc_path(name + strlen(name), pid, "children");
    return faccessat(proc->fd, proc_path(path, pid, name), R_OK, 0) == 0;
}

int proc_descendants(struct proc *proc, pid_t ancestor, size_t most, struct pid_list *to)
{
    if (lists_children(proc, ancestor))
        return walk_down(proc, ancestor, most, to);
    if (!proc->is_recorded && !proc_lives(proc, ancestor))
        return -ESRCH;
    return search_all(proc, ancestor, most, to);
}
