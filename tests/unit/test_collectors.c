/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What must hold for every collector that there is, on a large simulated cluster. */
#include "collected.h"

#include "base/clock.h"
#include "collector/self.h"
#include "collector/up_self.h"
#include "metric/convert.h"
#include "snapshot/publish.h"
#include "source/sim.h"

static const struct sim sim = { .nodes = 1000, .jobs = 20000, .seed = 7, .users = 300 };
static const int64_t noon = 1794744000;
static const unsigned not_simulated = KIND_BIT(KIND_TRACES) | KIND_BIT(KIND_LUSTRE) |
                                      KIND_BIT(KIND_ENDED) | KIND_BIT(KIND_ALLOCATIONS);

static struct collected render(const struct collector *collector, enum metric_format format)
{
    /* how long jobs waited, only somebody who looks more than once can know */
    struct wait wait = { .buckets = { 1 }, .sum = 0.5 };
    struct section *section = sim_section(&sim, collector->kind, noon);
    struct collected result;

    if (section->kind == KIND_JOBS) {
        section->jobs.wait = &wait;
        section->jobs.n_waits = 1;
    }
    result = collect_as(format, collector, section);
    assert_int_equal(result.duplicates, 0);
    section_unref(section);
    return result;
}

TEST(no_collector_gives_a_series_twice)
{
    for (size_t i = 0; collectors[i]; i++) {
        struct arena arena = { 0 };
        struct map seen;
        struct collected out;
        size_t lines = 0;

        if (not_simulated & KIND_BIT(collectors[i]->kind))
            continue;
        out = render(collectors[i], METRIC_TEXT);
        map_init(&seen, &arena);
        for (struct str rest = buf_str(&out.text); rest.n;) {
            struct str line = str_cut(&rest, '\n');
            struct str value = line;

            if (line.p[0] == '#')
                continue;
            while (value.n && value.p[value.n - 1] != ' ')
                value.n--;
            assert_null(map_get(&seen, value));
            map_put(&seen, value);
            lines++;
        }
        assert_int_equal(lines, out.samples);
        if (!out.samples)
            fail_msg("%s gives nothing", collectors[i]->name);
        map_free(&seen);
        arena_clear(&arena);
        buf_free(&out.text);
    }
}

TEST(every_collector_can_be_converted_to_the_other_format)
{
    for (size_t i = 0; collectors[i]; i++) {
        struct buf text, open, out;

        if (not_simulated & KIND_BIT(collectors[i]->kind))
            continue;
        text = render(collectors[i], METRIC_TEXT).text;
        open = render(collectors[i], METRIC_OPENMETRICS).text;
        buf_init(&out, 64 << 20);
        metric_convert(collectors[i]->families, collectors[i]->n_families, STR(""), buf_str(&text),
                       METRIC_TEXT, METRIC_OPENMETRICS, &out);
        assert_true(str_eq(buf_str(&out), buf_str(&open)));
        buf_reset(&out);
        metric_convert(collectors[i]->families, collectors[i]->n_families, STR(""), buf_str(&open),
                       METRIC_OPENMETRICS, METRIC_TEXT, &out);
        assert_true(str_eq(buf_str(&out), buf_str(&text)));
        buf_free(&out);
        buf_free(&text);
        buf_free(&open);
    }
}

TEST(an_empty_cluster_is_rendered)
{
    for (size_t i = 0; collectors[i]; i++) {
        struct section *section = section_new(collectors[i]->kind);
        struct collected out = collect_as(METRIC_OPENMETRICS, collectors[i], section);

        assert_true(out.text.n <= 1 << 20);
        buf_free(&out.text);
        section_unref(section);
    }
}

static void check_names(struct map *names, const struct family *families, size_t n)
{
    assert_true(n <= METRIC_FAMILIES_MAX);
    for (size_t i = 0; i < n; i++) {
        struct str name = str_of(families[i].name), help = str_of(families[i].help);

        if (map_get(names, name))
            fail_msg("%s is in two tables", families[i].name);
        map_put(names, name);
        assert_true(family_labels(&families[i]) <= METRIC_LABELS_MAX);
        if (!str_ends(help, STR(".")))
            fail_msg("the help of %s is no sentence", families[i].name);
    }
}

static void check_profile(struct str profile)
{
    collector_set set = collector_profile(profile);
    struct arena arena = { 0 };
    struct map names;

    assert_true(set);
    map_init(&names, &arena);
    check_names(&names, self_families, n_self_families);
    check_names(&names, up_self_families, n_up_self_families);
    for (size_t i = 0; collectors[i]; i++)
        if (set & (collector_set)1 << i)
            check_names(&names, collectors[i]->families, collectors[i]->n_families);
    map_free(&names);
    arena_clear(&arena);
}

TEST(no_two_collectors_of_a_profile_share_a_name)
{
    check_profile(STR(""));
    check_profile(STR("mila"));
    assert_int_equal(collector_profile(STR("")) & collector_profile(STR("mila")), 0);
}

static const char *text_of(const struct edition *edition, const char *name,
                           enum metric_format format)
{
    return edition->collectors[collector_find(str_of(name))].segments[format]->text.p;
}

TEST(a_prefix_is_that_of_its_collectors_in_every_format)
{
    struct publish_config config = {
        .collectors = (collector_set)-1,
        .prefix = "mila_",
        .max_segment = 16 << 20,
        .clock = &clock_real,
    };
    struct section *section = sim_section(&sim, KIND_JOBS, noon);
    struct edition *edition = edition_new(&config, section, FORMAT_BIT(METRIC_TEXT)), *both;

    config.prefix[0] = '?'; /* who made it may give it up */
    both = edition_convert(edition, FORMAT_BIT(METRIC_OPENMETRICS));
    for (unsigned format = 0; format < METRIC_FORMATS; format++) {
        assert_contains(text_of(both, "mila_jobs", format),
                        "# TYPE mila_slurm_job_states gauge\nmila_slurm_job_states{name=\"");
        assert_contains(text_of(both, "mila_jobs", format),
                        "\nmila_slurm_login_nodes{name=\"login1\"} ");
        assert_null(strstr(text_of(both, "jobs", format), "mila_"));
    }
    edition_unref(both);
    edition_unref(edition);
    section_unref(section);
}
