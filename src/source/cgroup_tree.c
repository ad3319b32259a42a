/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows the directories of jobs in a cgroup hierarchy by inotify. */
#include "source/cgroup_tree.h"

#include "source/subdirs.h"
#include "source/watches.h"

#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum {
    ABOVE_DIRS = 4096, /* in which scopes are looked for */
    MOST_BATCHES = 16, /* of events in one call */
    LONGEST_PATH = PATH_MAX - 1 - (int)sizeof("/cgroup.events"), /* so that files in it fit too */
};

static const uint32_t directory_mask =
    IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE | IN_ONLYDIR | IN_DONT_FOLLOW;

struct cgroup_tree {
    const struct cgroup_rows *rows;
    struct cgroup_tree_events events;
    struct watches watches;
    struct cgroup_dir *root;
    uid_t uid; /* of the mount */
    bool is_v2;
    struct buf path; /* the one at hand */
    size_t n_above;
    struct cgroup_tree_stats stats;
};

void cgroup_dir_path(const struct cgroup_dir *dir, struct buf *to)
{
    if (!dir->parent)
        return;
    if (dir->parent->parent) {
        cgroup_dir_path(dir->parent, to);
        buf_byte(to, '/');
    }
    buf_text(to, dir->name);
}

static const struct cgroup_dir *root_of(const struct cgroup_dir *dir)
{
    while (dir->parent)
        dir = dir->parent;
    return dir;
}

/* The path of a file in it, or its own; they fit, because longer ones are refused. */
static const char *full_path(const struct cgroup_dir *dir, const char *file, struct buf *to)
{
    buf_reset(to);
    buf_text(to, root_of(dir)->name);
    buf_byte(to, '/');
    cgroup_dir_path(dir, to);
    if (file) {
        buf_byte(to, '/');
        buf_text(to, file);
    }
    return to->p;
}

static bool is_of_job(const struct cgroup_dir *dir)
{
    return dir->level >= CGROUP_JOB;
}

static struct cgroup_dir *job_of(struct cgroup_dir *dir)
{
    while (dir->level != CGROUP_JOB)
        dir = dir->parent;
    return dir;
}

/* Under v2, Slurm's jobs and steps have processes only in their innermost directories. */
static bool has_processes(const struct cgroup_dir *dir)
{
    if (dir->level < CGROUP_JOB)
        return false;
    return !dir->row->stepd || dir->level == CGROUP_TASK || dir->level == CGROUP_BELOW ||
           dir->level == CGROUP_STEPD;
}

/* False if it has gone. */
static bool watch(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    int number;

    if (dir->watch >= 0)
        return true;
    number = watches_add(&tree->watches, full_path(dir, NULL, &tree->path), directory_mask, dir);
    dir->watch = number < 0 ? -1 : number;
    return number != -ENOENT && number != -ENOTDIR;
}

static bool has_events(const struct cgroup_dir *dir)
{
    return dir->row && dir->row->is_v2 && dir->level == CGROUP_STEP_USER;
}

static void watch_events(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    int number;

    if (dir->events_watch >= 0 || !has_events(dir))
        return;
    number =
        watches_add(&tree->watches, full_path(dir, "cgroup.events", &tree->path), IN_MODIFY, dir);
    dir->events_watch = number < 0 ? -1 : number;
}

/* A directory has two links, and one for each directory in it. Where a file system does not count
 * them, it says 1. */
static void keep_status(struct cgroup_dir *dir, const struct stat *status)
{
    dir->inode = status->st_ino;
    dir->has_subdirs = status->st_nlink != 2;
}

static struct cgroup_dir *find_child(const struct cgroup_dir *dir, const char *name)
{
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        if (strcmp(child->name, name) == 0)
            return child;
    return NULL;
}

/* What no longer is. */

static void unlink_dir(struct cgroup_dir *dir)
{
    struct cgroup_dir **place;

    if (!dir->parent)
        return;
    for (place = &dir->parent->first_child; *place != dir;)
        place = &(*place)->next_sibling;
    *place = dir->next_sibling;
}

static void free_dir(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    watches_remove(&tree->watches, dir->watch);
    watches_remove(&tree->watches, dir->events_watch);
    free(dir);
}

static void remove_leaf(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    if (is_of_job(dir) && tree->events.left)
        tree->events.left(tree->events.ctx, dir);
    /* What a job makes and removes in a loop counts until the next walk. */
    if (dir->level > CGROUP_JOB && dir->level != CGROUP_BELOW)
        job_of(dir)->n_within--;
    tree->n_above -= dir->level == CGROUP_ABOVE;
    tree->stats.dirs--;
    unlink_dir(dir);
    free_dir(tree, dir);
}

/* With all that is in it, the innermost first. */
static void remove_dir(struct cgroup_tree *tree, struct cgroup_dir *top)
{
    struct cgroup_dir *dir;

    do {
        dir = top;
        while (dir->first_child)
            dir = dir->first_child;
        remove_leaf(tree, dir);
    } while (dir != top);
}

/* What is new. */

static bool is_past_ceiling(const struct cgroup_tree *tree, struct cgroup_dir *parent,
                            enum cgroup_level level)
{
    bool is_jobs_own = level == CGROUP_TASK || level == CGROUP_BELOW;
    struct cgroup_dir *job;

    if (tree->stats.dirs >= CGROUP_TREE_DIRS / 4 * (is_jobs_own ? 3 : 4))
        return true;
    if (level == CGROUP_ABOVE)
        return tree->n_above >= ABOVE_DIRS;
    if (level <= CGROUP_JOB)
        return false;
    job = job_of(parent);
    return job->n_within >= CGROUP_JOB_DIRS || parent->depth + 1 - job->depth > CGROUP_JOB_DEPTH;
}

/* The path of one that is not in the tree yet. */
static bool fits_path(struct cgroup_tree *tree, const struct cgroup_dir *dir)
{
    full_path(dir, NULL, &tree->path);
    return !tree->path.over && tree->path.n <= LONGEST_PATH;
}

static struct cgroup_dir *new_dir(struct cgroup_dir *parent, const char *name)
{
    size_t n = strlen(name) + 1;
    struct cgroup_dir *dir = heap_alloc(sizeof(*dir) + n);

    memcpy(dir->name, name, n);
    dir->parent = parent;
    dir->depth = parent ? parent->depth + 1 : 0;
    dir->watch = dir->events_watch = -1;
    return dir;
}

/* A place where somebody else could make scopes, or one that he has made. What he is given later,
 * only a walk finds; until then, what he makes in it is his. */
static bool is_foreign(const struct cgroup_tree *tree, const struct cgroup_dir *dir,
                       const struct stat *status)
{
    return dir->level <= CGROUP_JOB && status->st_uid != tree->uid;
}

/* Watches before it looks, so that nothing can come between. False if it has gone, or is foreign.
 */
static bool look_at_new(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    struct stat status;

    if (!watch(tree, dir) || lstat(full_path(dir, NULL, &tree->path), &status) < 0 ||
        is_foreign(tree, dir, &status))
        return false;
    keep_status(dir, &status);
    return true;
}

/* False if no row leads there, or past a ceiling. */
static bool is_wanted(struct cgroup_tree *tree, struct cgroup_dir *dir, struct cgroup_match *match)
{
    bool is_long = !fits_path(tree, dir);
    struct str path = str_skip(buf_str(&tree->path), strlen(tree->root->name) + 1);

    if (!is_long && !cgroup_rows_match(tree->rows, tree->is_v2, path, match))
        return false;
    dir->row = match->row;
    dir->level = match->level;
    dir->uid = match->uid;
    if (is_long || is_past_ceiling(tree, dir->parent, dir->level)) {
        tree->stats.refused++;
        return false;
    }
    return true;
}

/* As the first child, or after another. */
static void put_after(struct cgroup_dir *dir, struct cgroup_dir *before)
{
    struct cgroup_dir **place = before ? &before->next_sibling : &dir->parent->first_child;

    dir->next_sibling = *place;
    *place = dir;
}

static void link_dir(struct cgroup_tree *tree, struct cgroup_dir *dir, struct cgroup_dir *before)
{
    put_after(dir, before);
    dir->was_seen = true;
    tree->stats.dirs++;
    tree->n_above += dir->level == CGROUP_ABOVE;
    if (dir->level > CGROUP_JOB)
        job_of(dir)->n_within++;
}

/* NULL if it is not on the way to a job, past a ceiling, or has gone. */
static struct cgroup_dir *add_dir(struct cgroup_tree *tree, struct cgroup_dir *parent,
                                  const char *name, struct cgroup_dir *before)
{
    struct cgroup_dir *dir = new_dir(parent, name);
    struct cgroup_match match = { .level = CGROUP_ABOVE };

    if (!is_wanted(tree, dir, &match) || !look_at_new(tree, dir)) {
        free_dir(tree, dir);
        return NULL;
    }
    watch_events(tree, dir);
    link_dir(tree, dir, before);
    if (is_of_job(dir) && tree->events.entered)
        tree->events.entered(tree->events.ctx, dir, &match);
    return dir;
}

/* A known one is seen again: NULL if it has gone, or is another of the same name. */
static struct cgroup_dir *see_again(struct cgroup_tree *tree, struct cgroup_dir *dir, int parent_fd)
{
    struct stat status;

    watch(tree, dir);
    if (fstatat(parent_fd, dir->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
        status.st_ino != dir->inode || is_foreign(tree, dir, &status)) {
        remove_dir(tree, dir);
        return NULL;
    }
    keep_status(dir, &status);
    watch_events(tree, dir);
    dir->was_seen = true;
    return dir;
}

/* A directory that is being listed. */
struct listing {
    struct cgroup_tree *tree;
    struct cgroup_dir *dir, *last; /* last: the child that was listed last */
    int fd;
    bool is_first; /* no child was known before */
};

/* A directory is listed in the same order each time. The children are kept in it too, so that the
 * next is nearly always the one after the last. */
static struct cgroup_dir *find_next(const struct listing *listing, const char *name)
{
    struct cgroup_dir *last = listing->last;
    struct cgroup_dir *child = last ? last->next_sibling : listing->dir->first_child;

    if (child && strcmp(child->name, name) == 0)
        return child;
    child = listing->is_first ? NULL : find_child(listing->dir, name);
    if (child && !child->was_seen) {
        unlink_dir(child);
        put_after(child, last);
    }
    return child;
}

static void visit(void *ctx, const char *name)
{
    struct listing *listing = ctx;
    struct cgroup_dir *child = find_next(listing, name);

    if (child && child->was_seen)
        return;
    if (child)
        child = see_again(listing->tree, child, listing->fd);
    if (!child)
        child = add_dir(listing->tree, listing->dir, name, listing->last);
    if (child)
        listing->last = child;
}

static void remove_unseen(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    for (struct cgroup_dir *child = dir->first_child, *next; child; child = next) {
        next = child->next_sibling;
        if (!child->was_seen)
            remove_dir(tree, child);
    }
}

/* Its children, compared with what is there. */
static void look_into(struct cgroup_tree *tree, struct cgroup_dir *dir)
{
    struct listing listing = { .tree = tree, .dir = dir, .is_first = !dir->first_child };
    int code;

    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        child->was_seen = false;
    if (!dir->has_subdirs) {
        remove_unseen(tree, dir);
        return;
    }
    listing.fd =
        open(full_path(dir, NULL, &tree->path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    code = listing.fd < 0 ? -errno : subdirs_each(listing.fd, visit, &listing);
    if (listing.fd >= 0)
        close(listing.fd);
    /* Without a descriptor or memory, what was known holds until the next walk. */
    if (code == 0 || code == -ENOENT || code == -ENODEV)
        remove_unseen(tree, dir);
}

/* The one after it on the way through all below `top`, parents first. */
static struct cgroup_dir *next_below(const struct cgroup_dir *top, const struct cgroup_dir *dir)
{
    if (dir->first_child)
        return dir->first_child;
    while (dir != top && !dir->next_sibling)
        dir = dir->parent;
    return dir == top ? NULL : dir->next_sibling;
}

static void explore(struct cgroup_tree *tree, struct cgroup_dir *top)
{
    for (struct cgroup_dir *dir = top; dir; dir = next_below(top, dir))
        look_into(tree, dir);
}

/* Forgives what jobs have made and removed. */
static void count_within_jobs(struct cgroup_tree *tree)
{
    struct cgroup_dir *job = NULL;

    for (struct cgroup_dir *dir = tree->root; dir; dir = next_below(tree->root, dir)) {
        if (dir->level == CGROUP_JOB) {
            job = dir;
            job->n_within = 0;
        } else if (dir->level > CGROUP_JOB) {
            job->n_within++;
        }
    }
}

void cgroup_tree_walk(struct cgroup_tree *tree)
{
    tree->stats.walks++;
    tree->stats.refused = 0;
    count_within_jobs(tree);
    watch(tree, tree->root);
    explore(tree, tree->root);
}

int cgroup_tree_new(const char *mount, bool is_v2, const struct cgroup_rows *rows,
                    const struct cgroup_tree_events *events, struct cgroup_tree **ret,
                    struct err *err)
{
    struct cgroup_tree *tree;
    struct stat status;

    if (stat(mount, &status) < 0)
        return err_set(err, errno, "cannot look into the cgroups at %s: %s", mount,
                       err_words(errno));
    if (!S_ISDIR(status.st_mode))
        return err_set(err, ENOTDIR, "the cgroups cannot be at %s: it is not a directory", mount);
    tree = heap_alloc(sizeof(*tree));
    tree->rows = rows;
    tree->events = *events;
    tree->is_v2 = is_v2;
    tree->uid = status.st_uid;
    tree->root = new_dir(NULL, mount);
    tree->root->has_subdirs = true;
    tree->stats.dirs = tree->n_above = 1;
    buf_init(&tree->path, PATH_MAX - 1);
    watches_open(&tree->watches);
    cgroup_tree_walk(tree);
    *ret = tree;
    return 0;
}

struct cgroup_tree *cgroup_tree_free(struct cgroup_tree *tree)
{
    if (!tree)
        return NULL;
    tree->events = (struct cgroup_tree_events){ 0 };
    remove_dir(tree, tree->root);
    watches_close(&tree->watches);
    buf_free(&tree->path);
    free(tree);
    return NULL;
}

/* Events. One may tell of what a walk has seen meanwhile: what is there decides. */

static bool is_there(struct cgroup_tree *tree, const struct cgroup_dir *dir)
{
    struct stat status;

    return lstat(full_path(dir, NULL, &tree->path), &status) == 0 && status.st_ino == dir->inode;
}

static void child_came_or_went(struct cgroup_tree *tree, struct cgroup_dir *dir, const char *name,
                               bool has_come)
{
    struct cgroup_dir *child = find_child(dir, name);

    if (child && is_there(tree, child))
        return;
    if (child)
        remove_dir(tree, child);
    if (!has_come)
        return;
    child = add_dir(tree, dir, name, NULL);
    if (child)
        explore(tree, child);
}

static void forget_watch(struct cgroup_tree *tree, struct cgroup_dir *dir, int number)
{
    watches_forget(&tree->watches, number);
    if (dir->watch == number)
        dir->watch = -1;
    else
        dir->events_watch = -1;
}

/* True if a walk is needed to know what has happened. */
static bool handle(struct cgroup_tree *tree, const struct inotify_event *event)
{
    struct cgroup_dir *dir = watches_owner(&tree->watches, event->wd);

    if (event->mask & IN_Q_OVERFLOW) {
        tree->stats.overflows++;
        return true;
    }
    if (!dir)
        return false;
    if (event->mask & IN_IGNORED)
        forget_watch(tree, dir, event->wd);
    else if (event->wd == dir->events_watch && tree->events.changed)
        tree->events.changed(tree->events.ctx, dir);
    else if (event->wd == dir->watch && event->mask & IN_DELETE_SELF && dir->parent)
        remove_dir(tree, dir);
    else if (event->wd == dir->watch && event->len && event->mask & IN_ISDIR)
        child_came_or_went(tree, dir, event->name, event->mask & (IN_CREATE | IN_MOVED_TO));
    return event->mask & IN_UNMOUNT;
}

int cgroup_tree_fd(const struct cgroup_tree *tree)
{
    return tree->watches.fd;
}

void cgroup_tree_read(struct cgroup_tree *tree)
{
    alignas(struct inotify_event) char events[8192];
    bool needs_walk = false;

    for (int i = 0; i < MOST_BATCHES; i++) {
        ssize_t n = read(tree->watches.fd, events, sizeof(events));

        if (n <= 0)
            break;
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const void *)(events + at);

            needs_walk |= handle(tree, event);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    if (needs_walk)
        cgroup_tree_walk(tree);
}

/* Process ids. */

static int read_pids(int fd, struct pid_list *to)
{
    size_t n_before = to->n;
    int code = pid_list_read(to, fd, n_before + CGROUP_DIR_PIDS);

    if (code < 0 && code != -EFBIG)
        to->n = n_before;
    return code;
}

/* The file is not kept open: a job can make thousands of directories, and opening it costs 3 us, a
 * tenth of what reading one process takes. Under v1, a descriptor that is read again within a
 * second would return the old list anyway (cgroup_pidlist_start in the kernel's cgroup-v1.c). */
int cgroup_dir_pids(const struct cgroup_dir *dir, struct pid_list *to)
{
    struct buf path;
    int fd, code;

    if (!has_processes(dir))
        return 0;
    buf_init(&path, PATH_MAX - 1);
    fd = open(full_path(dir, "cgroup.procs", &path), O_RDONLY | O_CLOEXEC);
    code = fd < 0 ? -errno : read_pids(fd, to);
    if (fd >= 0)
        close(fd);
    buf_free(&path);
    return code == -ENOENT ? -ENODEV : code;
}

void cgroup_tree_stats(const struct cgroup_tree *tree, struct cgroup_tree_stats *ret)
{
    *ret = tree->stats;
    for (struct cgroup_dir *dir = tree->root; dir; dir = next_below(tree->root, dir))
        ret->unwatched += dir->watch < 0 || (has_events(dir) && dir->events_watch < 0);
}
