/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of cmd/up_settings: options of `sonde up`. */
#include "test.h"

#include "cmd/up_settings.h"

static const struct exporter_hooks hooks = {
    .settings_size = sizeof(struct up_settings),
    .make_options = up_settings_make_options,
    .complete = up_settings_complete,
    .read = up_settings_read,
    .changed = up_settings_changed,
};
static const struct exporter_shape shape = {
    .name = "sonde up", .address = "127.0.0.1:8080", .connections = "4096", .hooks = &hooks
};

struct fixture {
    struct arena arena;
    struct up_settings settings;
    struct err err;
};

static struct fixture *f;

static void set_up(void)
{
    f = heap_alloc(sizeof(struct fixture));
    setenv("XDG_STATE_HOME", "/somewhere/state", 1);
    setenv("TMPDIR", "/tmp", 1);
    unsetenv("SONDE_STORE");
}

static void tear_down(void)
{
    arena_clear(&f->arena);
    free(f);
}

FIXTURE(set_up, tear_down)

static int parse(struct up_settings *to, const char *a, const char *b)
{
    char *argv[] = { (char *)"up", (char *)a, (char *)b, NULL };
    int argc = 1 + !!a + !!(a && b);

    return settings_parse(&shape, argc, argv, &f->arena, &to->exporter, &f->err);
}

static const struct up_settings *parsed(const char *a, const char *b)
{
    if (parse(&f->settings, a, b) != 0)
        fail_msg("%s", f->err.text);
    return &f->settings;
}

TEST(nothing_has_to_be_said)
{
    const struct up_settings *settings = parsed(NULL, NULL);

    assert_str(settings->exporter.serve.listen.items[0], "127.0.0.1:8080");
    assert_true(settings_want_store(&settings->exporter));
    assert_true(settings->series.path.n > 0);
    assert_true(settings->has_agent);
    assert_true(settings->exporter.keeps_facts);
    assert_false(settings->is_demo);
}

TEST(what_is_kept_is_kept_in_the_state_directory)
{
    const struct up_settings *settings = parsed("--state.directory=/srv/x", NULL);

    assert_str(settings->exporter.store.url, "sqlite:/srv/x/sonde.db");
    assert_str(settings->series.path, "/srv/x/series.db");
    assert_false(settings->has_own_directory);
}

TEST(a_plain_user_has_a_state_directory_of_their_own)
{
    const struct up_settings *settings = parsed(NULL, NULL);

    assert_str(settings->state_dir, geteuid() == 0 ? "/var/lib/sonde" : "/somewhere/state/sonde");
    assert_true(settings->has_own_directory);
}

TEST(store_and_series_can_be_left_out)
{
    const struct up_settings *settings = parsed("--store=", "--series.path=");

    assert_false(settings_want_store(&settings->exporter));
    assert_int_equal(settings->series.path.n, 0);
}

TEST(a_demo_is_simulated_small_and_in_a_directory_of_its_own)
{
    const struct up_settings *settings = parsed("--demo", NULL);

    assert_true(settings->is_demo);
    assert_true(settings->has_own_directory);
    assert_str(settings->exporter.clusters[0].source.source, "sim:nodes=64");
    assert_true(str_starts(settings->state_dir, STR("/tmp/sonde-demo-")));
    assert_true(str_starts(settings->exporter.store.url, STR("sqlite:/tmp/sonde-demo-")));
    assert_false(settings->has_agent); /* it would see what is real */
}

TEST(any_simulated_cluster_is_a_demo)
{
    const struct up_settings *settings = parsed("--source=sim:nodes=3", NULL);

    assert_true(settings->is_demo);
    assert_str(settings->exporter.clusters[0].source.source, "sim:nodes=3");
    assert_false(settings->has_agent);
}

TEST(a_demo_and_a_source_exclude_each_other)
{
    assert_int_equal(parse(&f->settings, "--demo", "--source=cli"), -EINVAL);
    assert_contains(f->err.text, "--demo and --source exclude each other");
}

TEST(slurmdbd_is_asked_only_where_there_is_sacct)
{
    assert_false(parsed("--slurm.bin-path=/nonexistent", NULL)->exporter.store.history.is_on);
    assert_true(
        parsed("--slurm.bin-path=/nonexistent", "--store.history")->exporter.store.history.is_on);
    assert_true(parsed("--slurm.prefix=ssh login1", NULL)->exporter.store.history.is_on);
}

TEST(mistakes_are_told)
{
    static const struct {
        const char *flag, *says;
    } cases[] = {
        { "--state.directory=x", "--state.directory must begin with /" },
        { "--series.interval=0s", "--series.interval must be at least 1s" },
        { "--web.auth=perhaps", "none basic proxy" },
        { "--web.acuth=none", "did you mean --web.auth?" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(parse(&f->settings, cases[i].flag, NULL), -EINVAL);
        assert_contains(f->err.text, cases[i].says);
    }
}

TEST(what_cannot_be_changed_under_way_is_named)
{
    static const struct {
        const char *flag, *says;
    } cases[] = {
        { "--web.staff=alice", "who may see what" },
        { "--series.retention=1d", "how series are kept" },
        { "--no-agent", "agent" },
        { "--user=somebody", "user" },
        { "--state.directory=/other", "has changed: restart sonde" },
    };
    struct up_settings new;

    parsed(NULL, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        new = (struct up_settings){ 0 };
        assert_int_equal(parse(&new, cases[i].flag, NULL), 0);
        assert_int_equal(
            settings_check_reload(&shape, &f->settings.exporter, &new.exporter, &f->err), -EINVAL);
        assert_contains(f->err.text, cases[i].says);
    }
    new = (struct up_settings){ 0 };
    assert_int_equal(parse(&new, "--slurm.poll-limit=30s", NULL), 0);
    assert_int_equal(settings_check_reload(&shape, &f->settings.exporter, &new.exporter, &f->err),
                     0);
}
