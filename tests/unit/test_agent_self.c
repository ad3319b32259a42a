/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of collector/agent_self: metrics of the agent about itself. */
#include "test.h"

#include "base/arena.h"
#include "base/map.h"
#include "collector/agent_self.h"

static struct buf collect(const struct agent_self *self, enum metric_format format)
{
    struct metric_writer writer;
    struct buf text;

    buf_init(&text, 1 << 20);
    metric_writer_init(&writer, &text, format, STR(""), agent_self_families, n_agent_self_families);
    agent_self_collect(self, &writer);
    assert_int_equal(writer.duplicates, 0);
    metric_writer_free(&writer);
    return text;
}

static bool has(const struct buf *text, const char *part)
{
    return str_find_str(buf_str(text), str_of(part)) < text->n;
}

TEST(everything_that_the_sampler_counts_is_told)
{
    static const char *const lines[] = {
        "sonde_agent_info{node=\"n1\"} 1\n",
        "sonde_agent_up 1\n",
        "sonde_agent_last_sample_timestamp_seconds 1794744000.5\n",
        "sonde_agent_sample_age_seconds 2.5\n",
        "sonde_agent_samples_total{cause=\"tick\"} 1\n",
        "sonde_agent_samples_total{cause=\"event\"} 2\n",
        "sonde_agent_tick_duration_seconds 0.25\n",
        "sonde_agent_tick_cpu_seconds 0.125\n",
        "sonde_agent_jobs{state=\"running\"} 3\n",
        "sonde_agent_jobs{state=\"ended\"} 4\n",
        "sonde_agent_processes 5\n",
        "sonde_agent_leftover_cgroups 6\n",
        "sonde_agent_watched_directories 7\n",
        "sonde_agent_open_files 8\n",
        "sonde_agent_refused_jobs_total 9\n",
        "sonde_agent_refused_processes 10\n",
        "sonde_agent_walks_total 11\n",
        "sonde_agent_watch_overflows_total 12\n",
        "sonde_agent_exit_records 1\n",
        "sonde_agent_exits_total 13\n",
        "sonde_agent_exits_lost_total 14\n",
        "sonde_agent_exits_unattributed_total 15\n",
        "sonde_agent_may_read_processes 1\n",
        "sonde_agent_has_cgroups 1\n",
        "sonde_agent_profile_messages_total 17\n",
        "sonde_agent_profile_refused_total{reason=\"sender\"} 18\n",
        "sonde_agent_profile_refused_total{reason=\"garbled\"} 19\n",
        "sonde_agent_profile_refused_total{reason=\"version\"} 20\n",
        "sonde_agent_profile_refused_total{reason=\"full\"} 21\n",
        "sonde_agent_profile_steps 22\n",
        "sonde_agent_profile_values 23\n",
        "sonde_agent_gpu_up 0\n",
        "sonde_build_info{version=\"" SONDE_VERSION "\"} 1\n",
        "process_cpu_seconds_total 0\n",
        "sonde_http_requests_total 16\n",
    };
    const struct bulletin bulletin = {
        .gpu_up = 0,
        .agent = { .ticks = 1,
                   .events = 2,
                   .tick_seconds = 0.25,
                   .tick_cpu_seconds = 0.125,
                   .jobs = 3,
                   .ended_jobs = 4,
                   .processes = 5,
                   .leftover_cgroups = 6,
                   .watched_directories = 7,
                   .open_files = 8,
                   .jobs_refused = 9,
                   .processes_refused = 10,
                   .scans = 11,
                   .scan_overflows = 12,
                   .has_exit_records = true,
                   .exits = 13,
                   .exits_lost = 14,
                   .exits_unattributed = 15,
                   .may_read_processes = true,
                   .has_cgroups = true,
                   .hears_profiles = true,
                   .profile_messages = 17,
                   .profile_refused = { 18, 19, 20, 21 },
                   .profile_steps = 22,
                   .profile_values = 23,
                   .sampled_wall_ns = 1794744000 * NS_PER_SEC + NS_PER_SEC / 2,
                   .sampled_mono_ns = 10 * NS_PER_SEC },
    };
    const struct agent_self self = {
        .node = "n1",
        .bulletin = &bulletin,
        .mono_ns = 12 * NS_PER_SEC + NS_PER_SEC / 2,
        .program = { .http_requests = 16 },
    };
    struct buf text = collect(&self, METRIC_TEXT);

    for (size_t i = 0; i < COUNT(lines); i++)
        assert_contains(text.p, lines[i]);
    assert_false(has(&text, "push"));
    buf_free(&text);
}

TEST(what_is_not_known_is_absent)
{
    const struct bulletin without_gpus = { .gpu_up = -1 };
    struct agent_self self = { .node = "n1", .is_pushing = true, .pushes = 3, .push_is_up = true };
    struct buf text = collect(&self, METRIC_OPENMETRICS);

    assert_true(has(&text, "sonde_agent_up 0\n"));
    assert_false(has(&text, "sonde_agent_sample"));
    assert_false(has(&text, "sonde_agent_jobs"));
    assert_true(has(&text, "sonde_agent_pushes_total 3\n"));
    assert_true(has(&text, "sonde_agent_push_up 1\n"));
    assert_false(has(&text, "sonde_agent_last_push_timestamp_seconds"));
    buf_free(&text);
    self.bulletin = &without_gpus;
    self.is_stale = true;
    self.push_success_wall_ns = 5 * NS_PER_SEC;
    text = collect(&self, METRIC_TEXT);
    assert_true(has(&text, "sonde_agent_up 0\n"));
    assert_true(has(&text, "sonde_agent_sample_age_seconds"));
    assert_true(has(&text, "sonde_agent_samples_total{cause=\"tick\"} 0\n"));
    assert_false(has(&text, "sonde_agent_gpu_up"));
    assert_false(has(&text, "sonde_agent_jobs"));
    assert_false(has(&text, "sonde_agent_processes"));
    assert_false(has(&text, "sonde_agent_has_cgroups"));
    assert_false(has(&text, "sonde_agent_profile"));
    assert_true(has(&text, "sonde_agent_last_push_timestamp_seconds 5\n"));
    buf_free(&text);
}

TEST(what_is_handed_in_is_told)
{
    static const char *const lines[] = {
        "sonde_agent_ingest_up 0\n",
        "sonde_agent_ingest_records_total 1\n",
        "sonde_agent_ingest_posted_total 2\n",
        "sonde_agent_ingest_dropped_total 3\n",
        "sonde_agent_ingest_failures_total 4\n",
        "sonde_agent_ingest_waiting{place=\"disk\"} 5\n",
        "sonde_agent_ingest_waiting{place=\"memory\"} 6\n",
        "sonde_agent_ingest_spool_bytes 7\n",
        "sonde_agent_last_ingest_timestamp_seconds 8\n",
        "sonde_agent_ingest_retention_paused 1\n",
    };
    struct agent_self self = {
        .node = "n1",
        .is_handing_in = true,
        .ingest_records = 1,
        .ingest_posted = 2,
        .ingest_dropped = 3,
        .ingest_failures = 4,
        .ingest_on_disk = 5,
        .ingest_in_memory = 6,
        .ingest_bytes = 7,
        .ingest_success_wall_ns = 8 * NS_PER_SEC,
        .ingest_is_retention_paused = true,
    };
    struct buf text = collect(&self, METRIC_TEXT);

    for (size_t i = 0; i < COUNT(lines); i++)
        assert_contains(text.p, lines[i]);
    buf_free(&text);
    self.ingest_success_wall_ns = 0;
    text = collect(&self, METRIC_TEXT);
    assert_false(has(&text, "last_ingest"));
    buf_free(&text);
    self.is_handing_in = false;
    text = collect(&self, METRIC_TEXT);
    assert_false(has(&text, "ingest"));
    buf_free(&text);
}

static void check_names(struct map *names, const struct family *families, size_t n)
{
    assert_true(n <= METRIC_FAMILIES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (map_get(names, str_of(families[i].name)))
            fail_msg("%s is in two tables", families[i].name);
        map_put(names, str_of(families[i].name));
        assert_true(str_ends(str_of(families[i].help), STR(".")));
    }
}

TEST(no_name_is_used_twice_by_the_agent)
{
    struct arena arena = { 0 };
    struct map names;

    map_init(&names, &arena);
    check_names(&names, agent_self_families, n_agent_self_families);
    for (size_t i = 0; usage_collectors[i]; i++)
        check_names(&names, usage_collectors[i]->families, usage_collectors[i]->n_families);
    map_free(&names);
    arena_clear(&arena);
}
