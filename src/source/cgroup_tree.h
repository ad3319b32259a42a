/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directories of jobs in one cgroup hierarchy, kept up to date by inotify(7), which kernfs
 * serves for directories and for cgroup v2's cgroup.events. No walk is needed at a tick; one is
 * made at the start, after an overflow and now and then, for whatever was missed.
 *
 * A scope of v2 may lie anywhere below the mount, so all directories that can have one below them
 * are watched too. Directories that belong to another user than the mount do not count, scopes and
 * jobs neither, because he could make any. */
#ifndef SONDE_SOURCE_CGROUP_TREE_H
#define SONDE_SOURCE_CGROUP_TREE_H

#include "base/buf.h"
#include "source/cgroup_rows.h"
#include "source/pid_list.h"

/* One directory. Its owner may hang something on it. */
struct cgroup_dir {
    struct cgroup_dir *parent, *first_child, *next_sibling;
    const struct cgroup_row *row; /* as in the match that `entered` was told */
    enum cgroup_level level;
    uint32_t uid;
    void *owner; /* the tree's user's own */
    /* the rest is the tree's own */
    uint64_t inode;
    int watch, events_watch;
    uint32_t depth;    /* below the mount */
    uint32_t n_within; /* of a job: directories below it, as far as they count for its ceiling */
    bool has_subdirs;
    bool was_seen; /* by the walk under way */
    char name[];   /* of the topmost: the mount */
};

/* Any of these may be NULL. They must not call what changes the tree. */
struct cgroup_tree_events {
    /* parents first; job levels and deeper */
    void (*entered)(void *ctx, struct cgroup_dir *dir, const struct cgroup_match *match);
    void (*left)(void *ctx, struct cgroup_dir *dir); /* children first; dir is freed afterwards */
    void (*changed)(void *ctx, struct cgroup_dir *dir); /* v2: CGROUP_STEP_USER has become empty or
                                                         * is no longer */
    void *ctx;
};

struct cgroup_tree;

enum {
    CGROUP_TREE_DIRS = 65536,  /* more are left out and counted; the last quarter is kept for jobs
                                * and steps, so that none can shut others out */
    CGROUP_JOB_DIRS = 4096,    /* likewise, in one job */
    CGROUP_JOB_DEPTH = 32,     /* likewise, below a job's own */
    CGROUP_DIR_PIDS = 1 << 20, /* in one directory */
};

/* `mount` is where the hierarchy is ("/sys/fs/cgroup/freezer"); `rows` must outlive the tree. Walks
 * once. */
int cgroup_tree_new(const char *mount, bool is_v2, const struct cgroup_rows *rows,
                    const struct cgroup_tree_events *events, struct cgroup_tree **ret,
                    struct err *err);
struct cgroup_tree *cgroup_tree_free(struct cgroup_tree *tree); /* calls nobody; returns NULL */

int cgroup_tree_fd(const struct cgroup_tree *tree); /* readable: call cgroup_tree_read; -1: this
                                                     * user may have no more inotify instances, so
                                                     * walks must do */
void cgroup_tree_read(struct cgroup_tree *tree);    /* what has happened; never blocks, and leaves
                                                     * the rest of very much for the next call */
void cgroup_tree_walk(struct cgroup_tree *tree);    /* looks at everything again */

/* The path of a directory below the mount, appended. */
void cgroup_dir_path(const struct cgroup_dir *dir, struct buf *to);

/* The process ids in a directory, as they are now, appended to a growing array; -errno: -ENODEV
 * when it has gone, -EFBIG when there are more than CGROUP_DIR_PIDS (those are there). */
int cgroup_dir_pids(const struct cgroup_dir *dir, struct pid_list *to);

struct cgroup_tree_stats {
    size_t dirs;      /* that are watched over, those on the way to jobs too */
    size_t refused;   /* past a ceiling, in the last walk and since */
    size_t unwatched; /* of dirs: no inotify watch was left, so only a walk finds what is new */
    uint64_t walks, overflows;
};
void cgroup_tree_stats(const struct cgroup_tree *tree, struct cgroup_tree_stats *ret);

#endif
