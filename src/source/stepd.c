/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognizes slurmstepd processes and reads their step. */
#include "source/stepd.h"

#include "source/proc_place.h"

#include <fcntl.h>

enum {
    MOST_ANCESTORS = 64,
    MOST_SOCKETS = 64,           /* of one slurmstepd: it has two or three */
    MOST_SOCKET_TEXT = 16 << 20, /* of all on the host */
};

/* "slurmstepd", or with Debian's ending "slurmstepd-wlm"; replaced by an upgrade, "… (deleted)". */
static bool is_name(struct str s)
{
    const struct str name = STR("slurmstepd");

    return str_starts(s, name) && (s.n == name.n || s.p[name.n] == '-');
}

static bool is_program(struct str path)
{
    const struct str deleted = STR(" (deleted)");
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;

    if (!slash)
        return false;
    path = str_skip(path, (size_t)(slash - path.p) + 1);
    if (str_ends(path, deleted))
        path.n -= deleted.n;
    return is_name(path);
}

static bool has_program(struct proc *proc, pid_t pid)
{
    struct proc_stat stat;
    struct str path;
    int code = proc_link(proc, pid, "exe", &path);

    if (code == 0)
        return is_program(path);
    /* Without CAP_SYS_PTRACE, the name of what was started must do. */
    return (code == -EACCES || code == -EPERM) && proc_stat(proc, pid, &stat) &&
           is_name(str_of(stat.comm));
}

/* Its effective user is the job's while it opens the job's files, so that one does not count. The
 * other two cannot be had by starting a set-uid program: the real one would still be the user's. */
static bool has_user(struct proc *proc, pid_t pid, uint32_t uid)
{
    struct proc_uids uids;

    return proc_uids(proc, pid, &uids) && uids.real == uid && uids.saved == uid;
}

static bool is_word(struct str s, const char *marks)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!(c >= '0' && c <= '9') && !(marks && c >= 'a' && c <= 'z') &&
            !(marks && c && strchr(marks, c)))
            return false;
    }
    return s.n > 0 && s.n < USAGE_ID;
}

static void copy(char *to, struct str s)
{
    memcpy(to, s.p, s.n);
    to[s.n] = '\0';
}

bool stepd_title_parse(struct str title, struct stepd *ret)
{
    const struct str begin = STR("slurmstepd: [");
    struct str rest, job, step;

    title = str_trim(title);
    if (!str_starts(title, begin) || title.p[title.n - 1] != ']')
        return false;
    rest = str_skip(str_head(title, title.n - 1), begin.n);
    job = str_cut(&rest, '.');
    if (!rest.p)
        return false;
    step = str_cut(&rest, ' ');
    if (!is_word(job, NULL) || !is_word(step, "+"))
        return false;
    copy(ret->job, job);
    copy(ret->step, step);
    return true;
}

static bool read_title(struct proc *proc, pid_t pid, struct stepd *ret)
{
    char path[PROC_PATH];
    struct str text;

    return proc_slurp(proc, proc->fd, proc_path(path, pid, "cmdline"), &text) == 0 &&
           stepd_title_parse(str_head(text, str_find(text, '\0')), ret);
}

/* One that is about to become a task: between fork and exec, it is all that its parent is. */
static bool is_fork(struct proc *proc, pid_t parent, const struct stepd *child)
{
    struct stepd stepd;

    return has_program(proc, parent) && read_title(proc, parent, &stepd) &&
           strcmp(stepd.job, child->job) == 0 && strcmp(stepd.step, child->step) == 0;
}

bool stepd_socket_parse(struct str path, const char *job, struct str *ret_node)
{
    const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
    char mark[USAGE_ID + 2];
    struct str name;
    size_t at;

    if (!slash)
        return false;
    name = str_skip(path, (size_t)(slash - path.p) + 1);
    snprintf(mark, sizeof(mark), "_%s.", job);
    at = str_find_str(name, str_of(mark));
    if (at == 0 || at == name.n || at >= USAGE_NODE)
        return false;
    *ret_node = str_head(name, at);
    return true;
}

/* The sockets of a slurmstepd, by inode. */
struct sockets {
    struct proc *proc;
    pid_t pid;
    uint64_t inode[MOST_SOCKETS];
    size_t n;
};

static int add_socket(void *ctx, const char *number)
{
    const struct str begin = STR("socket:[");
    struct sockets *sockets = ctx;
    char name[PROC_PATH];
    struct str link;

    snprintf(name, sizeof(name), "fd/%s", number);
    if (proc_link(sockets->proc, sockets->pid, name, &link) < 0 || !str_starts(link, begin))
        return 0;
    link = str_skip(link, begin.n);
    sockets->n += num_get_u64(str_cut(&link, ']'), &sockets->inode[sockets->n]);
    return sockets->n == MOST_SOCKETS;
}

static void find_sockets(struct sockets *sockets)
{
    char path[PROC_PATH];
    int fd = openat(sockets->proc->fd, proc_path(path, sockets->pid, "fd"),
                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    proc_each_name(fd, add_socket, sockets);
    close(fd);
}

/* "0000000000000000: 00000002 00000000 00010000 0001 01 18275177 /var/spool/slurmd/c1_123.0". A
 * user's socket may have any path, but not be this process's. */
static bool read_socket(const struct sockets *sockets, struct str line, const char *job,
                        struct str *ret_node)
{
    struct str inode_text = { 0 };
    uint64_t inode;

    for (int i = 0; i < 7; i++) {
        while (line.n && line.p[0] == ' ')
            line = str_skip(line, 1);
        inode_text = str_cut(&line, ' ');
        if (!line.p)
            return false;
    }
    if (!num_get_u64(inode_text, &inode) || !stepd_socket_parse(line, job, ret_node))
        return false;
    for (size_t i = 0; i < sockets->n; i++)
        if (sockets->inode[i] == inode)
            return true;
    return false;
}

/* Reads the table of sockets in pieces; a line that is cut off goes into the next one. */
static bool search_sockets(const struct sockets *sockets, int fd, const char *job, char *ret)
{
    char *text = sockets->proc->text;
    size_t size = sizeof(sockets->proc->text), kept = 0;
    ssize_t n;

    for (size_t total = 0; total < MOST_SOCKET_TEXT; total += (size_t)n) {
        struct str rest, node;

        n = read(fd, text + kept, size - kept);
        if (n <= 0)
            return false;
        rest = (struct str){ text, kept + (size_t)n };
        for (size_t end; (end = str_find(rest, '\n')) < rest.n; rest = str_skip(rest, end + 1))
            if (read_socket(sockets, str_head(rest, end), job, &node)) {
                copy(ret, node);
                return true;
            }
        kept = rest.n < size ? rest.n : 0;
        memmove(text, rest.p, kept);
    }
    return false;
}

static void find_node(struct proc *proc, struct stepd *stepd)
{
    struct sockets sockets = { .proc = proc, .pid = stepd->pid };
    char path[PROC_PATH];
    int fd;

    stepd->node[0] = '\0';
    find_sockets(&sockets);
    if (!sockets.n)
        return;
    fd = openat(proc->fd, proc_path(path, stepd->pid, "net/unix"), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    search_sockets(&sockets, fd, stepd->job, stepd->node);
    close(fd);
}

bool stepd_read(struct proc *proc, pid_t pid, uint32_t slurmd_uid, struct stepd *ret)
{
    struct stepd stepd = { .pid = pid };
    struct proc_stat stat, again;

    if (!has_program(proc, pid) || !proc_stat(proc, pid, &stat) ||
        !has_user(proc, pid, slurmd_uid) || !read_title(proc, pid, &stepd) ||
        is_fork(proc, stat.parent, &stepd))
        return false;
    stepd.start_ticks = stat.start_ticks;
    find_node(proc, &stepd);
    /* Its number may have become another's, who has a title to his liking. */
    if (!proc_stat(proc, pid, &again) || again.start_ticks != stat.start_ticks)
        return false;
    *ret = stepd;
    return true;
}

bool stepd_above(struct proc *proc, pid_t pid, uint32_t slurmd_uid, struct stepd *ret)
{
    struct proc_stat stat;

    for (int i = 0; i < MOST_ANCESTORS && proc_stat(proc, pid, &stat) && stat.parent > 1; i++) {
        pid = stat.parent;
        if (stepd_read(proc, pid, slurmd_uid, ret))
            return true;
    }
    return false;
}

int stepds_find(struct proc *proc, uint32_t slurmd_uid, struct stepds *ret, struct err *err)
{
    int code;

    proc->pids.n = ret->n = 0;
    code = proc_all(proc, &proc->pids, err);
    for (size_t i = 0; i < proc->pids.n && code == 0; i++) {
        ret->item = heap_grow(ret->item, ret->n, &ret->room, sizeof(*ret->item));
        if (stepd_read(proc, proc->pids.pid[i], slurmd_uid, &ret->item[ret->n]))
            ret->n++;
    }
    return code;
}
