/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Job directories without a job: Slurm leaves some behind, in any hierarchy. */
#include "agent/agent.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    DEEPEST = 16,
    MOST_DIRECTORIES = 4096, /* above jobs, in one hierarchy */
};

/* A job that has just begun, or is just being cleaned up, is no leftover. */
static const int64_t grace_ns = 30 * NS_PER_SEC;

struct search {
    struct agent *agent;
    struct buf path; /* below the mount */
    uid_t uid;       /* whose the mount is: where others may make directories, Slurm does not */
    size_t n_listed;
    size_t n_scopes, n_missed, n_leftovers;
};

static bool is_leftover(struct agent *agent, const struct cgroup_match *match)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);
        int64_t changed = job->use.has_ended ? job->ended_ns : job->seen_ns;

        if (agent_is_called(agent, job, match) &&
            (job->is_skipped || agent_job_is_live(job) || agent->now - changed < grace_ns))
            return false;
    }
    return true;
}

/* It is that of a job that lives without one. */
static bool is_missed(struct agent *agent, const struct cgroup_match *match)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (agent_is_called(agent, job, match) && agent_job_is_live(job) && !job->dir)
            return true;
    }
    return false;
}

static void search_below(struct search *search, int fd, int depth);

static void look_into(struct search *search, int parent, const char *name, int depth)
{
    size_t n = search->path.n;
    struct cgroup_match match;
    int fd;

    buf_put(&search->path, n ? STR("/") : STR(""));
    buf_text(&search->path, name);
    if (!search->path.over &&
        cgroup_rows_match(search->agent->config.rows, search->agent->mounts.is_v2,
                          buf_str(&search->path), &match)) {
        if (match.level == CGROUP_JOB) {
            search->n_missed += is_missed(search->agent, &match);
            search->n_leftovers += is_leftover(search->agent, &match);
        } else if (match.level < CGROUP_JOB) {
            search->n_scopes += match.level == CGROUP_SCOPE;
            fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
            if (fd >= 0)
                search_below(search, fd, depth + 1);
        }
    }
    search->path.over = false;
    search->path.n = n;
}

/* Takes the descriptor over. */
static void search_below(struct search *search, int fd, int depth)
{
    struct stat status;
    bool is_wanted = depth < DEEPEST && search->n_listed++ < MOST_DIRECTORIES &&
                     fstat(fd, &status) == 0 && status.st_uid == search->uid;
    DIR *directory = is_wanted ? fdopendir(fd) : NULL;

    if (!directory) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            look_into(search, dirfd(directory), entry->d_name, depth);
    closedir(directory);
}

static void search_mount(struct search *search, const char *mount)
{
    int fd = mount[0] ? open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct stat status;

    if (fd < 0)
        return;
    buf_reset(&search->path);
    search->n_listed = 0;
    search->uid = fstat(fd, &status) == 0 ? status.st_uid : 0;
    search_below(search, fd, 0);
}

static struct search search_one(struct agent *agent, const char *mount)
{
    struct search search = { .agent = agent };

    buf_init(&search.path, 4096);
    search_mount(&search, mount);
    buf_free(&search.path);
    return search;
}

bool agent_has_scope(struct agent *agent, const char *mount)
{
    return search_one(agent, mount).n_scopes;
}

bool agent_has_missed(struct agent *agent, const char *mount)
{
    return search_one(agent, mount).n_missed;
}

void agent_count_leftovers(struct agent *agent)
{
    struct search search = { .agent = agent };

    buf_init(&search.path, 4096);
    if (agent->mounts.is_v2)
        search_mount(&search, agent->mounts.unified);
    else
        for (size_t i = 0; i < CGROUP_CONTROLLERS; i++)
            search_mount(&search, agent->mounts.controller[i]);
    buf_free(&search.path);
    agent->use.leftover_cgroups = search.n_leftovers;
}
