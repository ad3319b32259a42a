/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up what all descendants of a process use. */
#include "source/process_tree.h"

#include "base/clock.h"
#include "source/pid_list.h"
#include "source/proc.h"

#include <sys/resource.h>

enum { BLOCK_BYTES = 512 }; /* getrusage's unit, whatever the file system's */

static void add_process(struct proc *proc, pid_t pid, struct process_tree_sample *sample)
{
    struct proc_stat stat;
    struct io_use io;

    if (!proc_stat(proc, pid, &stat))
        return;
    sample->processes++;
    sample->threads += stat.threads;
    sample->resident_bytes += stat.resident_bytes;
    sample->used.cpu_ns += stat.cpu_ns + stat.reaped_cpu_ns;
    /* It may not be read (another user's, after sudo), or the kernel does not count. */
    if (proc_io(proc, pid, &io) < 0)
        return;
    sample->used.read_bytes += io.read_bytes;
    sample->used.write_bytes += io.write_bytes;
    sample->has_io = true;
}

/* From the ancestor down: who ends meanwhile is then missing for once, but never counted both by
 * himself and by who has waited for him. */
static int take(const struct process_tree *tree, struct proc *proc, struct process_tree_sample *ret,
                struct err *err)
{
    size_t most = tree->most ? tree->most : PROCESS_TREE_MOST;
    struct pid_list pids = { 0 };
    int code = proc_descendants(proc, tree->ancestor, most, &pids);

    if (code == 0) {
        *ret = (struct process_tree_sample){ 0 };
        tree->reaped(&ret->used);
        for (size_t i = 0; i < pids.n; i++)
            add_process(proc, pids.pid[i], ret);
    }
    free(pids.pid);
    if (code == -EFBIG)
        return err_set(err, EFBIG, "there are more than %zu processes, too many to look through",
                       most);
    return code < 0 ? err_set(err, -code, "cannot list processes: %s", err_words(-code)) : 0;
}

static int look_once(const struct process_tree *tree, struct process_tree_sample *ret,
                     struct err *err)
{
    struct proc *proc;
    int code = proc_open(tree->proc, &proc, err);

    if (code < 0)
        return code;
    code = take(tree, proc, ret, err);
    proc_close(proc);
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
