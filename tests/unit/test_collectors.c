/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What must hold for every collector that there is, on a large simulated cluster. */
#include "test.h"

#include "collector/self.h"
#include "source/sim.h"

static const struct sim sim = { .nodes = 1000, .jobs = 20000, .seed = 7, .users = 300 };
static const int64_t noon = 1794744000;

static struct buf render(const struct collector *collector, enum metric_format format,
                         size_t *ret_samples)
{
    struct section *section = sim_section(&sim, collector->kind, noon);
    struct metric_writer writer;
    struct buf out;

    buf_init(&out, 64 << 20);
    metric_writer_init(&writer, &out, format, STR(""), collector->families, collector->n_families);
    collector->collect(section, &writer);
    assert_false(out.over);
    assert_int_equal(writer.duplicates, 0);
    *ret_samples = writer.samples;
    metric_writer_free(&writer);
    section_unref(section);
    return out;
}

static void no_collector_gives_a_series_twice(void **state)
{
    (void)state;
    for (size_t i = 0; collectors[i]; i++) {
        struct arena arena = { 0 };
        struct map seen;
        size_t samples, lines = 0;
        struct buf out = render(collectors[i], METRIC_TEXT, &samples);

        map_init(&seen, &arena);
        for (struct str rest = buf_str(&out); rest.n;) {
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
        assert_int_equal(lines, samples);
        assert_true(samples > 0);
        map_free(&seen);
        arena_clear(&arena);
        buf_free(&out);
    }
}

static void an_empty_cluster_is_rendered(void **state)
{
    (void)state;
    for (size_t i = 0; collectors[i]; i++) {
        struct section *section = section_new(collectors[i]->kind);
        struct metric_writer writer;
        struct buf out;

        buf_init(&out, 1 << 20);
        metric_writer_init(&writer, &out, METRIC_OPENMETRICS, STR(""), collectors[i]->families,
                           collectors[i]->n_families);
        collectors[i]->collect(section, &writer);
        assert_false(out.over);
        metric_writer_free(&writer);
        buf_free(&out);
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

static void no_two_collectors_share_a_name(void **state)
{
    struct arena arena = { 0 };
    struct map names;

    (void)state;
    map_init(&names, &arena);
    check_names(&names, self_families, n_self_families);
    for (size_t i = 0; collectors[i]; i++)
        check_names(&names, collectors[i]->families, collectors[i]->n_families);
    map_free(&names);
    arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_collector_gives_a_series_twice),
        cmocka_unit_test(an_empty_cluster_is_rendered),
        cmocka_unit_test(no_two_collectors_share_a_name),
    };

    return RUN_TESTS(tests);
}
