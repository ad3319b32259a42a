/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of cmd/agent_settings: options of the agent. */
#include "test.h"

#include "cmd/agent_settings.h"
#include "files.h"

static struct arena arena;
static struct agent_settings settings;
static struct err err;

#define ARGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static int parse_as(const char *name, struct agent_settings *to, const char *const *args)
{
    char *argv[16] = { (char *)(uintptr_t)name };
    int argc = 1;

    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    *to = (struct agent_settings){ 0 };
    return agent_settings_parse(argc, argv, &arena, to, &err);
}

static void parse(const char *const *args)
{
    if (parse_as("agent", &settings, args) != OPTION_GO_ON)
        fail_msg("%s", err.text);
}

static void assert_refused(const char *const *args, const char *sentence)
{
    assert_int_equal(parse_as("agent", &settings, args), -EINVAL);
    assert_contains(err.text, sentence);
}

static bool is_on(const char *collector)
{
    int i = usage_collector_find(str_of(collector));

    assert_true(i >= 0);
    return settings.publish.collectors & (usage_collector_set)1 << i;
}

TEST(without_flags_it_serves_on_9798_every_15_seconds)
{
    char host[256];

    parse(ARGS());
    gethostname(host, sizeof(host));
    host[strcspn(host, ".")] = '\0';
    assert_str(settings.serve.listen.items[0], ":9798");
    assert_int_equal(settings.tick_ns, 15 * NS_PER_SEC);
    assert_int_equal(settings.linger_ns, 120 * NS_PER_SEC);
    assert_string_equal(settings.node_name, host);
    assert_int_equal(settings.slurmd_uid, 0);
    assert_str(settings.push.url, "");
    assert_str(settings.ingest.url, "");
    assert_str(settings.ingest.spool, "/var/spool/sonde");
    assert_int_equal(settings.ingest.max_bytes, 64 << 20);
    assert_str(settings.profile_socket, "/run/sonde/profile.sock");
    assert_true(is_on("profile"));
    assert_true(is_on("lustre"));
    assert_int_equal(settings.max_lustre_ids, 500);
    assert_str(settings.lctl, "lctl");
    assert_int_equal(settings.skipped.n, 0);
    assert_int_equal(agent_settings_serving(&settings).stale_ns, 75 * NS_PER_SEC);
}

TEST(the_flags_of_jobs_exporter_work)
{
    const char *path = write_file("users", "2001\n0\n");

    parse(ARGS("-t", "15", "-b", path));
    assert_int_equal(settings.tick_ns, 15 * NS_PER_SEC);
    assert_int_equal(agent_settings_tuning(&settings).n_skipped, 2);
    assert_int_equal(agent_settings_tuning(&settings).skipped[1], 2001);
    parse(ARGS("--timer", "90s", "--blacklist", path));
    assert_int_equal(settings.tick_ns, 90 * NS_PER_SEC);
    assert_int_equal(agent_settings_serving(&settings).stale_ns, 450 * NS_PER_SEC);
    parse(ARGS("-t", "500ms"));
    assert_int_equal(agent_settings_serving(&settings).stale_ns, 30 * NS_PER_SEC);
}

TEST(by_the_name_of_jobs_exporter_it_pushes_where_that_did)
{
    assert_int_equal(parse_as("/usr/bin/jobs_exporter", &settings, ARGS()), OPTION_GO_ON);
    assert_str(settings.push.url, "http://localhost:9091");
    assert_str(settings.push.job, "jobs_exporter");
    assert_int_equal(parse_as("jobs_exporter", &settings, ARGS("--push.url=")), OPTION_GO_ON);
    assert_str(settings.push.url, "");
    assert_int_equal(parse_as("my_jobs_exporter", &settings, ARGS()), OPTION_GO_ON);
    assert_str(settings.push.url, "");
}

TEST(what_systemd_gives_it_to_keep_things_in_is_its_spool)
{
    setenv("STATE_DIRECTORY", "/var/lib/sonde-agent", 1);
    parse(ARGS());
    assert_str(settings.ingest.spool, "/var/lib/sonde-agent");
    parse(ARGS("--ingest.spool-dir=/else"));
    assert_str(settings.ingest.spool, "/else");
    unsetenv("STATE_DIRECTORY");
}

TEST(collectors_are_switched)
{
    parse(ARGS());
    assert_true(is_on("jobs"));
    assert_false(is_on("steps"));
    parse(ARGS("--collector.steps", "--no-collector.jobs"));
    assert_false(is_on("jobs"));
    assert_true(is_on("steps"));
    assert_true(is_on("cgroup"));
    parse(ARGS("--collector.disable-defaults", "--collector.cgroup"));
    assert_true(is_on("cgroup"));
    assert_int_equal(__builtin_popcount(settings.publish.collectors), 1);
}

TEST(metrics_are_excluded_by_name)
{
    size_t i = 0, jobs = (size_t)usage_collector_find(STR("jobs"));

    parse(ARGS("--metrics.exclude=^jobs_rss$|sonde_agent_up"));
    assert_int_equal(__builtin_popcountll((uint64_t)settings.publish.excluded[jobs]), 1);
    while (strcmp(agent_self_families[i].name, "sonde_agent_up") != 0)
        i++;
    assert_int_equal(settings.excluded_self >> i, 1);
}

TEST(mistakes_are_told)
{
    char long_name[100] = "--node.name=";

    memset(long_name + strlen(long_name), 'n', 65);
    const char *path = write_file("users", "root\nnot a user\n");
    assert_refused(ARGS("-t", "0"), "--timer must be from 100ms to 1h");
    assert_refused(ARGS("--timer=2h"), "--timer must be from 100ms to 1h");
    assert_refused(ARGS("--job.linger=2d"), "--job.linger must be at most 24h");
    assert_refused(ARGS("--max-jobs=0"), "--max-jobs must be from 1 to 65536");
    assert_refused(ARGS("--processes.max-names=1001"), "--processes.max-names must be from 0");
    assert_refused(ARGS("--lustre.max-ids=0"), "--lustre.max-ids must be from 1 to 10000");
    assert_refused(ARGS("-b", "/nowhere"), "--blacklist: cannot read /nowhere");
    assert_refused(ARGS("-b", path), ":2: \"not a user\" is neither a user id nor a user name");
    assert_refused(ARGS("--slurmd.user=no-such-user"), "--slurmd.user: there is no user");
    assert_refused(ARGS("--metrics.exclude=("), "--metrics.exclude: \"(\" is not a regular");
    assert_refused(ARGS("--web.telemetry-path=metrics"), "must begin with /");
    assert_refused(ARGS("--push.url=http://x:1", "--push.job="), "--push.job must not be empty");
    assert_refused(ARGS("--push.timeout=0"), "--push.timeout must be more than 0");
    assert_refused(ARGS("--ingest.url=http://x:1", "--ingest.token-file=x", "--ingest.spool-dir="),
                   "--ingest.spool-dir must not be empty");
    assert_refused(ARGS("--ingest.timeout=0"), "--ingest.timeout must be more than 0");
    assert_refused(ARGS("--ingest.spool-size=1000K"), "--ingest.spool-size must be at least 1M");
    assert_refused(ARGS(long_name), "the name of the node must have from 1 to 64 bytes");
    assert_refused(ARGS("--collector.job"), "did you mean --collector.jobs?");
}

TEST(some_things_cannot_change_under_way)
{
    static const struct {
        const char *flag, *name;
    } rows[] = {
        { "--web.listen-address=:1", "web.listen-address" },
        { "--web.max-connections=3", "web.max-connections" },
        { "--scratch.pattern=tmp", "scratch.pattern" },
        { "--node.name=other", "node.name" },
        { "--slurmd.user=1", "slurmd.user" },
        { "--cgroup.layout=x=v2:x/{job}", "cgroup.layout" },
        { "--profile.socket=", "profile.socket" },
        { "--gpu.nvml=/x.so", "gpu.nvml" },
        { "--lustre.max-ids=7", "lustre.max-ids" },
        { "--lustre.lctl=", "lustre.lctl" },
        { "--path.procfs=/x", "path.procfs" },
        { "--path.sysfs=/x", "path.sysfs" },
        { "--user=1", "user" },
        { "--max-jobs=1", "max-jobs" },
        { "--max-processes=1", "max-processes" },
        { "--push.url=http://x:1", "push.url" },
        { "--push.timeout=1s", "push.timeout" },
        { "--ingest.token-file=x", "ingest.token-file" },
        { "--ingest.munge-socket=x", "ingest.munge-socket" },
        { "--ingest.ca-file=x", "ingest.ca-file" },
        { "--ingest.cluster=x", "ingest.cluster" },
        { "--ingest.spool-dir=/x", "ingest.spool-dir" },
        { "--ingest.timeout=1s", "ingest.timeout" },
        { "--ingest.spool-size=1M", "ingest.spool-size" },
    };
    struct agent_settings old;

    assert_int_equal(parse_as("agent", &old, ARGS()), OPTION_GO_ON);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char sentence[100];

        parse(ARGS(rows[i].flag));
        snprintf(sentence, sizeof(sentence), "%s has changed: restart sonde for that",
                 rows[i].name);
        assert_int_equal(agent_settings_check_reload(&old, &settings, &err), -EINVAL);
        assert_string_equal(err.text, sentence);
    }
    parse(ARGS("-t", "5", "--job.linger=1m", "--no-collector.gpu", "--metrics.exclude=rss",
               "--log.level=debug", "--processes.max-names=3"));
    assert_int_equal(agent_settings_check_reload(&old, &settings, &err), 0);
}

static void tear_down(void)
{
    arena_clear(&arena);
}

PROGRAM_FIXTURE(NULL, tear_down)
