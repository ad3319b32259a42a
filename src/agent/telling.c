/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Publishes the sampler's results: for scrapes, the Pushgateway and the log. */
#include "agent/telling.h"

#include <inttypes.h>

enum { PUSH_BYTES = 64 << 20 };

/* A format that nobody has asked for so long is no longer made. */
static const int64_t format_lives_ticks = 10;

static const int64_t least_stale_ns = 5 * NS_PER_SEC;

void telling_init(struct telling *telling)
{
    map_init(&telling->nodes, &telling->nodes_arena);
}

void telling_free(struct telling *telling)
{
    gpu_look_unref(telling->gpus);
    lustre_use_unref(telling->lustre);
    free(telling->view);
    free(telling->profiles);
    map_free(&telling->nodes);
    arena_clear(&telling->nodes_arena);
}

static size_t view_jobs(struct telling *telling, struct agent *agent, const char *node)
{
    size_t n = 0;

    if (telling->n_view_room < agent->n_jobs || telling->n_view_room > 4 * agent->n_jobs + 64) {
        telling->n_view_room = agent->n_jobs;
        telling->view = heap_resize(telling->view, agent->n_jobs + 1, sizeof(*telling->view));
    }
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (agent_job_is_shown(agent, job) && (!node || strcmp(job->use.node, node) == 0))
            telling->view[n++] = &job->use;
        agent_show_names(agent, job);
        if (agent->needs & (USAGE_STEPS | USAGE_TASKS))
            agent_show_steps(job, agent->mounts.has_local_events);
    }
    return n;
}

/* Whether a job is of a user who is to be told of, as far as anybody knows. */
static bool may_tell_of(const struct agent *agent, const struct profile_id *id)
{
    char job_id[USAGE_ID];
    bool is_known = false;

    if (!agent->tuning.n_skipped)
        return true;
    snprintf(job_id, sizeof(job_id), "%" PRIu32, id->job_id);
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (strcmp(job->use.id, job_id) != 0)
            continue;
        if (job->is_skipped || job->use.uid == MODEL_UNKNOWN_U32)
            return false;
        is_known = true;
    }
    return is_known;
}

static size_t view_profiles(struct telling *telling, const struct agent *agent)
{
    const struct profile_use *use = NULL;
    size_t n = 0;

    while (agent->profiles && (use = profiles_next(agent->profiles, use))) {
        if (!may_tell_of(agent, &use->id))
            continue;
        telling->profiles =
            heap_grow(telling->profiles, n, &telling->n_profiles_room, sizeof(*telling->profiles));
        telling->profiles[n++] = use;
    }
    return n;
}

static void count_own(struct agent *agent)
{
    struct cgroup_tree_stats tree = { 0 };

    if (agent->tree)
        cgroup_tree_stats(agent->tree, &tree);
    agent->use.watched_directories = tree.dirs;
    agent->use.scans = tree.walks;
    agent->use.scan_overflows = tree.overflows;
    agent->use.has_cgroups = agent->tree && !agent->is_by_stepd;
    agent->use.has_exit_records = agent->exits != NULL;
    agent->use.may_read_processes = agent->may_read;
    agent->use.processes = processes_count(agent->processes);
    agent->use.directories_refused = tree.refused;
    agent->use.open_files = agent->kept_files.n;
    agent->use.open_files_limit = agent->kept_files.max;
    agent->use.jobs = agent->use.ended_jobs = 0;
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        agent->use.jobs += agent_job_is_live(job);
        agent->use.ended_jobs += job->use.has_ended && agent_job_is_shown(agent, job);
    }
    if (agent->profiles)
        profiles_count(agent->profiles, &agent->use);
}

/* Three ticks, unless they are very short: GPUs are read once a second at most. */
int64_t telling_stale_ns(const struct agent *agent)
{
    int64_t ticks_ns = 3 * agent->tuning.tick_ns;

    return ticks_ns > least_stale_ns ? ticks_ns : least_stale_ns;
}

/* The first look may take a while. A late one on a node without GPUs is a busy node's, not a
 * driver's. */
static int gpu_up(const struct telling *telling, const struct agent *agent)
{
    bool is_late = (int64_t)agent->use.ticks * agent->tuning.tick_ns >= telling_stale_ns(agent);

    if (telling->gpus)
        return telling->gpus->up;
    return is_late && gpus_present(agent->config.gpus) ? 0 : -1;
}

/* Where there is no Lustre a look ends at once: one that does not end has found some. */
static int lustre_up(const struct telling *telling)
{
    if (telling->lustre && telling->lustre->n_targets)
        return telling->lustre->n_unread == 0;
    return telling->is_lustre_stuck ? 0 : -1;
}

static struct usage make_usage(struct telling *telling, struct agent *agent, const char *node)
{
    const struct gpu_look *look = telling->gpus;
    bool is_whole = !node || strcmp(node, agent->config.host) == 0;
    size_t n_jobs = view_jobs(telling, agent, node); /* may move the view */

    return (struct usage){
        .n_jobs = n_jobs,
        .jobs = telling->view,
        .gpus = look && is_whole ? look->gpus : NULL,
        .n_gpus = look && is_whole ? look->n_gpus : 0,
        .gpu_up = gpu_up(telling, agent),
        .lustre = is_whole ? telling->lustre : NULL,
        .lustre_up = is_whole ? lustre_up(telling) : -1,
        .host = agent->config.host,
        .agent = agent->use,
    };
}

void telling_publish(struct telling *telling, struct agent *agent)
{
    int64_t since = agent->now - format_lives_ticks * agent->tuning.tick_ns;
    unsigned formats = bulletin_board_wanted(agent->config.board, since);
    struct usage usage;

    count_own(agent);
    usage = make_usage(telling, agent, NULL);
    usage.n_profiles = view_profiles(telling, agent);
    usage.profiles = telling->profiles;
    bulletin_board_put(agent->config.board,
                       bulletin_new(&agent->tuning.publish, &usage,
                                    formats ? formats : 1u << METRIC_TEXT, ++telling->serial));
}

/* Without profiles: the plugin itself can push, and labels job and instance would be the group's.
 */
static void push_node(struct telling *telling, struct agent *agent, const char *node)
{
    const struct usage usage = make_usage(telling, agent, node);
    struct buf text;

    buf_init(&text, PUSH_BYTES);
    for (size_t i = 0; usage_collectors[i]; i++) {
        struct metric_writer writer;

        if (!(agent->tuning.publish.collectors >> i & 1))
            continue;
        metric_writer_init(&writer, &text, METRIC_TEXT, STR(""), usage_collectors[i]->families,
                           usage_collectors[i]->n_families);
        writer.excluded = agent->tuning.publish.excluded[i];
        usage_collectors[i]->collect(&usage, &writer);
        metric_writer_free(&writer);
    }
    pusher_put(agent->config.pusher, node, buf_str(&text));
    buf_free(&text);
}

/* One group for each slurmd of the host. One without jobs is pushed too, so that those it had go.
 */
void telling_push(struct telling *telling, struct agent *agent)
{
    map_put(&telling->nodes, str_of(agent->config.host));
    for (struct link *link = list_first(&agent->jobs); link && telling->nodes.n < PUSH_GROUPS;
         link = list_next(&agent->jobs, link))
        map_put(&telling->nodes, str_of(PART_OF(link, struct agent_job, link)->use.node));
    for (size_t i = 0; i < telling->nodes.n; i++)
        push_node(telling, agent, telling->nodes.entries[i].key.p);
}

void telling_complain(struct telling *telling, struct agent *agent)
{
    if (agent->may_read || telling->has_said_unreadable)
        return;
    telling->has_said_unreadable = true;
    LOG(agent->config.log, LOG_WARN, "processes of jobs cannot be read",
        LOG_STR("lost", "I/O, open files, scratch, accounts and GPUs by environment"),
        LOG_STR("hint", "run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"));
}

static void say_gpus(struct telling *telling, struct agent *agent)
{
    struct log *log = agent->config.log;
    const struct gpu_look *look = telling->gpus;
    bool is_down = gpu_up(telling, agent) == 0;

    if (is_down && !telling->has_said_gpus_down)
        LOG(log, LOG_WARN, "the GPU driver does not answer",
            LOG_STR("error", look ? look->first_error : "no reply for more than three ticks"));
    if (!is_down && telling->has_said_gpus_down)
        LOG(log, LOG_INFO, "the GPU driver answers again");
    telling->has_said_gpus_down = is_down;
    if (is_down || !look || !look->errors || telling->has_said_gpus_partly)
        return;
    telling->has_said_gpus_partly = true;
    LOG(log, LOG_WARN, "the GPU driver does not tell everything",
        LOG_STR("error", look->first_error));
}

void telling_take_gpus(struct telling *telling, struct agent *agent, struct gpu_look *look)
{
    gpu_look_unref(telling->gpus);
    telling->gpus = look;
    say_gpus(telling, agent);
}

static void say_lustre(struct telling *telling, struct agent *agent)
{
    const struct lustre_use *look = telling->lustre;
    struct log *log = agent->config.log;
    int up = lustre_up(telling);

    if (up == 0 && !telling->has_said_lustre_down)
        LOG(log, LOG_WARN, "Lustre's job_stats cannot be read",
            LOG_STR("error", look ? look->first_error : "a look at them does not come to its end"));
    if (up > 0 && telling->has_said_lustre_down)
        LOG(log, LOG_INFO, "Lustre's job_stats can be read again");
    if (look || up == 0)
        telling->has_said_lustre_down = up == 0;
    if (!look || look->n_targets || !look->first_error[0] || telling->has_said_lustre_denied)
        return;
    telling->has_said_lustre_denied = true;
    LOG(log, LOG_INFO, "whether there is Lustre here cannot be seen",
        LOG_STR("error", look->first_error),
        LOG_STR("hint", "run as root, or with CAP_DAC_READ_SEARCH"));
}

void telling_take_lustre(struct telling *telling, struct agent *agent)
{
    struct lustre_targets *targets = agent->needs & USAGE_LUSTRE ? agent->config.lustre : NULL;
    int64_t stale_ns = telling_stale_ns(agent);

    /* The agent was stopped, or ticks have become shorter: a look had no chance to end in time. */
    if (agent->now - agent->use.sampled_mono_ns > stale_ns || stale_ns < telling->lustre_stale_ns)
        lustre_targets_excuse(targets);
    telling->lustre_stale_ns = stale_ns;
    lustre_use_unref(telling->lustre);
    telling->lustre = lustre_targets_latest(targets, stale_ns);
    telling->is_lustre_stuck = !telling->lustre && lustre_targets_waits_ns(targets) > stale_ns;
    say_lustre(telling, agent);
}
