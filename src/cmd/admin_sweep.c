/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin sweep-pushgateway: deletes what the profile plugin has left on a Pushgateway of jobs
 * that Slurm no longer runs. */
#include "base/quote.h"
#include "base/thread.h"
#include "cmd/admin.h"
#include "cmd/source_options.h"
#include "push/sweep.h"

#include <signal.h>
#include <stdio.h>

enum {
    MOST_LIST_BYTES = 256 << 20,
    MOST_GROUPS = 100000, /* looked at in one run */
    GRACE_SECONDS = 60,   /* what was pushed later is left alone, whatever Slurm says */
};

static const int64_t longest_run_ns = 600 * NS_PER_SEC;
static const int64_t longest_timeout_ns = 3600 * NS_PER_SEC;

struct settings {
    struct source_options source;
    struct str cluster, password_file, ca_file;
    int64_t timeout_ns;
    bool is_dry;
};

#define PLACE(member) offsetof(struct settings, member)

static const struct option own_options[] = {
    { "dry-run", OPTION_BOOL, PLACE(is_dry), NULL, NULL, NULL, NULL, "Sweep",
      "Print what would be deleted, and delete nothing." },
    { "cluster", OPTION_STRING, PLACE(cluster), "NAME", NULL, NULL, NULL, "Sweep",
      "Look at groups alone whose metrics have this cluster label." },
    { "push.password-file", OPTION_STRING, PLACE(password_file), "FILE", NULL, NULL, NULL, "Sweep",
      "The password of the user in the URL." },
    { "push.ca-file", OPTION_STRING, PLACE(ca_file), "FILE", NULL, NULL, NULL, "Sweep",
      "Certificates to trust for https, if not the system's." },
    { "push.timeout", OPTION_DURATION, PLACE(timeout_ns), "DURATION", "30s", NULL, NULL, "Sweep",
      "The Pushgateway has this long for one answer." },
};

/* What becomes of a group. */
enum verdict { OVER, RUNNING, YOUNG, FOREIGN, VERDICTS };

struct sweep {
    const struct settings *settings;
    const struct clock *clock;
    struct gateway gateway;
    struct source *source;
    struct sweep_list list;
    char cluster[64]; /* as Slurm is called; "": it does not tell */
    uint32_t *jobs;   /* that are not over, in order */
    size_t n_jobs;
    size_t counts[VERDICTS];
    size_t n_deleted;

    pthread_t main;
    atomic_bool is_cancelled;
    int code;
    struct err err;
};

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 char ***ret_rest, struct err *err)
{
    struct option rows[COUNT(own_options) + SOURCE_OPTIONS + 1] = { 0 };
    const struct option_command command = {
        .name = "sonde admin sweep-pushgateway",
        .summary = "delete what ended jobs have left on a Pushgateway",
        .description =
            "Slurm's profile plugin pushes a group for each step and node, and deletes it when the "
            "step ends. Of a slurmstepd that was killed, or a node that went down, the group stays "
            "and looks alive. This asks Slurm which jobs it has, and deletes the groups of all "
            "others. Each is printed, then a summary.\n\n"
            "Only groups are looked at that the plugin has made: their labels are exactly job (a "
            "number), instance and step, and one of their metrics has a name that the plugin "
            "gives; or, as the plugin acct_gather_profile_prometheus of others has it, job and "
            "instance. What was pushed in the last minute stays in any case.\n\n"
            "If Slurm does not answer, or PrivateData hides jobs from whoever asks, nothing is "
            "deleted. Run it as root, SlurmUser or an operator, from cron or by hand. On nodes "
            "with sonde agent --profile.pushgateway, the agent does the same by itself.\n\n"
            "Job numbers of several clusters overlap: where these share a Pushgateway, give the "
            "plugin ProfilePrometheusExtraLabels=cluster on all of them. Groups with a cluster "
            "label that is not the name of the Slurm that is asked are left alone; with --cluster, "
            "those without one too.",
        .arguments = "URL",
        .shares_file = true,
        .exit_status = "0 if everything was deleted that was to be, 1 if not, 2 if a flag or the "
                       "URL is wrong.",
        .options = rows,
    };
    int outcome;

    memcpy(rows, own_options, sizeof(own_options));
    source_options_rows(PLACE(source), rows + COUNT(own_options));
    outcome = option_parse(&command, argc, argv, environ, arena, settings, ret_rest, err);
    if (outcome != OPTION_GO_ON)
        return outcome;
    if (!(*ret_rest)[0] || (*ret_rest)[1])
        return err_set(err, EINVAL, "name one Pushgateway: http://HOST:9091; see --help");
    if (settings->timeout_ns <= 0 || settings->timeout_ns > longest_timeout_ns)
        return err_set(err, EINVAL, "--push.timeout must be more than 0 and at most 1h");
    return source_options_check(&settings->source, err);
}

static bool is_wanted(void *ctx, const struct sweep_group *group)
{
    struct str cluster = ((const struct sweep *)ctx)->settings->cluster;

    return !cluster.n || str_eq_nocase(cluster, str_of(group->cluster));
}

static struct sweep_limits limits_of(const struct sweep *sweep)
{
    return (struct sweep_limits){
        .timeout_ms = (sweep->settings->timeout_ns + NS_PER_MS - 1) / NS_PER_MS,
        .max_answer = MOST_LIST_BYTES,
        .cancelled = &sweep->is_cancelled,
    };
}

static int read_kind(struct sweep *sweep, enum kind kind, struct section **ret, struct err *err)
{
    int64_t deadline_ns = clock_mono(&clock_real) + sweep->settings->source.timeout_ns;
    char warning[SOURCE_WARNING] = "";

    if (sweep->source->class->read(sweep->source, kind, deadline_ns, ret, warning, err) < 0)
        return err_prefix(err, "nothing was deleted, Slurm must be asked first (sonde admin doctor "
                               "tells more)");
    if (warning[0])
        fprintf(stderr, "sonde admin sweep-pushgateway: Slurm answers with a warning: %s\n",
                quote(str_of(warning)).text);
    return 0;
}

/* Whether all jobs would be told. */
static int check_config(struct sweep *sweep, const struct section *section, struct err *err)
{
    const struct config *config = &section->config;

    struct str name = section_text(section, config->cluster), wanted = sweep->settings->cluster;

    snprintf(sweep->cluster, sizeof(sweep->cluster), "%.*s", STR_ARG(name));
    if (wanted.n && name.n && !str_eq_nocase(name, wanted))
        return err_set(err, EINVAL,
                       "nothing was deleted: the Slurm that answers is \"%s\", which does not know "
                       "the jobs of --cluster",
                       quote(name).text);
    if (config->user_id == MODEL_UNKNOWN_U32)
        return err_set(err, EPERM,
                       "nothing was deleted: through this door Slurm does not tell whether "
                       "PrivateData hides jobs; try --source=libslurm or --source=cli");
    if (config->hidden >> PRIVATE_JOBS & 1)
        return err_set(err, EPERM,
                       "nothing was deleted: PrivateData hides the jobs of others from user %u, "
                       "and they would look ended; run this as root or SlurmUser, or: sacctmgr "
                       "modify user NAME set adminlevel=operator",
                       config->user_id);
    return 0;
}

/* One with a flag (completing, requeued, …) may still have a slurmstepd. */
static bool is_over(struct job_state state)
{
    bool waits_again = state.base == JOB_PENDING; /* a requeued one: that run is over */

    return !state.flags &&
           (waits_again || (state.base >= JOB_COMPLETED && state.base < JOB_BASE_UNKNOWN));
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static int take_jobs(struct sweep *sweep, const struct section *section, struct err *err)
{
    if (section->skipped)
        return err_set(err, EBADMSG,
                       "nothing was deleted: %llu records of jobs in Slurm's answer could not be "
                       "read, the first is \"%s\"",
                       (unsigned long long)section->skipped, quote(section->skipped_example).text);
    sweep->jobs = heap_array(section->jobs.n + 1, sizeof(*sweep->jobs));
    for (size_t i = 0; i < section->jobs.n; i++)
        if (!is_over(section->jobs.job[i].state))
            sweep->jobs[sweep->n_jobs++] = section->jobs.job[i].id;
    qsort(sweep->jobs, sweep->n_jobs, sizeof(*sweep->jobs), compare_ids);
    return 0;
}

static int ask(struct sweep *sweep, enum kind kind,
               int (*take)(struct sweep *sweep, const struct section *section, struct err *err),
               struct err *err)
{
    struct section *section;
    int code = read_kind(sweep, kind, &section, err);

    if (code < 0)
        return code;
    code = take(sweep, section, err);
    section_unref(section);
    return code;
}

static enum verdict judge(const struct sweep *sweep, const struct sweep_group *group)
{
    double now_seconds = (double)clock_wall(sweep->clock) / NS_PER_SEC;

    if (group->cluster[0] && !sweep->settings->cluster.n &&
        !str_eq_nocase(str_of(group->cluster), str_of(sweep->cluster)))
        return FOREIGN;
    if (bsearch(&group->job_id, sweep->jobs, sweep->n_jobs, sizeof(*sweep->jobs), compare_ids))
        return RUNNING;
    return now_seconds - group->pushed_seconds < GRACE_SECONDS ? YOUNG : OVER;
}

static void say_group(const struct sweep *sweep, const struct sweep_group *group)
{
    double now_seconds = (double)clock_wall(sweep->clock) / NS_PER_SEC;

    printf("%s job %u%s%s on %s, last pushed %.0f s ago\n",
           sweep->settings->is_dry ? "would delete" : "deleted", group->job_id,
           group->step[0] ? " step " : "", group->step, quote(str_of(group->node)).text,
           now_seconds - group->pushed_seconds);
}

static int delete_group(struct sweep *sweep, const struct sweep_group *group, struct err *err)
{
    const struct sweep_limits limits = limits_of(sweep);
    int code = 0;

    if (!sweep->settings->is_dry)
        code = sweep_delete(&sweep->gateway, group, &limits, err);
    if (code == 0) {
        sweep->n_deleted++;
        say_group(sweep, group);
    }
    return code;
}

/* The first that fails is the last that is tried: the next would fail in the same way. */
static int delete_groups(struct sweep *sweep, struct err *err)
{
    int64_t deadline_ns = clock_mono(&clock_real) + longest_run_ns;
    int code = 0;

    for (size_t i = 0; i < sweep->list.n; i++) {
        const struct sweep_group *group = &sweep->list.groups[i];
        enum verdict verdict = judge(sweep, group);

        sweep->counts[verdict]++;
        if (verdict != OVER || code < 0)
            continue;
        if (clock_mono(&clock_real) > deadline_ns)
            code = err_set(err, ETIMEDOUT, "the time is up; run it again for the rest");
        else
            code = delete_group(sweep, group, err);
    }
    return code;
}

/* The list comes first: a job that had pushed by then is one that Slurm knows afterwards, or it is
 * over. */
static int sweep_all(struct sweep *sweep, struct err *err)
{
    const struct sweep_wishes wishes = { is_wanted, sweep, MOST_GROUPS };
    const struct sweep_limits limits = limits_of(sweep);
    int code = sweep_read(&sweep->gateway, &limits, &wishes, &sweep->list, err);

    if (code < 0 || !sweep->list.n)
        return code;
    code = ask(sweep, KIND_CONFIG, check_config, err);
    if (code == 0)
        code = ask(sweep, KIND_JOBS, take_jobs, err);
    return code == 0 ? delete_groups(sweep, err) : code;
}

static void *run(void *arg)
{
    struct sweep *sweep = arg;

    sweep->code = sweep_all(sweep, &sweep->err);
    pthread_kill(sweep->main, SIGUSR1);
    return NULL;
}

/* On a thread of its own, so that this one can hear of signals. */
static int run_until_signal(struct sweep *sweep, struct err *err)
{
    pthread_t thread;
    sigset_t signals;
    int which, code;

    sweep->main = pthread_self();
    admin_block_signals(&signals);
    code = thread_start(&thread, "sweep", run, sweep, err);
    if (code < 0)
        return code;
    while (sigwait(&signals, &which) != 0 || which != SIGUSR1) {
        atomic_store(&sweep->is_cancelled, true);
        source_cancel(sweep->source);
    }
    pthread_join(thread, NULL);
    if (sweep->code < 0)
        *err = sweep->err;
    return sweep->code;
}

static void say_summary(const struct sweep *sweep)
{
    printf("%zu of %zu groups of the profile plugin %s; %zu stay for jobs that Slurm has, %zu that "
           "were pushed in the last minute, %zu of other clusters\n",
           sweep->n_deleted, sweep->list.n,
           sweep->settings->is_dry ? "would be deleted" : "deleted", sweep->counts[RUNNING],
           sweep->counts[YOUNG], sweep->counts[FOREIGN]);
    if (sweep->counts[OVER] > sweep->n_deleted)
        printf("%zu could not be deleted\n", sweep->counts[OVER] - sweep->n_deleted);
    if (sweep->list.n_left_out)
        printf("%zu more were not looked at: run it again\n", sweep->list.n_left_out);
}

/* The exit status, with a sentence unless it is 0; or -EINVAL. */
static int sweep_with(struct sweep *sweep, struct err *err)
{
    int code;

    if (sweep->source->simulated || strcmp(sweep->source->class->name, "replay") == 0)
        return err_set(err, EINVAL,
                       "a simulated or recorded cluster does not tell which jobs are over");
    code = run_until_signal(sweep, err);
    if (code == 0 || sweep->n_deleted)
        say_summary(sweep);
    sweep_list_clear(&sweep->list);
    free(sweep->jobs);
    return code < 0 ? 1 : 0;
}

static const char *text_or_null(struct str text)
{
    return text.n ? text.p : NULL;
}

static int sweep_url(const struct settings *settings, const char *url, struct err *err)
{
    const struct source_settings source_settings = source_options_settings(&settings->source);
    struct sweep sweep = { .settings = settings, .clock = clock_of_environment() };
    int code = gateway_open(url, text_or_null(settings->password_file),
                            text_or_null(settings->ca_file), &sweep.gateway, err);

    if (code < 0)
        return code;
    sweep.gateway.line = fetch_line_new();
    code = source_open(&source_settings, sweep.clock, &sweep.source, err);
    if (code == 0) {
        code = sweep_with(&sweep, err);
        source_close(sweep.source);
    }
    gateway_close(&sweep.gateway);
    return code;
}

int admin_sweep_pushgateway(int argc, char **argv)
{
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **rest;
    int code = parse(argc, argv, &arena, &settings, &rest, &err);

    if (code == OPTION_GO_ON)
        code = sweep_url(&settings, rest[0], &err);
    else if (code == OPTION_EXIT_OK)
        code = 0;
    if (code)
        fprintf(stderr, "sonde admin sweep-pushgateway: %s\n", err.text);
    arena_clear(&arena);
    return code == -EINVAL ? 2 : code < 0 ? 1 : code;
}
