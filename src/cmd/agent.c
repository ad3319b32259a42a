/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde agent: what each job on this node is doing, for Prometheus. */
#include "agent/spool.h"
#include "agent/sweeper.h"
#include "cmd/agent_settings.h"

#include "base/num.h"
#include "base/privileges.h"
#include "base/process.h"
#include "base/secret.h"
#include "base/stop_guard.h"

#include <linux/capability.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* What the agent needs; everything else is given up. packaging/systemd/sonde-agent.service.in gives
 * the same. */
static const struct privilege privileges[] = {
    { CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
      "I/O, open files and GPUs of jobs of other users are not shown." },
    { CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
      "I/O, open files and GPUs of jobs of other users are not shown, nor Lustre's job_stats where "
      "only root may read them." },
    { CAP_NET_ADMIN, "CAP_NET_ADMIN",
      "The kernel does not tell of processes that end: what they did since the last tick is known "
      "only as far as their parents' sums have it." },
};

static const int64_t blacklist_retry_ns =
    60 * NS_PER_SEC; /* while it has names that nobody knows */
static const int64_t sweep_round_ns = 10 * NS_PER_SEC;
static const int64_t longest_spooled_ns = 30 * 24 * 3600 * NS_PER_SEC;
static const int64_t longest_spool_pause_ns = 300 * NS_PER_SEC;

enum {
    PUSH_BYTES = 64 << 20,
    HEADERS_BYTES = 64 << 10, /* more than what a collector writes beside its samples */
    /* For what no job decides: GPU drivers, Lustre's targets, the spool, walks. */
    OTHER_FILES = 128,
};

struct agent {
    int argc;
    char **argv;
    struct arena first_arena; /* of the settings that the parts were started with */
    struct agent_settings first;
    struct arena arena; /* of the newest, once they have been read again */
    struct agent_settings settings;
    struct log *log;
    const struct clock *clock;
    struct stop_guard *guard; /* NULL: not started yet */
    struct bulletin_board *board;
    struct bulletins *bulletins;
    struct http_server *server;
    struct users *users;
    struct cgroup_rows *rows;
    struct pattern *scratch; /* NULL: nobody asks for it */
    struct gpus *gpus;
    struct lustre_targets *lustre;
    struct pusher *_Atomic pusher;   /* NULL: nothing is pushed, or not yet */
    struct sweeper *_Atomic sweeper; /* likewise */
    struct spool *_Atomic spool;     /* likewise */
    struct sampler *sampler;
    pthread_mutex_t reloading; /* one at a time: a signal and a request may both ask */
};

static const char *text_or_null(struct str text)
{
    return text.n ? text.p : NULL;
}

/* Everything or nothing: whatever can fail comes before whatever takes effect. */
static int reload_all(struct agent *agent, struct err *err)
{
    struct arena arena = { 0 };
    struct agent_settings settings = { 0 };
    struct sampler_tuning tuning;
    struct bulletins_tuning serving;
    int code = agent_settings_parse(agent->argc, agent->argv, &arena, &settings, err);

    if (code == 0)
        code = agent_settings_check_reload(&agent->settings, &settings, err);
    if (code == 0)
        code = http_reload(agent->server, err);
    if (code < 0) {
        arena_clear(&arena);
        return code;
    }
    tuning = agent_settings_tuning(&settings);
    serving = agent_settings_serving(&settings);
    sampler_tune(agent->sampler, &tuning);
    bulletins_tune(agent->bulletins, &serving);
    serve_use_log_level(agent->log, &settings.serve);
    arena_clear(&agent->arena);
    agent->arena = arena;
    agent->settings = settings;
    return 0;
}

static void warn_of_unknown_users(const struct agent *agent)
{
    const struct blacklist *skipped = &agent->settings.skipped;

    if (skipped->n_unknown)
        LOG(agent->log, LOG_WARN,
            "users of --blacklist are not known; their jobs are looked at until they are",
            LOG_INT("users", skipped->n_unknown), LOG_STR("first", skipped->first_unknown));
}

static int reload(void *ctx, struct err *err)
{
    struct agent *agent = ctx;
    int code;

    pthread_mutex_lock(&agent->reloading);
    code = reload_all(agent, err);
    if (code < 0) {
        LOG(agent->log, LOG_ERROR, "configuration not reloaded, the old one stays",
            LOG_STR("error", err->text));
    } else {
        LOG(agent->log, LOG_INFO, "configuration reloaded");
        warn_of_unknown_users(agent);
    }
    pthread_mutex_unlock(&agent->reloading);
    return code;
}

/* The directory may know them by now. */
static void look_for_unknown_users(struct agent *agent)
{
    struct agent_settings *settings = &agent->settings;
    struct blacklist skipped;
    struct err err;

    pthread_mutex_lock(&agent->reloading);
    if (settings->skipped.n_unknown &&
        blacklist_read(settings->blacklist.p, users_find, &agent->arena, &skipped, &err) == 0 &&
        skipped.n_unknown < settings->skipped.n_unknown) {
        struct sampler_tuning tuning;

        settings->skipped = skipped;
        tuning = agent_settings_tuning(settings);
        sampler_tune(agent->sampler, &tuning);
    }
    pthread_mutex_unlock(&agent->reloading);
}

/* Until a signal ends it. */
static void serve(struct agent *agent)
{
    for (;;) {
        struct err err = { 0 };
        int signal = stop_guard_wait(agent->guard, blacklist_retry_ns);

        if (signal == SIGHUP) {
            stop_guard_part(agent->guard, "reload");
            reload(agent, &err);
        } else if (signal) {
            return;
        } else {
            stop_guard_part(agent->guard, "lookup of users");
            look_for_unknown_users(agent);
        }
    }
}

static void tell_pushes(const struct agent *agent, struct agent_self *to)
{
    struct pusher *pusher = agent->pusher;
    struct push_stats stats;

    if (!pusher)
        return;
    pusher_stats(pusher, &stats);
    to->is_pushing = true;
    to->pushes = stats.pushes;
    to->push_failures = stats.failures;
    to->pushes_replaced = stats.replaced;
    to->pushes_refused = stats.refused;
    to->push_is_up = stats.is_up;
    to->push_seconds = stats.last_seconds;
    to->push_success_wall_ns = stats.last_success_wall_ns;
}

static void tell_sweeps(const struct agent *agent, struct agent_self *to)
{
    struct sweeper *sweeper = agent->sweeper;
    struct sweeper_stats stats;

    if (!sweeper)
        return;
    sweeper_stats(sweeper, &stats);
    to->is_sweeping = true;
    to->swept_groups = stats.swept;
    to->sweep_failures = stats.failures;
}

static void tell_spool(const struct agent *agent, struct agent_self *to)
{
    struct spool *spool = agent->spool;
    struct spool_stats stats;

    if (!spool)
        return;
    spool_stats(spool, &stats);
    to->is_handing_in = true;
    to->ingest_is_up = stats.is_up;
    to->ingest_is_retention_paused = stats.is_retention_paused;
    to->ingest_records = stats.records;
    to->ingest_posted = stats.posted;
    to->ingest_dropped = stats.dropped;
    to->ingest_failures = stats.failures;
    to->ingest_on_disk = stats.waiting - stats.in_memory;
    to->ingest_in_memory = stats.in_memory;
    to->ingest_bytes = stats.waiting_bytes;
    to->ingest_success_wall_ns = stats.last_success_wall_ns;
}

static void tell_gateways(void *ctx, struct agent_self *to)
{
    tell_pushes(ctx, to);
    tell_sweeps(ctx, to);
    tell_spool(ctx, to);
}

static int start_pusher(struct agent *agent, struct err *err)
{
    const struct agent_settings *settings = &agent->first;
    const struct push_config config = {
        .url = settings->push.url.p,
        .job = settings->push.job.p,
        .password_file = text_or_null(settings->push.password_file),
        .ca_file = text_or_null(settings->push.ca_file),
        .timeout_ns = settings->push.timeout_ns,
        .retry_ns = NS_PER_SEC,
        .max_backoff_ns = 60 * NS_PER_SEC,
        .max_text = PUSH_BYTES,
        .clock = agent->clock,
        .log = agent->log,
    };
    struct pusher *pusher;

    if (!settings->push.url.n)
        return 0;
    if (pusher_start(&config, &pusher, err) < 0)
        return err_prefix(err, "--push.url");
    agent->pusher = pusher;
    return 0;
}

static int start_sweeper(struct agent *agent, struct err *err)
{
    const struct agent_settings *settings = &agent->first;
    const struct sweeper_config config = {
        .url = settings->profile_gateway.p,
        .password_file = text_or_null(settings->profile_password_file),
        .ca_file = text_or_null(settings->push.ca_file),
        .proc = settings->procfs.p,
        .host = settings->node_name,
        .slurmd_uid = settings->slurmd_uid,
        .timeout_ns = settings->push.timeout_ns,
        .round_ns = sweep_round_ns,
        .clock = agent->clock,
        .log = agent->log,
    };
    struct sweeper *sweeper;

    if (!settings->profile_gateway.n)
        return 0;
    if (sweeper_start(&config, &sweeper, err) < 0)
        return err_prefix(err, "--profile.pushgateway");
    agent->sweeper = sweeper;
    return 0;
}

static int start_spool(struct agent *agent, struct err *err)
{
    const struct agent_settings *settings = &agent->first;
    const struct spool_config config = {
        .directory = settings->ingest.spool.p,
        .url = settings->ingest.url.p,
        .token_file = text_or_null(settings->ingest.token_file),
        .munge_socket = text_or_null(settings->ingest.munge_socket),
        .ca_file = text_or_null(settings->ingest.ca_file),
        .cluster = settings->ingest.cluster.n ? settings->ingest.cluster.p : "",
        .timeout_ns = settings->ingest.timeout_ns,
        .retry_ns = NS_PER_SEC,
        .max_backoff_ns = longest_spool_pause_ns,
        .max_bytes = settings->ingest.max_bytes,
        .max_age_ns = longest_spooled_ns,
        .clock = agent->clock,
        .log = agent->log,
    };
    struct spool *spool;

    if (!settings->ingest.url.n)
        return 0;
    if (spool_start(&config, &spool, err) < 0)
        return err_prefix(err, "--ingest.url");
    if (config.token_file && secret_check(config.token_file, "token", err) < 0)
        LOG(agent->log, LOG_WARN, "the file of --ingest.token-file will not do",
            LOG_STR("error", err->text));
    agent->spool = spool;
    return 0;
}

static int read_layouts(struct agent *agent, struct err *err)
{
    const struct option_list *layouts = &agent->first.layouts;

    agent->rows = cgroup_rows_new();
    for (size_t i = 0; i < layouts->n; i++)
        if (cgroup_rows_add(agent->rows, layouts->items[i], err) < 0)
            return err_prefix(err, "--cgroup.layout");
    return 0;
}

static int start_server(struct agent *agent, struct err *err)
{
    const struct bulletins_config config = {
        .path = agent->first.serve.telemetry_path.p,
        .node = agent->first.node_name,
        .board = agent->board,
        .clock = agent->clock,
        .reload = reload,
        .tell_pushes = tell_gateways,
        .ctx = agent,
    };
    const struct bulletins_tuning tuning = agent_settings_serving(&agent->first);
    struct http_config http = serve_http_config(&agent->first.serve, &clock_real, agent->log);

    agent->bulletins = bulletins_new(&config, &tuning);
    http.routes = bulletins_routes(agent->bulletins);
    http.ctx = agent->bulletins;
    http.workers = 1;
    http.max_header = 8 * 1024;
    return http_start(&http, &agent->server, err);
}

static int start_gpus(struct agent *agent, struct err *err)
{
    const struct gpus_config config = {
        .nvml = text_or_null(agent->first.nvml),
        .sys = agent->first.sysfs.p,
        .proc = agent->first.procfs.p,
        .clock = agent->clock,
    };

    return gpus_start(&config, &agent->gpus, err);
}

static int start_lustre(struct agent *agent, struct err *err)
{
    const struct lustre_targets_config config = {
        .proc = agent->first.procfs.p,
        .sys = agent->first.sysfs.p,
        .lctl = text_or_null(agent->first.lctl),
        .max_ids = agent->first.max_lustre_ids,
        .max_text_bytes = agent->first.publish.max_segment - HEADERS_BYTES,
        .clock = agent->clock,
    };

    return lustre_targets_start(&config, &agent->lustre, err);
}

/* What jobs may make the sampler keep open: never what HTTP connections and other parts need. */
static size_t files_for_jobs(const struct agent *agent)
{
    struct rlimit files = { .rlim_cur = 1024 };
    size_t reserved = http_max_descriptors(agent->server) + OTHER_FILES;

    getrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur > reserved ? files.rlim_cur - reserved : 0;
}

static int start_sampler(struct agent *agent, struct err *err)
{
    const struct sampler_config config = {
        .tuning = agent_settings_tuning(&agent->first),
        .proc = agent->first.procfs.p,
        .sys = agent->first.sysfs.p,
        .host = agent->first.node_name,
        .rows = agent->rows,
        .scratch = agent->scratch,
        .slurmd_uid = agent->first.slurmd_uid,
        .profile_socket = text_or_null(agent->first.profile_socket),
        .max_jobs = agent->first.max_jobs,
        .max_processes = agent->first.max_processes,
        .max_files = files_for_jobs(agent),
        .users = agent->users,
        .gpus = agent->gpus,
        .lustre = agent->lustre,
        .board = agent->board,
        .pusher = agent->pusher,
        .sweeper = agent->sweeper,
        .spool = agent->spool,
        .clock = agent->clock,
        .log = agent->log,
    };

    return sampler_start(&config, &agent->sampler, err);
}

static int read_scratch(struct agent *agent, struct err *err)
{
    if (agent->first.scratch.n && pattern_new(agent->first.scratch, &agent->scratch, err) < 0)
        return err_prefix(err, "--scratch.pattern");
    return 0;
}

/* The server before what leaves traces elsewhere: where another agent has the port, this one must
 * not push, nor delete what the other has pushed. */
static int start(struct agent *agent, struct err *err)
{
    int code = read_layouts(agent, err);

    agent->board = bulletin_board_new();
    agent->users = users_new(&users_system, &clock_real);
    if (code == 0)
        code = read_scratch(agent, err);
    if (code == 0)
        code = start_server(agent, err);
    if (code == 0)
        code = start_pusher(agent, err);
    if (code == 0)
        code = start_sweeper(agent, err);
    if (code == 0)
        code = start_spool(agent, err);
    if (code == 0)
        code = start_gpus(agent, err);
    if (code == 0)
        code = start_lustre(agent, err);
    if (code == 0)
        code = start_sampler(agent, err);
    if (code == 0)
        bulletins_set_server(agent->bulletins, agent->server);
    return code;
}

/* What ended jobs used is all that the agent has to lose; the sampler may have added to it. */
static void save(void *ctx, int64_t until_ns)
{
    struct agent *agent = ctx;

    if (!spool_save(agent->spool, until_ns))
        LOG(agent->log, LOG_ERROR, "what some ended jobs used is lost: the disk did not take it");
}

/* The spool is the first that is waited for: whatever hangs, records of ended jobs are on disk.
 * Deleting on the Pushgateway goes on meanwhile. */
static void stop_parts(struct agent *agent)
{
    struct stop_guard *guard = agent->guard;

    pusher_end(agent->pusher, stop_guard_left(guard));
    stop_guard_writer(guard, "spool");
    spool_save(agent->spool, INT64_MAX);
    stop_guard_part(guard, "HTTP server");
    http_stop(agent->server);
    stop_guard_part(guard, "sampler");
    sampler_stop(agent->sampler);
    stop_guard_writer(guard, "spool");
    spool_save(agent->spool, INT64_MAX);
    stop_guard_use(guard, &(struct stop_guard_hooks){ 0 });
    stop_guard_part(guard, "posts to --ingest.url");
    spool_stop(agent->spool, stop_guard_left(guard));
    stop_guard_part(guard, "requests to --profile.pushgateway");
    sweeper_stop(agent->sweeper);
    stop_guard_part(guard, "requests to --push.url");
    pusher_stop(agent->pusher, 0);
    stop_guard_part(guard, "GPU drivers");
    gpus_stop(agent->gpus);
    stop_guard_part(guard, "Lustre");
    lustre_targets_stop(agent->lustre);
    stop_guard_part(guard, "lookup of users");
    users_free(agent->users);
    stop_guard_end(guard);
}

static void stop(struct agent *agent)
{
    stop_parts(agent);
    bulletins_free(agent->bulletins);
    bulletin_board_free(agent->board);
    cgroup_rows_free(agent->rows);
    pattern_free(agent->scratch);
    log_free(agent->log);
    arena_clear(&agent->arena);
    arena_clear(&agent->first_arena);
    pthread_mutex_destroy(&agent->reloading);
}

/* Where only root may make it. What cannot be done here, the spool tells of. */
static void make_spool_directory(const struct agent *agent)
{
    const char *path = text_or_null(agent->first.ingest.spool);
    const char *user = text_or_null(agent->first.user);
    uint64_t number;
    uint32_t uid;

    if (!agent->first.ingest.url.n || !path || mkdir(path, 0700) < 0 || !user)
        return;
    if (num_get_u64(str_of(user), &number) && number < UINT32_MAX)
        uid = (uint32_t)number;
    else if (users_find(user, &uid) < 0)
        return;
    if (chown(path, uid, (gid_t)-1) < 0)
        rmdir(path); /* better none than one that is root's */
}

static int give_up_privileges(struct agent *agent, struct err *err)
{
    uint32_t missing;
    int code = privileges_keep(privileges, COUNT(privileges), text_or_null(agent->first.user),
                               &missing, err);

    for (size_t i = 0; i < COUNT(privileges) && code == 0; i++)
        if (missing & UINT32_C(1) << i)
            LOG(agent->log, LOG_WARN, "a capability is missing",
                LOG_STR("capability", privileges[i].name), LOG_STR("lost", privileges[i].lost));
    return code;
}

/* Every page counts on a compute node. One arena: threads here wait more than they allocate. What a
 * tick builds and frees comes as mappings and goes back at once. No huge pages: one for each stack
 * would be more than all the rest. */
static void be_small(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

int main(int argc, char **argv)
{
    struct agent agent = { .argc = argc, .argv = argv, .clock = clock_of_environment() };
    struct err err = { 0 };
    sigset_t signals;
    int outcome, code;

    be_small();
    process_keep_standard_fds();
    outcome = agent_settings_parse(argc, argv, &agent.first_arena, &agent.first, &err);
    if (outcome != OPTION_GO_ON) {
        if (outcome < 0)
            fprintf(stderr, "sonde agent: %s\n", err.text);
        arena_clear(&agent.first_arena);
        return outcome < 0 ? 2 : 0;
    }
    agent.settings = agent.first;
    serve_prepare(&signals);
    pthread_mutex_init(&agent.reloading, NULL);
    agent.log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    serve_use_log_level(agent.log, &agent.first.serve);
    privileges_lower_priority();

    /* A request to reload may come as soon as there is a server. */
    pthread_mutex_lock(&agent.reloading);
    make_spool_directory(&agent);
    code = give_up_privileges(&agent, &err);
    if (code == 0)
        code = stop_guard_start(&signals, agent.clock, agent.log, &agent.guard, &err);
    if (code == 0) {
        stop_guard_use(agent.guard, &(struct stop_guard_hooks){ .save = save, .ctx = &agent });
        code = start(&agent, &err);
    }
    if (code == 0) {
        serve_say_where("sonde agent", agent.server, agent.first.serve.telemetry_path);
        warn_of_unknown_users(&agent);
        process_forget_start();
    }
    pthread_mutex_unlock(&agent.reloading);
    if (code == 0) {
        serve(&agent);
    } else {
        fprintf(stderr, "sonde agent: %s\n", err.text);
        stop_guard_fail(agent.guard, serve_exit_status(code));
    }
    stop(&agent);
    return serve_exit_status(code);
}
