/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds where Slurm has the cgroups of jobs on this host. */
#include "source/cgroup_layout.h"

#include "source/cgroup.h"
#include "source/cgroup_rows.h"
#include "source/subdirs.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { MOST_DIRECTORIES = 20000 };

/* The v1 controllers that Slurm may use, the most telling first. */
static const enum cgroup_controller controllers[] = {
    CGROUP_MEMORY, CGROUP_CPUACCT, CGROUP_FREEZER, CGROUP_CPUSET, CGROUP_DEVICES,
};

struct walk {
    const char *root;
    const struct cgroup_rows *rows;
    struct cgroup_layout *layout;
    size_t n_directories;
    bool is_v2;
    size_t mount_length; /* of the hierarchy's path */
    uid_t uid;           /* of the mount */
};

/* A directory that is being listed. */
struct place {
    struct walk *walk;
    const char *path;           /* without the root */
    struct cgroup_scope *scope; /* that it belongs to; NULL: it is above one */
};

static void visit(void *ctx, const char *name);

/* Where other users could make directories, no scope is looked for, as in source/cgroup_tree.h. */
static void look_into(struct walk *walk, const char *path, struct cgroup_scope *scope)
{
    struct place place = { walk, path, scope };
    char full[2 * CGROUP_PATH];
    struct stat status;
    int fd;

    if ((size_t)snprintf(full, sizeof(full), "%s%s", walk->root, path) >= sizeof(full))
        return;
    fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && (scope || status.st_uid == walk->uid))
        subdirs_each(fd, visit, &place);
    close(fd);
}

static void count_job(struct cgroup_scope *scope, const char *path,
                      const struct cgroup_match *match)
{
    if (match->sluid[0])
        scope->jobs_by_sluid++;
    else
        scope->jobs_by_id++;
    if (!scope->job[0])
        snprintf(scope->job, sizeof(scope->job), "%s", path);
}

/* NULL if there is no room for another. */
static struct cgroup_scope *add_scope(struct walk *walk, const char *path, const char *node)
{
    struct cgroup_layout *layout = walk->layout;
    struct cgroup_scope *scope;

    if (layout->n == CGROUP_SCOPES) {
        layout->is_partial = true;
        return NULL;
    }
    scope = &layout->scope[layout->n++];
    *scope = (struct cgroup_scope){ .is_v2 = walk->is_v2 };
    snprintf(scope->path, sizeof(scope->path), "%s", path);
    snprintf(scope->node, sizeof(scope->node), "%s", node);
    return scope;
}

static void visit(void *ctx, const char *name)
{
    const struct place *place = ctx;
    struct walk *walk = place->walk;
    struct cgroup_scope *scope = place->scope;
    struct cgroup_match match;
    char path[CGROUP_PATH];

    if (++walk->n_directories > MOST_DIRECTORIES ||
        snprintf(path, sizeof(path), "%s/%s", place->path, name) >= CGROUP_PATH) {
        walk->layout->is_partial = true;
        return;
    }
    if (!cgroup_rows_match(walk->rows, walk->is_v2, str_of(path + walk->mount_length + 1), &match))
        return;
    if (match.level == CGROUP_JOB) {
        count_job(scope, path, &match);
    } else if (match.level == CGROUP_ABOVE) {
        look_into(walk, path, NULL);
    } else {
        if (!scope)
            scope = add_scope(walk, path, match.node);
        if (scope)
            look_into(walk, path, scope);
    }
}

static void walk_hierarchy(struct walk *walk, const char *mount, bool is_v2)
{
    char full[2 * CGROUP_PATH];
    struct stat status = { 0 };

    snprintf(full, sizeof(full), "%s%s", walk->root, mount);
    if (stat(full, &status) < 0)
        return;
    walk->is_v2 = is_v2;
    walk->mount_length = strlen(mount);
    walk->uid = status.st_uid;
    look_into(walk, mount, NULL);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct cgroup_scope *)a)->path, ((const struct cgroup_scope *)b)->path);
}

static enum cgroup_version version_of(const struct cgroup_mounts *mounts)
{
    for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
        if (mounts->controller[i][0])
            return mounts->unified[0] ? CGROUP_HYBRID : CGROUP_V1;
    return mounts->unified[0] ? CGROUP_V2 : CGROUP_NONE;
}

static const char *without_root(const char *root, const char *mount)
{
    return str_starts(str_of(mount), str_of(root)) ? mount + strlen(root) : mount;
}

static void keep_mount(struct cgroup_layout *layout, const char *mount)
{
    if (!layout->mount[0])
        snprintf(layout->mount, sizeof(layout->mount), "%s", mount);
}

static void walk_all(struct walk *walk, const struct cgroup_mounts *mounts)
{
    const char *unified = without_root(walk->root, mounts->unified);

    /* Each controller has a tree of its own, with the same jobs in it. */
    for (size_t i = 0; i < COUNT(controllers) && !walk->layout->n; i++) {
        const char *mount = without_root(walk->root, mounts->controller[controllers[i]]);

        if (!mount[0])
            continue;
        keep_mount(walk->layout, mount);
        walk_hierarchy(walk, mount, false);
    }
    if (!unified[0])
        return;
    if (walk->layout->version == CGROUP_V2)
        keep_mount(walk->layout, unified);
    walk_hierarchy(walk, unified, true);
}

int cgroup_layout_read(const char *root, struct cgroup_layout *ret, struct err *err)
{
    struct walk walk = { .root = root, .layout = ret };
    char proc[CGROUP_PATH], sys[CGROUP_PATH];
    struct cgroup_mounts mounts;
    struct cgroup_rows *rows;
    int code;

    snprintf(proc, sizeof(proc), "%s/proc", root);
    snprintf(sys, sizeof(sys), "%s/sys", root);
    code = cgroup_mounts_read(proc, sys, &mounts, err);
    if (code < 0)
        return code;
    rows = cgroup_rows_new();
    walk.rows = rows;
    *ret = (struct cgroup_layout){ .version = version_of(&mounts) };
    walk_all(&walk, &mounts);
    qsort(ret->scope, ret->n, sizeof(ret->scope[0]), compare_paths);
    cgroup_rows_free(rows);
    return 0;
}
