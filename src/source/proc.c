/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists processes and reads their numbers below /proc. */
#include "source/proc_place.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

int proc_open(const char *path, struct proc **ret, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs about;
    struct proc *proc;

    if (fd < 0)
        return err_set(err, errno, "cannot read %s: %s", path, err_words(errno));
    proc = heap_alloc(sizeof(*proc));
    proc->fd = fd;
    proc->is_recorded = fstatfs(fd, &about) < 0 || about.f_type != PROC_SUPER_MAGIC;
    proc->units = (struct proc_units){
        .tick_ns = (uint64_t)(NS_PER_SEC / sysconf(_SC_CLK_TCK)),
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
    };
    *ret = proc;
    return 0;
}

struct proc *proc_close(struct proc *proc)
{
    if (proc) {
        close(proc->fd);
        free(proc->kin);
        free(proc->pids.pid);
        free(proc);
    }
    return NULL;
}

int proc_slurp(struct proc *proc, int directory, const char *path, struct str *ret)
{
    int fd = openat(directory, path, O_RDONLY | O_CLOEXEC), code = 0;
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, proc->text, sizeof(proc->text));
    if (n < 0)
        code = -errno;
    else
        *ret = (struct str){ proc->text, (size_t)n };
    close(fd);
    return code;
}

int proc_link(struct proc *proc, pid_t pid, const char *name, struct str *ret)
{
    char path[PROC_PATH];
    ssize_t n = readlinkat(proc->fd, proc_path(path, pid, name), proc->text, sizeof(proc->text));

    if (n < 0)
        return -errno;
    *ret = (struct str){ proc->text, (size_t)n };
    return 0;
}

bool proc_lives(const struct proc *proc, pid_t pid)
{
    char path[PROC_PATH];

    return faccessat(proc->fd, proc_path(path, pid, ""), F_OK, 0) == 0;
}

int proc_failure(const struct proc *proc, pid_t pid, int code)
{
    if (code == -EPERM) /* of hidepid=1 */
        return -EACCES;
    if (code == -ENOENT && !proc_lives(proc, pid))
        return -ESRCH;
    return code;
}

bool proc_pid_of(struct str name, pid_t *ret)
{
    uint64_t pid;

    if (!num_get_u64(name, &pid) || pid == 0 || pid > INT_MAX)
        return false;
    *ret = (pid_t)pid;
    return true;
}

int proc_each_name(int directory, int (*visit)(void *ctx, const char *name), void *ctx)
{
    /* A name takes 24 bytes: large enough for most directories at once. */
    _Alignas(struct dirent64) char entries[4096];
    ssize_t n;

    while ((n = getdents64(directory, entries, sizeof(entries))) > 0)
        for (ssize_t i = 0; i < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + i);
            int code = entry->d_name[0] == '.' ? 0 : visit(ctx, entry->d_name);

            if (code)
                return code;
            i += entry->d_reclen;
        }
    return n < 0 ? -errno : 0;
}

static bool has_capability(unsigned capability)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capget, &head, sets) == 0 && (sets[0].effective >> capability & 1);
}

/* /proc/1 is there for everybody unless hidepid hides it. What may be read of it says little of
 * others: it may have rights that not even root has. */
enum proc_sight proc_sight(struct proc *proc)
{
    struct str text;

    if (proc->is_recorded)
        return PROC_READS_ALL;
    if (proc_slurp(proc, proc->fd, "1/stat", &text) < 0)
        return PROC_SEES_OWN;
    return has_capability(CAP_SYS_PTRACE) &&
                   (has_capability(CAP_DAC_READ_SEARCH) || has_capability(CAP_DAC_OVERRIDE))
               ? PROC_READS_ALL
               : PROC_SEES_ALL;
}

bool proc_stat(struct proc *proc, pid_t pid, struct proc_stat *ret)
{
    char path[PROC_PATH];
    struct str text;

    if (proc_slurp(proc, proc->fd, proc_path(path, pid, "stat"), &text) < 0 ||
        !proc_stat_parse(text, &proc->units, ret))
        return false;
    ret->pid = pid;
    return true;
}

static int read_io(struct proc *proc, int directory, const char *path, struct io_use *ret)
{
    struct str text;
    int code = proc_slurp(proc, directory, path, &text);

    if (code < 0)
        return code;
    return proc_io_parse(text, ret) ? 0 : -EBADMSG;
}

int proc_io(struct proc *proc, pid_t pid, struct io_use *ret)
{
    char path[PROC_PATH];
    int code = read_io(proc, proc->fd, proc_path(path, pid, "io"), ret);

    return code < 0 ? proc_failure(proc, pid, code) : 0;
}

int proc_io_of_thread(struct proc *proc, pid_t pid, pid_t thread, struct io_use *ret)
{
    char path[PROC_PATH], name[PROC_PATH] = "task/";
    int code;

    proc_path(name + strlen(name), thread, "io");
    code = read_io(proc, proc->fd, proc_path(path, pid, name), ret);
    return code < 0 ? proc_failure(proc, pid, code) : 0;
}

struct thread_sum {
    struct proc *proc;
    int directory;
    pid_t ended; /* the main thread, if it is a zombie */
    size_t n;
    struct io_use use;
    struct io_use *exiting; /* NULL: nobody wants to know */
};

/* Or has gone. */
static bool is_exiting(const struct thread_sum *sum, pid_t thread)
{
    char path[PROC_PATH];
    struct proc_stat stat;
    struct str text;

    return proc_slurp(sum->proc, sum->directory, proc_path(path, thread, "stat"), &text) < 0 ||
           !proc_stat_parse(text, &sum->proc->units, &stat) || stat.is_exiting;
}

static int add_thread(void *ctx, const char *name)
{
    struct thread_sum *sum = ctx;
    char path[PROC_PATH];
    struct io_use use;
    pid_t thread;
    int code;

    if (!proc_pid_of(str_of(name), &thread) || thread == sum->ended)
        return 0;
    if (sum->n++ == PROC_THREADS_MAX)
        return -EFBIG;
    code = read_io(sum->proc, sum->directory, proc_path(path, thread, "io"), &use);
    /* It has ended meanwhile. */
    if (code == -ENOENT || code == -ESRCH)
        return 0;
    if (code < 0)
        return code;
    io_add(&sum->use, &use);
    /* Most threads of most programs leave I/O to others: they need not cost another file. */
    if (sum->exiting && !io_is_none(&use) && is_exiting(sum, thread))
        io_add(sum->exiting, &use);
    return 0;
}

int proc_io_of_threads(struct proc *proc, pid_t pid, struct io_use *ret, struct io_use *exiting)
{
    struct thread_sum sum = { .proc = proc, .exiting = exiting };
    struct proc_stat stat;
    char path[PROC_PATH];
    int code;

    if (exiting)
        *exiting = (struct io_use){ 0 };
    if (!proc_stat(proc, pid, &stat))
        return -ESRCH;
    if (stat.state == 'Z' || stat.state == 'X')
        sum.ended = pid;
    sum.directory =
        openat(proc->fd, proc_path(path, pid, "task"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sum.directory < 0)
        return proc_failure(proc, pid, -errno);
    code = proc_each_name(sum.directory, add_thread, &sum);
    close(sum.directory);
    if (code < 0)
        return proc_failure(proc, pid, code);
    *ret = sum.use;
    return 0;
}

bool proc_uids(struct proc *proc, pid_t pid, struct proc_uids *ret)
{
    char path[PROC_PATH];
    struct str text;

    return proc_slurp(proc, proc->fd, proc_path(path, pid, "status"), &text) == 0 &&
           proc_uids_parse(text, ret);
}

bool proc_uid(struct proc *proc, pid_t pid, uint32_t *ret)
{
    struct proc_uids uids;

    if (!proc_uids(proc, pid, &uids))
        return false;
    *ret = uids.real;
    return true;
}

int proc_environ(struct proc *proc, pid_t pid, struct proc_variable *variables, size_t n)
{
    struct environ_scan scan;
    char path[PROC_PATH];
    bool is_any = false, is_empty = true;
    ssize_t got = 0;
    int fd;

    environ_begin(&scan, variables, n);
    fd = openat(proc->fd, proc_path(path, pid, "environ"), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return proc_failure(proc, pid, -errno);
    for (size_t total = 0; total < PROC_ENVIRON_MAX; total += (size_t)got) {
        got = read(fd, proc->text, sizeof(proc->text));
        is_empty = is_empty && got == 0;
        /* Less than was asked for is the end of it. */
        if (got <= 0 || !environ_feed(&scan, (struct str){ proc->text, (size_t)got }) ||
            (size_t)got < sizeof(proc->text))
            break;
    }
    if (got < 0)
        got = -errno;
    close(fd);
    for (size_t i = 0; i < n; i++)
        is_any = is_any || !(scan.wanted >> i & 1);
    if (is_any)
        return 0;
    if (is_empty)
        return proc_failure(proc, pid, -EAGAIN);
    return got < 0 ? proc_failure(proc, pid, (int)got) : -ENOENT;
}

bool proc_cgroup(struct proc *proc, pid_t pid, const char *controller, struct buf *ret)
{
    char path[PROC_PATH];
    struct str text;

    if (proc_slurp(proc, proc->fd, proc_path(path, pid, "cgroup"), &text) < 0 ||
        !proc_cgroup_parse(text, str_of(controller), &text))
        return false;
    buf_put(ret, text);
    return true;
}
