/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of `sonde agent`, and the settings made from them. */
#include "cmd/agent_settings.h"

#include "base/num.h"
#include "base/quote.h"

#include <limits.h>

#define SETTING(member) offsetof(struct agent_settings, member)

static const int64_t shortest_tick_ns = 100 * NS_PER_MS;
static const int64_t longest_tick_ns = 3600 * NS_PER_SEC;
static const int64_t longest_linger_ns = 24 * 3600 * NS_PER_SEC;
static const uint64_t least_spool_bytes = 1 << 20;

/* Old values are withdrawn after this, or five ticks if that is longer. */
/* A sample of so many ticks ago is stale, but not before so long: a busy node delays short ticks.
 */
enum { STALE_TICKS = 5 };
static const int64_t least_stale_ns = 30 * NS_PER_SEC;

/* Of text that one collector may write. Lustre's shows as many job ids as fit: 500 of 64 bytes on
 * each of eight targets need 16 MiB. */
enum { SEGMENT_BYTES = 32 << 20 };

static const struct option sample_options[] = {
    { "timer", OPTION_DURATION, SETTING(tick_ns), "SECONDS", "15", NULL, NULL, "Samples",
      "How often jobs are looked at. Ticks stand at multiples of this on the wall clock, so that "
      "the nodes of a parallel job are disturbed together." },
    { "t", OPTION_DURATION, SETTING(tick_ns), "SECONDS", NULL, NULL, NULL, "Samples", NULL },
    { "job.linger", OPTION_DURATION, SETTING(linger_ns), "DURATION", "2m", NULL, NULL, "Samples",
      "How long the last counters of a job that has ended are shown: at least two scrape "
      "intervals." },
    { "blacklist", OPTION_STRING, SETTING(blacklist), "FILE", NULL, NULL, NULL, "Samples",
      "Users whose jobs are not looked at: a user id or name on each line." },
    { "b", OPTION_STRING, SETTING(blacklist), "FILE", NULL, NULL, NULL, "Samples", NULL },
    { "scratch.pattern", OPTION_STRING, SETTING(scratch), "REGEX", "scratch", NULL, NULL, "Samples",
      "A job that has a file open whose path has a match for this uses scratch." },
    { "processes.max-names", OPTION_UINT, SETTING(max_names), "N", "20", NULL, NULL, "Samples",
      "Names of processes told apart in one job; the others are added up as other." },
    { "max-jobs", OPTION_UINT, SETTING(max_jobs), "N", "4096", NULL, NULL, "Samples",
      "Jobs looked at; more are counted in sonde_agent_refused_jobs_total." },
    { "max-processes", OPTION_UINT, SETTING(max_processes), "N", "65536", NULL, NULL, "Samples",
      "Processes looked at; more are counted in sonde_agent_refused_processes." },
    { "node.name", OPTION_STRING, SETTING(node), "NAME", NULL, NULL, NULL, "Node",
      "The name of this node in labels, if not the host name up to its first dot. Where several "
      "slurmds share the host, a job has the name of its own." },
    { "slurmd.user", OPTION_STRING, SETTING(slurmd_user), "USER", "root", NULL, NULL, "Node",
      "The user that slurmd and slurmstepd run as (SlurmdUser of slurm.conf): a process of anybody "
      "else is never taken for one." },
    { "profile.socket", OPTION_STRING, SETTING(profile_socket), "PATH", "/run/sonde/profile.sock",
      NULL, NULL, "Node",
      "Where Slurm's profile plugin tells of its steps (ProfilePrometheusAgent in "
      "acct_gather.conf). The directory must be there; empty: it is not heard." },
    { "profile.pushgateway", OPTION_STRING, SETTING(profile_gateway), "URL", NULL, NULL, NULL,
      "Node",
      "The Pushgateway that the profile plugin pushes to (ProfilePrometheusHost), if it does: "
      "groups of this node's steps that are over are deleted there, also those of a slurmstepd "
      "that was killed. With --push.ca-file and --push.timeout." },
    { "profile.password-file", OPTION_STRING, SETTING(profile_password_file), "FILE", NULL, NULL,
      NULL, "Node", "The password of the user in --profile.pushgateway." },
    { "cgroup.layout", OPTION_LIST, SETTING(layouts), "NAME=v2:PATH", NULL, NULL, NULL, "Node",
      "Where another scheduler keeps the cgroups of its jobs, v1 or v2, below the mount point: "
      "\"pbs=v2:pbs_jobs.service/jobid/{job}\"." },
    { "gpu.nvml", OPTION_STRING, SETTING(nvml), "FILE", NULL, NULL, NULL, "Node",
      "NVIDIA's management library, if not libnvidia-ml.so.1 where the loader finds it." },
    { "path.procfs", OPTION_STRING, SETTING(procfs), "DIRECTORY", "/proc", NULL, NULL, "Node",
      "Where procfs is." },
    { "path.sysfs", OPTION_STRING, SETTING(sysfs), "DIRECTORY", "/sys", NULL, NULL, "Node",
      "Where sysfs is." },
    { "user", OPTION_STRING, SETTING(user), "USER", NULL, NULL, NULL, "Node",
      "Started as root: become this user and keep the capabilities that are needed. Without it the "
      "agent stays root, gives up all other capabilities, and still owns root's files." },
    { "lustre.max-ids", OPTION_UINT, SETTING(max_lustre_ids), "N", "500", NULL, NULL, "Lustre",
      "Job ids shown of each Lustre target of this server, those that move most, as far as one "
      "answer holds those of all targets; more are counted in sonde_agent_lustre_ids_left_out." },
    { "lustre.lctl", OPTION_STRING, SETTING(lctl), "COMMAND", "lctl", NULL, NULL, "Lustre",
      "What is asked for the job_stats of targets that have them neither below /proc/fs/lustre nor "
      "below /sys/kernel/debug/lustre; empty: nobody." },
    { "push.url", OPTION_STRING, SETTING(push.url), "URL", NULL, NULL, NULL, "Push",
      "Push each sample to this Pushgateway as well: http://HOST:9091. Called jobs_exporter, the "
      "default is http://localhost:9091." },
    { "push.job", OPTION_STRING, SETTING(push.job), "NAME", "jobs_exporter", NULL, NULL, "Push",
      "The job label of what is pushed." },
    { "push.password-file", OPTION_STRING, SETTING(push.password_file), "FILE", NULL, NULL, NULL,
      "Push", "The password of the user in --push.url." },
    { "push.ca-file", OPTION_STRING, SETTING(push.ca_file), "FILE", NULL, NULL, NULL, "Push",
      "Certificates to trust for https, if not the system's." },
    { "push.timeout", OPTION_DURATION, SETTING(push.timeout_ns), "DURATION", "5s", NULL, NULL,
      "Push", "One push has this long." },
    { "ingest.url", OPTION_STRING, SETTING(ingest.url), "URL", NULL, NULL, NULL, "Ingest",
      "Hand in what each job used, when it has ended, to this exporter, which keeps it with the "
      "job: https://HOST:9092." },
    { "ingest.token-file", OPTION_STRING, SETTING(ingest.token_file), "FILE", NULL, NULL, NULL,
      "Ingest",
      "Send the token in this file where munge is not installed, or where the exporter refuses its "
      "credentials: the same as the exporter's --ingest.token-file." },
    { "ingest.munge-socket", OPTION_STRING, SETTING(ingest.munge_socket), "PATH", NULL, NULL, NULL,
      "Ingest", "The socket of munged, if not the usual one." },
    { "ingest.ca-file", OPTION_STRING, SETTING(ingest.ca_file), "FILE", NULL, NULL, NULL, "Ingest",
      "Certificates to trust for https, if not the system's." },
    { "ingest.cluster", OPTION_STRING, SETTING(ingest.cluster), "NAME", NULL, NULL, NULL, "Ingest",
      "The name of this cluster, where the exporter has several." },
    { "ingest.timeout", OPTION_DURATION, SETTING(ingest.timeout_ns), "DURATION", "15s", NULL, NULL,
      "Ingest", "One post has this long." },
    { "ingest.spool-dir", OPTION_STRING, SETTING(ingest.spool), "DIRECTORY", "/var/spool/sonde",
      "STATE_DIRECTORY", NULL, "Ingest",
      "Where it waits while the exporter is away; the agent's own." },
    { "ingest.spool-size", OPTION_BYTES, SETTING(ingest.max_bytes), "BYTES", "64M", NULL, NULL,
      "Ingest", "So much waits there at most; then the oldest is dropped." },
    { "collector.disable-defaults", OPTION_BOOL, SETTING(has_no_defaults), NULL, NULL, NULL, NULL,
      "Collectors", "Give only what is asked for by name." },
};

/* The texts of the rows that are made of the table of collectors. */
struct made_options {
    struct option rows[SERVE_OPTIONS + COUNT(sample_options) + USAGE_COLLECTORS_MAX + 1];
    struct serve_collector_texts texts[USAGE_COLLECTORS_MAX];
};

static void make_options(struct made_options *made, const char *push_url, bool has_defaults)
{
    struct option *row = made->rows;

    serve_options_rows(SETTING(serve), ":9798", "64", row);
    row += SERVE_OPTIONS;
    for (size_t i = 0; i < COUNT(sample_options); i++) {
        *row = sample_options[i];
        if (row->offset == SETTING(push.url))
            row->initial = push_url;
        row++;
    }
    for (size_t i = 0; usage_collectors[i]; i++)
        *row++ = serve_collector_row(usage_collectors[i]->name, usage_collectors[i]->help,
                                     has_defaults && !usage_collectors[i]->is_off,
                                     SETTING(collectors) + i * sizeof(bool), &made->texts[i]);
}

static int check_limits(const struct agent_settings *settings, struct err *err)
{
    const struct {
        const char *flag;
        uint64_t value, least, most;
    } rows[] = {
        { "processes.max-names", settings->max_names, 0, 1000 },
        { "max-jobs", settings->max_jobs, 1, 65536 },
        { "max-processes", settings->max_processes, 1, 4 << 20 },
        { "lustre.max-ids", settings->max_lustre_ids, 1, 10000 },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].value < rows[i].least || rows[i].value > rows[i].most)
            return err_set(err, EINVAL, "--%s must be from %llu to %llu", rows[i].flag,
                           (unsigned long long)rows[i].least, (unsigned long long)rows[i].most);
    return 0;
}

static int check_ingest(const struct agent_settings *settings, struct err *err)
{
    if (settings->ingest.timeout_ns <= 0)
        return err_set(err, EINVAL, "--ingest.timeout must be more than 0");
    if (settings->ingest.max_bytes < least_spool_bytes)
        return err_set(err, EINVAL, "--ingest.spool-size must be at least 1M");
    if (settings->ingest.url.n && !settings->ingest.spool.n)
        return err_set(err, EINVAL, "--ingest.spool-dir must not be empty");
    return 0;
}

static int check(const struct agent_settings *settings, struct err *err)
{
    int code = serve_options_check(&settings->serve, err);

    if (code == 0)
        code = check_limits(settings, err);
    if (code < 0)
        return code;
    if (settings->tick_ns < shortest_tick_ns || settings->tick_ns > longest_tick_ns)
        return err_set(err, EINVAL, "--timer must be from 100ms to 1h");
    if (settings->linger_ns > longest_linger_ns)
        return err_set(err, EINVAL, "--job.linger must be at most 24h");
    if (settings->push.timeout_ns <= 0)
        return err_set(err, EINVAL, "--push.timeout must be more than 0");
    if (settings->push.url.n && !settings->push.job.n)
        return err_set(err, EINVAL, "--push.job must not be empty: the Pushgateway needs one");
    return check_ingest(settings, err);
}

static int exclude(struct agent_settings *settings, struct err *err)
{
    struct pattern *pattern;
    int code = serve_exclude(&settings->serve, &pattern, err);

    if (code < 0)
        return code;
    settings->publish.max_segment = SEGMENT_BYTES;
    for (size_t i = 0; usage_collectors[i]; i++) {
        settings->publish.excluded[i] =
            serve_excluded(pattern, usage_collectors[i]->families, usage_collectors[i]->n_families);
        if (settings->collectors[i])
            settings->publish.collectors |= (usage_collector_set)1 << i;
    }
    settings->excluded_self = serve_excluded(pattern, agent_self_families, n_agent_self_families);
    pattern_free(pattern);
    return 0;
}

static int name_node(struct agent_settings *settings, struct err *err)
{
    char host[HOST_NAME_MAX + 1] = "";
    struct str name = settings->node;

    if (!name.n) {
        gethostname(host, sizeof(host) - 1);
        name = str_head(str_of(host), str_find(str_of(host), '.'));
    }
    if (!name.n || name.n >= sizeof(settings->node_name))
        return err_set(err, EINVAL,
                       "the name of the node must have from 1 to %zu bytes: give one "
                       "with --node.name",
                       sizeof(settings->node_name) - 1);
    snprintf(settings->node_name, sizeof(settings->node_name), "%.*s", STR_ARG(name));
    return 0;
}

static int find_users(struct agent_settings *settings, struct arena *arena, struct err *err)
{
    struct str slurmd = settings->slurmd_user;
    uint64_t number;
    int code = 0;

    if (str_eq(slurmd, STR("root")))
        settings->slurmd_uid = 0; /* a directory need not be asked for that */
    else if (num_get_u64(slurmd, &number) && number < UINT32_MAX)
        settings->slurmd_uid = (uint32_t)number;
    else if (users_find(slurmd.p, &settings->slurmd_uid) < 0)
        return err_set(err, EINVAL, "--slurmd.user: there is no user \"%s\"", quote(slurmd).text);
    if (settings->blacklist.n)
        code = blacklist_read(settings->blacklist.p, users_find, arena, &settings->skipped, err);
    return code < 0 ? err_prefix(err, "--blacklist") : 0;
}

/* By that name it does what the program did that unit files still start: it pushed, always there.
 */
static bool is_jobs_exporter(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash ? slash + 1 : path, "jobs_exporter") == 0;
}

static int parse(int argc, char **argv, bool has_defaults, struct arena *arena,
                 struct agent_settings *settings, struct err *err)
{
    struct made_options made = { 0 };
    const struct option_command command = {
        .name = "sonde agent",
        .summary = "export what each job on this node is doing to Prometheus",
        .description =
            "Watches the jobs that Slurm runs on this node and serves what they use as metrics on "
            "/metrics, in the Prometheus text format or OpenMetrics, as the scraper prefers.\n\n"
            "Samples are taken at ticks of their own, and when a job begins or ends: however many "
            "scrapers there are, the node is looked at once. With --push.url they are pushed to a "
            "Pushgateway as well. With --ingest.url, what each job has used is handed in to the "
            "exporter when it has ended, and kept on disk until that has it.\n\n"
            "Needs root, or the capabilities CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and "
            "CAP_NET_ADMIN; it gives up all others and says in the log what it cannot tell "
            "without one.\n\n"
            "SIGHUP, or POST to /-/reload, reads the configuration again: all of it takes effect, "
            "or, if there is a mistake in it or something has changed that cannot be changed under "
            "way, nothing changes and the log says why." SERVE_STOPS,
        .options = made.rows,
    };
    char **rest;

    make_options(&made, argc && is_jobs_exporter(argv[0]) ? "http://localhost:9091" : NULL,
                 has_defaults);
    return option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
}

int agent_settings_parse(int argc, char **argv, struct arena *arena,
                         struct agent_settings *settings, struct err *err)
{
    int code = parse(argc, argv, true, arena, settings, err);

    /* What is on by default is known only now. */
    if (code == OPTION_GO_ON && settings->has_no_defaults)
        code = parse(argc, argv, false, arena, settings, err);
    if (code == OPTION_GO_ON)
        code = check(settings, err);
    if (code == OPTION_GO_ON)
        code = exclude(settings, err);
    if (code == OPTION_GO_ON)
        code = name_node(settings, err);
    if (code == OPTION_GO_ON)
        code = find_users(settings, arena, err);
    return code;
}

/* What the sampler, the pusher and the spool were started with. */
static const struct {
    const char *flag;
    size_t offset; /* of a struct str */
} fixed[] = {
    { "scratch.pattern", SETTING(scratch) },
    { "node.name", SETTING(node) },
    { "slurmd.user", SETTING(slurmd_user) },
    { "profile.socket", SETTING(profile_socket) },
    { "profile.pushgateway", SETTING(profile_gateway) },
    { "profile.password-file", SETTING(profile_password_file) },
    { "gpu.nvml", SETTING(nvml) },
    { "lustre.lctl", SETTING(lctl) },
    { "path.procfs", SETTING(procfs) },
    { "path.sysfs", SETTING(sysfs) },
    { "user", SETTING(user) },
    { "push.url", SETTING(push.url) },
    { "push.job", SETTING(push.job) },
    { "push.password-file", SETTING(push.password_file) },
    { "push.ca-file", SETTING(push.ca_file) },
    { "ingest.url", SETTING(ingest.url) },
    { "ingest.token-file", SETTING(ingest.token_file) },
    { "ingest.munge-socket", SETTING(ingest.munge_socket) },
    { "ingest.ca-file", SETTING(ingest.ca_file) },
    { "ingest.cluster", SETTING(ingest.cluster) },
    { "ingest.spool-dir", SETTING(ingest.spool) },
};

static struct str text_at(const struct agent_settings *settings, size_t offset)
{
    return *(const struct str *)((const char *)settings + offset);
}

int agent_settings_check_reload(const struct agent_settings *old, const struct agent_settings *new,
                                struct err *err)
{
    const char *changed = serve_options_changed(&old->serve, &new->serve);

    for (size_t i = 0; i < COUNT(fixed) && !changed; i++)
        if (!str_eq(text_at(old, fixed[i].offset), text_at(new, fixed[i].offset)))
            changed = fixed[i].flag;
    if (changed)
        ;
    else if (!option_list_equal(old->layouts, new->layouts))
        changed = "cgroup.layout";
    else if (old->max_jobs != new->max_jobs)
        changed = "max-jobs";
    else if (old->max_processes != new->max_processes)
        changed = "max-processes";
    else if (old->max_lustre_ids != new->max_lustre_ids)
        changed = "lustre.max-ids";
    else if (old->push.timeout_ns != new->push.timeout_ns)
        changed = "push.timeout";
    else if (old->ingest.timeout_ns != new->ingest.timeout_ns)
        changed = "ingest.timeout";
    else if (old->ingest.max_bytes != new->ingest.max_bytes)
        changed = "ingest.spool-size";
    if (!changed)
        return 0;
    return err_set(err, EINVAL, "%s has changed: restart sonde for that", changed);
}

struct sampler_tuning agent_settings_tuning(const struct agent_settings *settings)
{
    return (struct sampler_tuning){
        .tick_ns = settings->tick_ns,
        .linger_ns = settings->linger_ns,
        .skipped = settings->skipped.uids,
        .n_skipped = settings->skipped.n,
        .max_names = settings->max_names,
        .publish = settings->publish,
    };
}

struct bulletins_tuning agent_settings_serving(const struct agent_settings *settings)
{
    int64_t stale_ns = STALE_TICKS * settings->tick_ns;

    return (struct bulletins_tuning){
        .collectors = settings->publish.collectors,
        .excluded = settings->excluded_self,
        .stale_ns = stale_ns > least_stale_ns ? stale_ns : least_stale_ns,
    };
}
