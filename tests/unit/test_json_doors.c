/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's JSON of every data_parser: that it tells the same as the text of the same moment, what
 * bad documents cost, and which commands are asked for it. */
#include "model/fields.h"
#include "model/job_gpus.h"
#include "source/cli.h"
#include "source/json_answers.h"
#include "source/source.h"

#include "manual_clock.h"
#include "test.h"

#include "files.h"

#include <math.h>

struct outcome {
    struct section *section;
    int code;
    struct err err;
};

static int feed_to(const struct answer_class *class, struct section *section, struct str text,
                   size_t piece, struct err *err)
{
    struct answer *answer = answer_new(class, section, SIZE_MAX);
    int code = 0;

    for (; text.n && code == 0; text = str_skip(text, piece))
        code = class->feed(answer, str_head(text, piece), err);
    if (code == 0)
        code = class->end(answer, err);
    answer_free(answer);
    return code;
}

static struct outcome read_as(enum kind kind, const struct answer_class *class, struct str text)
{
    struct outcome outcome = { .section = section_new(kind) };

    outcome.code = feed_to(class, outcome.section, text, SIZE_MAX, &outcome.err);
    return outcome;
}

static struct section *read_text(enum kind kind, const struct answer_class *class, struct str text)
{
    struct outcome outcome = read_as(kind, class, text);

    if (outcome.code < 0)
        fail_msg("%s", outcome.err.text);
    return outcome.section;
}

static void add_text(struct section *section, const struct answer_class *class, struct str text)
{
    struct err err;

    if (feed_to(class, section, text, SIZE_MAX, &err) < 0)
        fail_msg("%s", err.text);
}

/* "doors/shares-24.11-v0.0.42.json", of the test data. */
static struct str file_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static struct str file_of(const char *format, ...)
{
    char name[256];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    return read_file(source_path("tests/data/%s", name));
}

static struct section *read_whole(enum kind kind, const struct answer_class *class,
                                  struct str content)
{
    struct section *section = read_text(kind, class, content);

    assert_int_equal(section->skipped, 0);
    return section;
}

/* A data_parser, and the release that it was recorded of. */
static const struct parser {
    const char *release, *name;
    unsigned number;
} parsers[] = {
    { "22.05", "v0.0.37", 37 },         { "22.05", "v0.0.38", 38 },
    { "24.11", "v0.0.40", 40 },         { "24.11", "v0.0.42", 42 },
    { "24.11", "v0.0.42+complex", 42 }, { "26.05", "v0.0.43", 43 },
    { "26.05", "v0.0.45+complex", 45 },
};

static struct str document_of(const char *what, const struct parser *parser)
{
    return file_of("doors/%s-%s-%s.json", what, parser->release, parser->name);
}

static void put_field(struct buf *to, const struct section *section, const struct field *field,
                      const void *record)
{
    const char *at = (const char *)record + field->offset;

    buf_printf(to, " %s=", field->name);
    switch ((enum field_type)field->type) {
    case FIELD_BOOL:
        buf_u64(to, *(const bool *)at);
        break;
    case FIELD_U8:
        buf_u64(to, *(const uint8_t *)at);
        break;
    case FIELD_U32:
        buf_u64(to, *(const uint32_t *)at);
        break;
    case FIELD_U64:
        buf_u64(to, *(const uint64_t *)at);
        break;
    case FIELD_TIME:
        buf_i64(to, *(const int64_t *)at);
        break;
    case FIELD_DOUBLE:
        buf_double(to, *(const double *)at);
        break;
    case FIELD_SYMBOL:
        buf_json(to, section_text(section, *(const symbol *)at));
        break;
    case FIELD_JOB_STATE:
        buf_put(to, job_state_word(*(const struct job_state *)at));
        break;
    case FIELD_NODE_STATE:
        node_state_put(to, *(const struct node_state *)at);
        break;
    }
}

static void put_record(struct buf *to, const struct section *section,
                       const struct field_record *record, const void *at)
{
    for (size_t i = 0; i < record->n; i++)
        put_field(to, section, &record->fields[i], at);
    buf_byte(to, '\n');
}

/* All that a section says, a record in a line. */
static struct buf dump(const struct section *section)
{
    const struct field_kind *kind = &field_kinds[section->kind];
    struct buf to;

    buf_init(&to, 16 << 20);
    put_record(&to, section, &kind->head, section);
    for (size_t i = 0; i < kind->n_arrays; i++) {
        const struct field_array *array = &kind->arrays[i];
        const char *items = *(char *const *)((const char *)section + array->items);
        size_t n = *(const size_t *)((const char *)section + array->count);

        buf_printf(&to, "%s\n", array->name);
        for (size_t k = 0; k < n; k++)
            put_record(&to, section, array->record, items + k * array->record->size);
    }
    return to;
}

static void assert_same(struct section *actual, struct section *expected, const char *what)
{
    struct buf a = dump(actual), b = dump(expected);
    struct str rest = buf_str(&a), other = buf_str(&b);

    while (rest.p || other.p) {
        struct str line = str_cut(&rest, '\n'), wanted = str_cut(&other, '\n');

        if (!str_eq(line, wanted))
            fail_msg("%s: got\n%.*s\nexpected\n%.*s", what, STR_ARG(line), STR_ARG(wanted));
    }
    buf_free(&a);
    buf_free(&b);
    section_unref(actual);
    section_unref(expected);
}

/* Between them, the plugins forgot to say it. */
static void forget_default(struct section *section)
{
    for (size_t i = 0; i < section->nodes.n_partitions; i++)
        section->nodes.partition[i].is_default = false;
}

TEST(partitions_of_every_parser_are_those_of_the_text)
{
    for (size_t i = 0; i < COUNT(parsers); i++) {
        struct section *json =
            read_whole(KIND_NODES, &answer_json_partitions, document_of("partitions", &parsers[i]));
        struct section *text = read_whole(KIND_NODES, &answer_partitions,
                                          file_of("doors/partitions-%s.txt", parsers[i].release));

        assert_int_equal(text->nodes.n_partitions, 5);
        assert_true(text->nodes.partition[0].is_default && text->nodes.partition[0].is_up);
        assert_int_equal(text->nodes.partition[0].time_limit_minutes, 24 * 60);
        assert_false(text->nodes.partition[3].is_up);
        assert_int_equal(text->nodes.partition[3].time_limit_minutes, MODEL_UNKNOWN_U32);
        if (parsers[i].number > 38 && parsers[i].number < 45)
            forget_default(text);
        assert_same(json, text, parsers[i].name);
    }
}

TEST(partitions_complete_the_nodes_whichever_way_they_are_told)
{
    static const struct {
        const struct answer_class *class;
        const char *text;
    } ways[] = {
        { &answer_partitions,
          "PartitionName=empty AllowGroups=ALL Default=NO MaxTime=UNLIMITED State=UP\n"
          "PartitionName=a AllowGroups=x=y z Default=YES MaxTime=1-00:00:00 State=UP\n"
          "PartitionName=b AllowGroups=ALL Default=NO MaxTime=00:30:00 State=DOWN\n" },
        { &answer_json_partitions,
          "{\"partitions\": [{\"name\": \"empty\", \"partition\": {\"state\": [\"UP\"]}, "
          "\"maximums\": {\"time\": {\"set\": false, \"infinite\": true, \"number\": 0}}},"
          "{\"name\": \"a\", \"flags\": [\"DEFAULT\"], \"partition\": {\"state\": \"UP\"}, "
          "\"maximums\": {\"time\": 1440}}, {\"name\": \"b\", \"state\": \"DOWN\", "
          "\"max_time_limit\": \"30\"}]}" },
    };

    for (size_t i = 0; i < COUNT(ways); i++) {
        struct section *section =
            read_text(KIND_NODES, &answer_json_nodes,
                      STR("{\"nodes\": [{\"name\": \"n1\", \"partitions\": [\"b\", \"a\"]}]}"));
        const struct nodes *nodes = &section->nodes;

        assert_true(nodes->lacks_settings);
        add_text(section, ways[i].class, str_of(ways[i].text));
        assert_false(nodes->lacks_settings);
        assert_int_equal(nodes->n_partitions, 3);
        assert_int_equal(nodes->node[0].n_partitions, 2);
        assert_str(section_text(section, nodes->partition[nodes->membership[0]].name), "b");
        assert_false(nodes->partition[0].is_up);
        assert_int_equal(nodes->partition[0].time_limit_minutes, 30);
        assert_true(nodes->partition[1].is_up && nodes->partition[1].is_default);
        assert_int_equal(nodes->partition[1].time_limit_minutes, 1440);
        assert_str(section_text(section, nodes->partition[2].name), "empty");
        assert_true(nodes->partition[2].is_up);
        assert_int_equal(nodes->partition[2].time_limit_minutes, MODEL_UNKNOWN_U32);
        section_unref(section);
    }
}

TEST(settings_are_lacking_as_long_as_those_of_one_partition_are)
{
    struct section *section =
        read_text(KIND_NODES, &answer_json_nodes,
                  STR("{\"nodes\": [{\"name\": \"n1\", \"partitions\": [\"b\", \"gone\"]}]}"));

    add_text(section, &answer_json_partitions,
             STR("{\"partitions\": [{\"name\": \"b\", \"state\": \"UP\"}, {\"state\": \"UP\"}]}"));
    assert_true(section->nodes.lacks_settings);
    assert_int_equal(section->nodes.n_partitions, 2);
    assert_int_equal(section->skipped, 1);
    add_text(section, &answer_json_partitions,
             STR("{\"partitions\": [{\"name\": \"b\", \"state\": \"UP\"}, {\"name\": \"gone\", "
                 "\"max_time_limit\": 5}]}"));
    assert_true(section->nodes.lacks_settings);
    section_unref(section);
}

TEST(lines_that_are_no_partitions_are_refused)
{
    struct outcome outcome =
        read_as(KIND_NODES, &answer_partitions, STR("slurm_load_partitions: no\nPartitionName=\n"));

    assert_int_equal(outcome.code, -EBADMSG);
    assert_contains(outcome.err.text, "slurm_load_partitions: no");
    section_unref(outcome.section);
    outcome = read_as(KIND_NODES, &answer_partitions, STR("No partitions in the system\n"));
    assert_int_equal(outcome.code, 0);
    assert_int_equal(outcome.section->skipped, 0);
    section_unref(outcome.section);
    outcome = read_as(KIND_NODES, &answer_partitions, STR("PartitionName=a AllowGroups="));
    assert_int_equal(outcome.code, -EBADMSG);
    section_unref(outcome.section);
}

/* Which of them are active depends on when one asks. */
static void forget_activity(struct section *section)
{
    for (size_t i = 0; i < section->reservations.n; i++)
        section->reservations.reservation[i].is_active = false;
}

TEST(reservations_of_every_parser_are_those_of_the_text)
{
    for (size_t i = 0; i < COUNT(parsers); i++) {
        struct section *json = read_whole(KIND_RESERVATIONS, &answer_json_reservations,
                                          document_of("reservations", &parsers[i]));
        struct section *text = read_whole(KIND_RESERVATIONS, &answer_reservations,
                                          file_of("doors/reservations-%s.txt", parsers[i].release));

        assert_int_equal(text->reservations.n, 2);
        forget_activity(json);
        forget_activity(text);
        assert_same(json, text, parsers[i].name);
    }
}

TEST(flags_of_a_reservation_stand_as_scontrol_prints_them)
{
    struct section *section = read_text(
        KIND_RESERVATIONS, &answer_json_reservations,
        STR("{\"reservations\": [{\"name\": \"a\", \"flags\": [\"DAILY\", \"NEW\", \"IGNORE_JOBS\","
            "\"PURGE_COMP\", \"FLEX\", \"MAGNETIC\", \"NEWER\"], \"purge_completed\": {\"time\": "
            "{\"set\": true, \"infinite\": false, \"number\": 600}}}, {\"name\": \"b\", \"flags\": "
            "[\"PURGE_COMP\"], \"purge_completed\": {\"time\": 90061}}, {\"name\": \"c\", "
            "\"flags\": [\"SPEC_NODES\"], \"purge_completed\": {\"time\": 300}}, {\"flags\": "
            "[\"MAINT\"]}, {\"name\": \"d\"}]}"));
    const struct reservation *reservation = section->reservations.reservation;

    assert_int_equal(section->reservations.n, 4);
    assert_int_equal(section->skipped, 1);
    assert_str(section_text(section, reservation[0].flags),
               "FLEX,IGNORE_JOBS,DAILY,PURGE_COMP=00:10:00,MAGNETIC,NEW,NEWER");
    assert_str(section_text(section, reservation[1].flags), "PURGE_COMP=1-01:01:01");
    assert_str(section_text(section, reservation[2].flags), "SPEC_NODES");
    assert_int_equal(reservation[3].flags, 0);
    assert_int_equal(reservation[3].node_count, MODEL_UNKNOWN_U32);
    section_unref(section);
}

TEST(a_reservation_is_active_between_its_times)
{
    struct section *section = read_text(
        KIND_RESERVATIONS, &answer_json_reservations,
        STR("{\"reservations\": ["
            "{\"name\": \"past\", \"start_time\": 1000, \"end_time\": 2000},"
            "{\"name\": \"now\", \"start_time\": 1000, \"end_time\": {\"set\": true, \"infinite\": "
            "false, \"number\": 4294967000}},"
            "{\"name\": \"future\", \"start_time\": 4294966000, \"end_time\": 4294967000}]}"));

    for (size_t i = 0; i < 3; i++)
        assert_int_equal(section->reservations.reservation[i].is_active, i == 1);
    section_unref(section);
}

TEST(shares_of_every_parser_are_those_of_the_text)
{
    for (size_t i = 0; i < COUNT(parsers); i++) {
        struct section *json, *text;

        if (parsers[i].number < 40)
            continue;
        json = read_whole(KIND_SHARES, &answer_json_shares, document_of("shares", &parsers[i]));
        text = read_whole(KIND_SHARES, &answer_sshare,
                          file_of("doors/shares-%s.txt", parsers[i].release));
        assert_int_equal(text->shares.n, 15);
        assert_same(json, text, parsers[i].name);
    }
}

TEST(levels_and_factors_may_have_every_shape)
{
    static const struct {
        const char *level;
        double expected;
    } levels[] = {
        { "0.5", 0.5 },
        { "0.1234567", 0.123457 },
        { "{\"set\": true, \"infinite\": false, \"number\": 2.25}", 2.25 },
        { "{\"set\": false, \"infinite\": true, \"number\": 0}", INFINITY },
        { "\"Infinity\"", INFINITY },
        { "Infinity", INFINITY },
        { "1.8446744073709552e+19", INFINITY },
        { "1.7976931348623157e+308", INFINITY },
        { "null", NAN },
        { "{\"set\": false, \"infinite\": false, \"number\": 1}", NAN },
        { "0", NAN }, /* somebody who has shares has a level */
        { "[1]", NAN },
    };

    for (size_t i = 0; i < COUNT(levels); i++) {
        char text[512];
        struct section *section;
        double level;

        snprintf(text, sizeof(text),
                 "{\"shares\": {\"shares\": [{\"name\": \"u\", \"parent\": \"a\", \"type\": "
                 "[\"USER\"], \"shares_normalized\": 0.5, \"fairshare\": {\"factor\": 0.25, "
                 "\"level\": %s}}]}}",
                 levels[i].level);
        section = read_text(KIND_SHARES, &answer_json_shares, str_of(text));
        level = section->shares.share[0].level;
        if (!(level == levels[i].expected || (isnan(level) && isnan(levels[i].expected))))
            fail_msg("%s is %g", levels[i].level, level);
        assert_true(section->shares.share[0].factor == 0.25);
        section_unref(section);
    }
}

/* As without Fair Tree, where slurmctld has no levels. */
TEST(factors_of_accounts_and_levels_of_zero_are_unknown)
{
    struct section *section = read_text(
        KIND_SHARES, &answer_json_shares,
        STR("{\"shares\": {\"shares\": ["
            "{\"name\": \"a\", \"parent\": \"root\", \"type\": [\"ASSOCIATION\"], \"shares\": "
            "2147483647, \"shares_normalized\": 0.5, \"fairshare\": {\"factor\": 0.7, \"level\": "
            "3}},"
            "{\"name\": \"u\", \"parent\": \"a\", \"type\": [\"USER\"], \"shares\": 0, "
            "\"shares_normalized\": 0.5, \"usage\": 12, \"fairshare\": {\"factor\": 0, \"level\": "
            "0}}, {\"name\": \"nobody\", \"type\": [\"USER\"]}, {\"parent\": \"a\"}]}}"));
    const struct share *share = section->shares.share;

    assert_int_equal(section->shares.n, 2);
    assert_int_equal(section->skipped, 2);
    assert_true(share[0].is_parent && share[0].raw_shares == MODEL_UNKNOWN_U64);
    assert_true(isnan(share[0].factor) && isnan(share[0].level));
    assert_str(section_text(section, share[0].account), "a");
    assert_str(section_text(section, share[0].parent), "root");
    assert_int_equal(share[0].user, 0);
    assert_int_equal(share[1].raw_shares, 0);
    assert_true(share[1].factor == 0 && isnan(share[1].level));
    assert_str(section_text(section, share[1].account), "a");
    assert_str(section_text(section, share[1].user), "u");
    assert_true(share[1].raw_usage == 12);
    section_unref(section);
}

static void put_limits(struct map *lines, const struct section *section, const char *owner,
                       uint32_t first, uint32_t n, unsigned kinds)
{
    for (uint32_t i = first; i < first + n; i++) {
        const struct limit *limit = &section->associations.limit[i];
        char line[512];

        if (!(kinds >> limit->kind & 1))
            continue;
        snprintf(line, sizeof(line), "%s %u %.*s %llu", owner, limit->kind,
                 STR_ARG(section_text(section, limit->tres)), (unsigned long long)limit->limit);
        map_index(lines, str_of(line));
    }
}

/* Each limit of the section in a line; of a QOS only those of `qos_kinds`. */
static void put_all_limits(struct map *lines, const struct section *section, unsigned qos_kinds)
{
    const struct associations *all = &section->associations;
    char owner[256];

    for (size_t i = 0; i < all->n; i++) {
        const struct association *one = &all->association[i];

        snprintf(owner, sizeof(owner), "%.*s/%.*s/%.*s",
                 STR_ARG(section_text(section, one->account)),
                 STR_ARG(section_text(section, one->user)),
                 STR_ARG(section_text(section, one->partition)));
        map_index(lines, str_of(owner));
        put_limits(lines, section, owner, one->first_limit, one->n_limits, ~0u);
    }
    for (size_t i = 0; i < all->n_qos; i++) {
        snprintf(owner, sizeof(owner), "QOS %.*s",
                 STR_ARG(section_text(section, all->qos[i].name)));
        map_index(lines, str_of(owner));
        put_limits(lines, section, owner, all->qos[i].first_limit, all->qos[i].n_limits, qos_kinds);
    }
}

static void assert_contains_all(struct map *all, const struct map *some, const char *what)
{
    size_t n = all->n;

    for (size_t i = 0; i < some->n; i++)
        if (map_index(all, some->entries[i].key) >= n)
            fail_msg("%s does not say \"%.*s\"", what, STR_ARG(some->entries[i].key));
}

TEST(limits_of_every_parser_are_those_of_the_text)
{
    for (size_t i = 0; i < COUNT(parsers); i++) {
        /* scontrol tells a QOS's limits of one user only once somebody uses it. */
        unsigned kinds =
            (1u << LIMIT_JOBS | 1u << LIMIT_SUBMITTED | 1u << LIMIT_WALL_SECONDS |
             1u << LIMIT_TRES | 1u << LIMIT_TRES_SECONDS | 1u << LIMIT_TRES_RUN_SECONDS);
        struct section *json, *text;
        struct arena arena = { 0 };
        struct map in_json, in_text;

        if (parsers[i].number < 42)
            kinds &= ~(1u << LIMIT_SUBMITTED | 1u << LIMIT_TRES_SECONDS);
        json = read_whole(KIND_ASSOCIATIONS, &answer_json_associations,
                          document_of("associations", &parsers[i]));
        add_text(json, &answer_json_qos, document_of("qos", &parsers[i]));
        text = read_whole(KIND_ASSOCIATIONS, &answer_associations,
                          file_of("doors/associations-%s.txt", parsers[i].release));
        assert_int_equal(json->associations.n, 15);
        assert_int_equal(json->associations.n_qos, 4);
        for (size_t k = 0; k < json->associations.n_limits; k++)
            assert_int_equal(json->associations.limit[k].used, MODEL_UNKNOWN_U64);
        map_init(&in_json, &arena);
        map_init(&in_text, &arena);
        put_all_limits(&in_json, json, kinds);
        put_all_limits(&in_text, text, kinds);
        assert_true(in_text.n > 30);
        assert_contains_all(&in_json, &in_text, parsers[i].name);
        assert_contains_all(&in_text, &in_json, "scontrol");
        map_free(&in_json);
        map_free(&in_text);
        arena_clear(&arena);
        section_unref(json);
        section_unref(text);
    }
}

TEST(limits_of_a_user_of_a_qos_are_told_unused)
{
    struct section *section = read_text(
        KIND_ASSOCIATIONS, &answer_json_qos,
        STR("{\"qos\": [{\"name\": \"q\", \"limits\": {\"max\": {\"jobs\": {\"active_jobs\": "
            "{\"per\": {\"user\": 20}}, \"per\": {\"user\": {\"set\": true, \"number\": 30}}}, "
            "\"tres\": {\"per\": {\"user\": [{\"type\": \"gres\", \"name\": \"gpu:a100\", "
            "\"count\": 4}, {\"type\": \"mem\", \"name\": null, \"count\": 1000}, {\"count\": 3}]}}"
            "}}}, {\"name\": null}]}"));
    const struct associations *all = &section->associations;

    assert_int_equal(section->skipped, 2);
    assert_int_equal(all->n_qos, 1);
    assert_int_equal(all->qos[0].n_limits, 4);
    assert_int_equal(all->limit[0].kind, LIMIT_USER_JOBS);
    assert_int_equal(all->limit[0].limit, 20);
    assert_int_equal(all->limit[1].kind, LIMIT_USER_SUBMITTED);
    assert_int_equal(all->limit[1].limit, 30);
    assert_int_equal(all->limit[2].kind, LIMIT_USER_TRES);
    assert_str(section_text(section, all->limit[2].tres), "gres/gpu:a100");
    assert_int_equal(all->limit[3].limit, 1000 << 20);
    section_unref(section);
}

TEST(any_document_tells_who_answers)
{
    for (size_t i = 0; i < COUNT(parsers); i++) {
        struct section *section =
            read_whole(KIND_CONFIG, &answer_json_config, document_of("ping", &parsers[i]));
        struct str version = section_text(section, section->config.version);

        assert_true(str_starts(version, str_of(parsers[i].release)));
        assert_str(section_text(section, section->config.cluster),
                   parsers[i].number < 40 ? "" : "sandbox");
        assert_int_equal(section->config.hidden, 0);
        section_unref(section);
    }
}

TEST(a_document_that_tells_of_a_failure_still_tells_who_answers)
{
    struct outcome outcome;

    section_unref(read_text(KIND_CONFIG, &answer_json_config,
                            STR("{\"meta\": {\"Slurm\": {\"release\": \"23.02.7\"}}, \"errors\": "
                                "[{\"error\": \"x\"}]}")));
    outcome = read_as(KIND_CONFIG, &answer_json_config,
                      STR("{\"meta\": {}, \"errors\": [{\"error\": \"Zero Bytes\"}]}"));
    assert_int_equal(outcome.code, -EREMOTEIO);
    assert_contains(outcome.err.text, "Zero Bytes");
    section_unref(outcome.section);
}

/* "4711 g1 0": each GPU that a job holds, in a line. */
static struct buf list_gpus(const struct section *section)
{
    struct buf to;

    buf_init(&to, 1 << 16);
    for (size_t i = 0; i < section->jobs.n_gpus; i++) {
        const struct job_gpus *row = &section->jobs.gpus[i];
        struct gpu_indexes indexes = { 0 };

        assert_true(gpu_indexes_add(&indexes, section_text(section, row->gpus)));
        for (unsigned gpu = 0; gpu_indexes_next(&indexes, &gpu); gpu++)
            buf_printf(&to, "%u %.*s %u\n", row->job_id, STR_ARG(section_text(section, row->node)),
                       gpu);
    }
    return to;
}

TEST(gpus_of_every_parser_are_those_that_scontrol_shows)
{
    for (size_t i = 0; i < COUNT(parsers); i++) {
        struct section *section =
            read_whole(KIND_JOBS, &answer_json_jobs, document_of("gpus", &parsers[i]));
        struct buf told = list_gpus(section);
        struct str shown = file_of("doors/gpus-%s.txt", parsers[i].release);

        assert_true(shown.n);
        if (!str_eq(buf_str(&told), shown))
            fail_msg("%s tells\n%.*sand not\n%.*s", parsers[i].name, STR_ARG(buf_str(&told)),
                     STR_ARG(shown));
        buf_free(&told);
        section_unref(section);
    }
}

#define RUNNING_ON(nodes, details)                                                                 \
    STR("{\"jobs\":[{\"gres_detail\":" details ",\"job_id\":7,\"job_state\":[\"RUNNING\"],"        \
        "\"nodes\":\"" nodes "\"},{\"job_id\":8,\"job_state\":\"RUNNING\",\"nodes\":\"g9\","       \
        "\"gres_detail\":[\"gpu:1(IDX:5)\"]}]}")

TEST(a_node_without_gpus_keeps_its_place_among_the_details)
{
    static const struct {
        struct str document;
        const char *told;
        uint64_t skipped;
    } rows[] = {
        { RUNNING_ON("c1,g[1-2]", "[null,\"gpu:1(IDX:0)\",\"gpu:1(IDX:3)\"]"), "7 g1 0\n7 g2 3\n",
          0 },
        { RUNNING_ON("c1,g[1-2]", "[\"\",\"gpu:1(IDX:0)\",\"gpu:1(IDX:3)\"]"), "7 g1 0\n7 g2 3\n",
          0 },
        { RUNNING_ON("g1", "\"gpu:1(IDX:0)\""), "7 g1 0\n", 0 },
        { RUNNING_ON("g1", "null"), "", 0 },
        { RUNNING_ON("g1", "[]"), "", 0 },
        { RUNNING_ON("g1", "[null]"), "", 0 },
        { RUNNING_ON("c1,g[1-2]", "[\"gpu:1(IDX:0)\",\"gpu:1(IDX:3)\"]"), "", 1 },
        { RUNNING_ON("g[1-2]", "[{},\"gpu:1(IDX:0)\",[\"gpu:1(IDX:3)\"],7]"), "", 1 },
        { RUNNING_ON("g1", "[\"gpu:2(IDX:0)\"]"), "", 1 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section = read_text(KIND_JOBS, &answer_json_jobs, rows[i].document);
        struct buf told = list_gpus(section), wanted;

        buf_init(&wanted, 1000);
        buf_printf(&wanted, "%s8 g9 5\n", rows[i].told);
        assert_str(buf_str(&told), buf_str(&wanted).p);
        assert_int_equal(section->skipped, rows[i].skipped);
        assert_int_equal(section->jobs.n, 2);
        buf_free(&told);
        buf_free(&wanted);
        section_unref(section);
    }
}

/* 24.11 and 22.05 of a job on two nodes, with AccountingStorageTRES=gres/tpu. */
TEST(gres_that_are_not_in_the_tres_are_counted_from_the_details)
{
    static const struct {
        struct str document;
        const char *gres;
    } rows[] = {
        { STR_INIT("{\"jobs\":[{\"job_id\":7,\"job_state\":[\"RUNNING\"],\"nodes\":\"g[1-2]\","
                   "\"tres_alloc_str\":\"cpu=2,gres/tpu=1\",\"gres_detail\":"
                   "[\"tpu:v4(CNT:1),nic(CNT:1)\",\"nic(CNT:1)\"]}]}"),
          "nic:2" },
        { STR_INIT("{\"jobs\":[{\"gres_detail\":[\"nic(CNT:1)\",null],\"job_id\":7,"
                   "\"job_state\":\"RUNNING\",\"nodes\":\"g[1-2]\"}]}"),
          "nic:1" },
        { STR_INIT("{\"jobs\":[{\"job_id\":7,\"job_state\":[\"PENDING\"],"
                   "\"tres_per_node\":\"gres/nic:1\",\"gres_detail\":[]}]}"),
          "" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section = read_text(KIND_JOBS, &answer_json_jobs, rows[i].document);

        assert_int_equal(section->jobs.n, 1);
        assert_str(section_text(section, section->jobs.job[0].gres), rows[i].gres);
        section_unref(section);
    }
}

TEST(old_parsers_tell_the_same_of_jobs_and_nodes)
{
    assert_same(read_whole(KIND_JOBS, &answer_json_jobs, document_of("jobs", &parsers[0])),
                read_whole(KIND_JOBS, &answer_json_jobs, document_of("jobs", &parsers[1])),
                "v0.0.37");
    assert_same(read_whole(KIND_NODES, &answer_json_nodes, document_of("nodes", &parsers[0])),
                read_whole(KIND_NODES, &answer_json_nodes, document_of("nodes", &parsers[1])),
                "v0.0.37");
    assert_same(
        read_whole(KIND_JOBS, &answer_json_jobs, file_of("doors/jobs-23.02-v0.0.39-made.json")),
        read_whole(KIND_JOBS, &answer_json_jobs, file_of("foreign/squeue-24.11-v0.0.40.json")),
        "v0.0.39");
    assert_same(
        read_whole(KIND_NODES, &answer_json_nodes, file_of("doors/nodes-23.02-v0.0.39-made.json")),
        read_whole(KIND_NODES, &answer_json_nodes, file_of("foreign/nodes-24.11-v0.0.40.json")),
        "v0.0.39");
    for (size_t i = 0; i < 2; i++) {
        static const struct {
            const char *name;
            enum kind kind;
            const struct answer_class *class;
        } kinds[] = {
            { "partitions", KIND_NODES, &answer_json_partitions },
            { "reservations", KIND_RESERVATIONS, &answer_json_reservations },
        };

        assert_same(read_whole(kinds[i].kind, kinds[i].class,
                               file_of("doors/%s-23.02-v0.0.39-made.json", kinds[i].name)),
                    read_whole(kinds[i].kind, kinds[i].class,
                               file_of("doors/%s-24.11-v0.0.40.json", kinds[i].name)),
                    kinds[i].name);
    }
}

TEST(statistics_of_an_old_slurmrestd_are_read)
{
    struct section *section =
        read_whole(KIND_DIAG, &answer_json_diag, document_of("diag", &parsers[1]));

    assert_true(section->diag.backfill.count > 0);
    assert_true(section->diag.n_rpc_by_type > 5);
    assert_true(section->diag.backfill_mean_table < 10);
    assert_int_equal(section->diag.main.last_depth, MODEL_UNKNOWN_U64);
    section_unref(section);
    section_unref(read_whole(KIND_DIAG, &answer_json_diag, document_of("diag", &parsers[0])));
}

/* Newer ones have the queue's mean in the place of the table's. */
TEST(the_mean_table_is_its_sum_by_the_cycles)
{
    struct section *section =
        read_text(KIND_DIAG, &answer_json_diag,
                  STR("{\"statistics\": {\"bf_cycle_counter\": 154, \"bf_table_size_mean\": 7, "
                      "\"bf_table_size_sum\": 612, \"bf_queue_len_sum\": 1082}}"));

    assert_int_equal(section->diag.backfill_mean_table, 3);
    section_unref(section);
    section = read_text(KIND_DIAG, &answer_json_diag,
                        STR("{\"statistics\": {\"bf_cycle_counter\": 154, \"bf_table_size_mean\": "
                            "7, \"bf_queue_len_sum\": 1082}}"));
    assert_int_equal(section->diag.backfill_mean_table, MODEL_UNKNOWN_U64);
    section_unref(section);
}

TEST(statistics_that_are_told_twice_are_the_last)
{
    struct section *section = read_text(
        KIND_DIAG, &answer_json_diag,
        STR("{\"statistics\": {\"schedule_exit\": {\"end_job_queue\": 1, \"licenses\": 2}}, "
            "\"statistics\": {\"schedule_exit\": {\"end_job_queue\": 3, \"licenses\": 4}}}"));
    const struct cycle *cycle = &section->diag.main;

    assert_int_equal(cycle->n_exits, 2);
    assert_str(section_text(section, cycle->exit[0].reason), "End of job queue");
    assert_int_equal(cycle->exit[0].count, 3);
    assert_int_equal(cycle->exit[1].count, 4);
    section_unref(section);
}

TEST(users_whom_no_directory_knows_are_told_by_their_numbers)
{
    struct section *section =
        read_text(KIND_JOBS, &answer_json_jobs,
                  STR("{\"jobs\": [{\"job_id\": 1, \"user_name\": \"nobody\", \"user_id\": 2001}, "
                      "{\"user_id\": 2002, \"job_id\": 2, \"user_name\": null}, "
                      "{\"job_id\": 3, \"user_name\": \"nobody\", \"user_id\": 65534}]}"));
    const struct job *job = section->jobs.job;
    const struct rpc *rpc;

    assert_str(section_text(section, job[0].user), "2001");
    assert_str(section_text(section, job[1].user), "2002");
    assert_str(section_text(section, job[2].user), "nobody");
    section_unref(section);
    section = read_text(KIND_DIAG, &answer_json_diag,
                        STR("{\"statistics\": {\"rpcs_by_user\": ["
                            "{\"user\": \"nobody\", \"user_id\": 2001, \"count\": 5}, "
                            "{\"user\": \"\", \"user_id\": 2002, \"count\": 6}, "
                            "{\"user\": \"nobody\", \"user_id\": 65534, \"count\": 7}]}}"));
    rpc = section->diag.rpc_by_user;
    assert_int_equal(section->diag.n_rpc_by_user, 3);
    assert_str(section_text(section, rpc[0].name), "2001");
    assert_str(section_text(section, rpc[1].name), "2002");
    assert_str(section_text(section, rpc[2].name), "nobody");
    section_unref(section);
}

/* One document for each class. */
static const struct {
    const char *file;
    enum kind kind;
    const struct answer_class *class;
} documents[] = {
    { "doors/jobs-23.02-v0.0.39-made.json", KIND_JOBS, &answer_json_jobs },
    { "doors/nodes-23.02-v0.0.39-made.json", KIND_NODES, &answer_json_nodes },
    { "doors/partitions-24.11-v0.0.42.json", KIND_NODES, &answer_json_partitions },
    { "doors/reservations-24.11-v0.0.42.json", KIND_RESERVATIONS, &answer_json_reservations },
    { "doors/shares-24.11-v0.0.42.json", KIND_SHARES, &answer_json_shares },
    { "doors/associations-22.05-v0.0.38.json", KIND_ASSOCIATIONS, &answer_json_associations },
    { "doors/qos-24.11-v0.0.42.json", KIND_ASSOCIATIONS, &answer_json_qos },
    { "doors/ping-24.11-v0.0.42.json", KIND_CONFIG, &answer_json_config },
    { "foreign/licenses-24.11.json", KIND_LICENSES, &answer_json_licenses },
    { "doors/diag-22.05-v0.0.38.json", KIND_DIAG, &answer_json_diag },
};

TEST(the_pieces_in_which_a_document_comes_make_no_difference)
{
    static const size_t pieces[] = { 1, 2, 7, 4093 };

    for (size_t i = 0; i < COUNT(documents); i++) {
        struct str text = file_of("%s", documents[i].file);

        for (size_t k = 0; k < COUNT(pieces); k++) {
            struct section *section = section_new(documents[i].kind);
            struct err err;

            assert_int_equal(feed_to(documents[i].class, section, text, pieces[k], &err), 0);
            assert_same(section, read_text(documents[i].kind, documents[i].class, text),
                        documents[i].file);
        }
    }
}

TEST(a_document_that_is_cut_off_anywhere_is_refused)
{
    for (size_t i = 0; i < COUNT(documents); i++) {
        struct str text = file_of("%s", documents[i].file);

        while (text.n && text.p[text.n - 1] != '}')
            text.n--;
        /* At each byte of a small one, and at about 700 places of a large one. */
        for (size_t n = 0; n < text.n; n += 1 + text.n / 700) {
            struct outcome outcome =
                read_as(documents[i].kind, documents[i].class, str_head(text, n));

            assert_int_equal(outcome.code, -EBADMSG);
            section_unref(outcome.section);
        }
    }
}

/* How long the value at the start of s is. */
static size_t value_length(struct str s)
{
    size_t depth = 0;
    bool in_text = false;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (in_text) {
            i += c == '\\';
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']' || c == ',') && !depth) {
            return i;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return s.n;
}

/* Each value in turn is something else, or is there twice. */
TEST(values_of_the_wrong_type_cost_at_most_themselves)
{
    static const char *const others[] = { "null",  "[]", "{}",       "\"x\"",
                                          "1e999", "-1", "[[{}],1]", "true,\"name\":\"twice\"" };
    struct buf wrong;

    buf_init(&wrong, 1 << 20);
    for (size_t i = 0; i < COUNT(documents); i++) {
        struct str text = file_of("%s", documents[i].file);

        for (size_t at = 0; at + 2 < text.n; at++) {
            struct str rest = str_skip(text, at + 2);
            struct outcome outcome;

            if (memcmp(text.p + at, "\":", 2) != 0)
                continue;
            buf_reset(&wrong);
            buf_put(&wrong, str_head(text, at + 2));
            buf_text(&wrong, others[at % COUNT(others)]);
            buf_put(&wrong, str_skip(rest, value_length(rest)));
            outcome = read_as(documents[i].kind, documents[i].class, buf_str(&wrong));
            if (outcome.code != 0 && outcome.code != -EBADMSG && outcome.code != -EOPNOTSUPP)
                fail_msg("%s: %s", documents[i].file, outcome.err.text);
            section_unref(outcome.section);
        }
    }
    buf_free(&wrong);
}

TEST(deep_nesting_is_refused_everywhere)
{
    enum { DEEP = 100000 };
    struct buf text;

    buf_init(&text, 2 << 20);
    for (size_t i = 0; i < COUNT(documents); i++) {
        struct outcome outcome;

        buf_reset(&text);
        for (size_t k = 0; k < DEEP; k++)
            buf_text(&text, "{\"a\":");
        outcome = read_as(documents[i].kind, documents[i].class, buf_str(&text));
        assert_true(outcome.code < 0);
        assert_contains(outcome.err.text, "64");
        section_unref(outcome.section);
    }
    buf_free(&text);
}

/* `repeated` so many times between `before` and `after`, as one document in pieces. */
static int read_long(enum kind kind, const struct answer_class *class, const char *before,
                     char repeated, size_t n, const char *after, struct err *err)
{
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(class, section, SIZE_MAX);
    char piece[65536];
    int code = class->feed(answer, str_of(before), err);

    memset(piece, repeated, sizeof(piece));
    for (; code == 0 && n; n -= n < sizeof(piece) ? n : sizeof(piece))
        code = class->feed(answer, str_head((struct str){ piece, sizeof(piece) }, n), err);
    if (code == 0)
        code = class->feed(answer, str_of(after), err);
    if (code == 0)
        code = class->end(answer, err);
    answer_free(answer);
    section_unref(section);
    return code;
}

TEST(endless_texts_and_numbers_are_passed_over_or_refused)
{
    enum { MANY = 32 << 20 };
    struct err err;

    assert_int_equal(read_long(KIND_JOBS, &answer_json_jobs, "{\"unheard_of\": \"", 'x', MANY,
                               "\", \"jobs\": []}", &err),
                     0);
    assert_int_equal(read_long(KIND_JOBS, &answer_json_jobs, "{\"jobs\": [{\"name\": \"", 'x', MANY,
                               "\"}]}", &err),
                     -EFBIG);
    assert_int_equal(read_long(KIND_SHARES, &answer_json_shares,
                               "{\"shares\": {\"shares\": [{\"usage\": ", '1', MANY, "}]}}", &err),
                     -EFBIG);
    assert_int_equal(
        read_long(KIND_JOBS, &answer_json_jobs, "{\"jobs\": [], \"", 'k', MANY, "\": 1}", &err),
        -EFBIG);
}

/* Endless lists, each of which some reader keeps. */
static const struct {
    enum kind kind;
    const struct answer_class *class;
    const char *before, *repeated;
} endless[] = {
    { KIND_JOBS, &answer_json_jobs, "{\"jobs\": [", "{\"job_id\": 1}," },
    { KIND_JOBS, &answer_json_jobs, "{\"jobs\": [{\"gres_detail\": [", "\"gpu:1(IDX:0)\"," },
    { KIND_NODES, &answer_json_nodes, "{\"nodes\": [{\"partitions\": [", "\"debug\"," },
    { KIND_SHARES, &answer_json_shares, "{\"shares\": {\"shares\": [", "{\"name\": \"a\"}," },
    { KIND_LICENSES, &answer_json_licenses, "{\"licenses\": [", "{\"LicenseName\": \"a\"}," },
    { KIND_RESERVATIONS, &answer_json_reservations, "{\"reservations\": [",
      "{\"name\": \"maint\"}," },
    { KIND_DIAG, &answer_json_diag, "{\"statistics\": {\"rpcs_by_message_type\": [",
      "{\"message_type\": \"REQUEST_PING\"}," },
    { KIND_ASSOCIATIONS, &answer_json_associations, "{\"associations\": [",
      "{\"account\": \"physics\"}," },
};

TEST(what_is_kept_of_an_endless_answer_has_a_ceiling)
{
    enum { CEILING = 1 << 20, PIECE = 1000, MOST_PIECES = 10000 };

    for (size_t i = 0; i < COUNT(endless); i++) {
        struct section *section = section_new(endless[i].kind);
        struct answer *answer = answer_new(endless[i].class, section, CEILING);
        struct buf piece;
        struct err err;
        int code = answer_feed(answer, str_of(endless[i].before), &err);

        buf_init(&piece, 1 << 20);
        for (size_t k = 0; k < PIECE; k++)
            buf_text(&piece, endless[i].repeated);
        for (size_t k = 0; code == 0 && k < MOST_PIECES; k++)
            code = answer_feed(answer, buf_str(&piece), &err);
        assert_int_equal(code, -EFBIG);
        assert_contains(err.text, "take more than 1048576 bytes of memory; raise "
                                  "--slurm.max-answer");
        assert_true(section_bytes(section) < 4 * CEILING);
        buf_free(&piece);
        answer_free(answer);
        section_unref(section);
    }
}

TEST(what_is_no_document_is_refused_with_the_reason)
{
    static const struct {
        const char *text, *reason;
        int code;
    } bad[] = {
        { "", "", -EBADMSG },
        { "<html><body>502 Bad Gateway</body></html>", "line 1", -EBADMSG },
        { "[]", "has no", -EBADMSG },
        { "{}", "has no", -EBADMSG },
        { "{\"errors\": [{\"description\": \"no such user\", \"error\": \"e\"}]}", "no such user",
          -EREMOTEIO },
        { "{\"errors\": [\"in a word\"]}", "in a word", -EREMOTEIO },
        { "{\"errors\": [{}]}", "does not describe", -EREMOTEIO },
    };

    for (size_t i = 0; i < COUNT(documents); i++)
        for (size_t k = 0; k < COUNT(bad); k++) {
            struct outcome outcome =
                read_as(documents[i].kind, documents[i].class, str_of(bad[k].text));

            assert_int_equal(outcome.code, bad[k].code);
            assert_contains(outcome.err.text, bad[k].reason);
            section_unref(outcome.section);
        }
}

/* Commands in test_dir(), which write down what they are asked in a file "asked". */
struct commands {
    struct manual_clock clock;
    struct source *source;
    char warning[SOURCE_WARNING];
};

static void put_command(const char *name, const char *script)
{
    char text[4096];

    snprintf(text, sizeof(text), "echo \"%s $*\" >>%s/asked\ndata=%s\ncase \"$*\" in\n%s\nesac",
             name, test_dir(), source_path("tests/data"), script);
    write_script(name, text);
}

static void begin_commands_within(struct commands *commands, size_t max_answer)
{
    struct source_settings settings = { .spec = STR("json"), .max_answer = max_answer };
    struct err err;

    *commands = (struct commands){ 0 };
    manual_clock_init(&commands->clock, 1800000000 * NS_PER_SEC, NS_PER_SEC);
    settings.bin_path = str_of(test_dir());
    if (source_open(&settings, &commands->clock.clock, &commands->source, &err) < 0)
        fail_msg("%s", err.text);
}

static void begin_commands(struct commands *commands)
{
    begin_commands_within(commands, 64 << 20);
}

/* What has been asked since the last time, in lines. */
static void assert_asked(const char *expected)
{
    assert_str(read_file("asked"), expected);
    remove_all("asked");
}

static struct section *ask(struct commands *commands, enum kind kind)
{
    struct section *section;
    struct err err;

    commands->warning[0] = '\0';
    if (commands->source->class->read(commands->source, kind,
                                      clock_mono(&clock_real) + TEST_DEADLINE, &section,
                                      commands->warning, &err) < 0)
        fail_msg("%s", err.text);
    return section;
}

static void end_commands(struct commands *commands)
{
    source_close(commands->source);
    manual_clock_destroy(&commands->clock);
}

#define NO_JSON   "*--json*) echo \"$0: unrecognized option '--json'\" >&2; exit 1 ;;\n"
#define ASK_JSON  "scontrol --all --local show nodes --json\n"
#define ASK_SINFO "sinfo --all --local --json\n"
#define ASK_PARTS "scontrol --all --local --oneliner show partitions\n"
#define PARTS     "*partitions) cat \"$data/doors/partitions-24.11.txt\" ;;\n"

TEST(an_answer_may_be_longer_than_the_ceiling_on_what_is_kept_of_it)
{
    enum { CEILING = 1 << 20 };
    struct commands commands;
    struct section *section;

    begin_commands_within(&commands, CEILING);
    put_command("squeue", "*--json*) comment=$(head -c 65536 /dev/zero | tr '\\0' x)\n"
                          "echo '{\"jobs\": ['\n"
                          "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n"
                          "echo \"{\\\"job_id\\\": $i, \\\"comment\\\": \\\"$comment\\\"},\"\n"
                          "done; echo '{\"job_id\": 1000}]}' ;;\n");
    section = ask(&commands, KIND_JOBS);
    assert_int_equal(section->jobs.n, 21);
    assert_true(section->bytes_read > CEILING);
    section_unref(section);
    end_commands(&commands);
}

TEST(nodes_are_asked_of_scontrol_and_then_their_partitions)
{
    struct commands commands;
    struct section *section;

    begin_commands(&commands);
    put_command("scontrol", "*--json) cat \"$data/foreign/nodes-24.11.json\" ;;\n" PARTS);
    section = ask(&commands, KIND_NODES);
    assert_int_equal(section->nodes.n, 8);
    assert_false(section->nodes.lacks_settings);
    assert_str(str_of(commands.warning), "");
    section_unref(section);
    assert_asked(ASK_JSON ASK_PARTS);
    end_commands(&commands);
}

TEST(a_slurm_that_hangs_after_the_nodes_is_down)
{
    struct commands commands;
    struct section *section;
    struct err err;

    begin_commands(&commands);
    put_command("scontrol", "*--json) cat \"$data/foreign/nodes-24.11.json\" ;;\n"
                            "*partitions) exec sleep 1000 ;;\n");
    assert_int_equal(commands.source->class->read(commands.source, KIND_NODES,
                                                  clock_mono(&clock_real) + NS_PER_SEC, &section,
                                                  commands.warning, &err),
                     -ETIMEDOUT);
    assert_contains(err.text, "no answer within --slurm.timeout");
    end_commands(&commands);
}

TEST(nodes_stay_when_their_partitions_are_not_told)
{
    struct commands commands;
    struct section *section;

    begin_commands(&commands);
    put_command("scontrol", "*--json) cat \"$data/foreign/nodes-24.11.json\" ;;\n"
                            "*) echo Unable to contact slurm controller >&2; exit 1 ;;");
    section = ask(&commands, KIND_NODES);
    assert_int_equal(section->nodes.n, 8);
    assert_true(section->nodes.lacks_settings);
    assert_contains(commands.warning, "Unable to contact");
    section_unref(section);
    end_commands(&commands);
}

/* As of 22.05, and upgraded. */
TEST(sinfo_is_asked_while_scontrol_has_no_json)
{
    struct commands commands;

    begin_commands(&commands);
    put_command("scontrol", NO_JSON PARTS);
    put_command("sinfo", "*) cat \"$data/foreign/nodes-22.05.json\" ;;");
    for (int i = 0; i < 3; i++) {
        struct section *section = ask(&commands, KIND_NODES);

        assert_int_equal(section->nodes.n, 8);
        section_unref(section);
        assert_asked(i == 1 ? ASK_SINFO ASK_PARTS : ASK_JSON ASK_SINFO ASK_PARTS);
        if (i == 1)
            manual_clock_advance(&commands.clock, 3600 * NS_PER_SEC);
    }
    put_command("scontrol", "*--json) cat \"$data/foreign/nodes-24.11.json\" ;;\n" PARTS);
    manual_clock_advance(&commands.clock, 3600 * NS_PER_SEC);
    for (int i = 0; i < 2; i++) {
        section_unref(ask(&commands, KIND_NODES));
        assert_asked(ASK_JSON ASK_PARTS);
    }
    end_commands(&commands);
}

/* As of a release without the library for JSON (24.11 crashes over it), or without what makes JSON.
 */
TEST(text_is_asked_of_what_has_no_json)
{
    static const char *const lacks[] = {
        NO_JSON,
        "--json) echo 'sdiag: fatal: serializer_required: no plugin' >&2; exit 1 ;;\n",
        "--json) echo 'sdiag: error: load_plugins: unable to find plugin: serializer/json' >&2; "
        "kill -SEGV $$ ;;\n",
        "--json) echo 'sdiag: fatal: Unable to find plugin: openapi/v0.0.38' >&2; exit 1 ;;\n",
        "--json) echo 'sdiag: error: load_plugins: unable to find plugin: data_parser/v0.0.42' "
        ">&2; "
        "exit 253 ;;\n",
    };

    for (size_t i = 0; i < COUNT(lacks); i++) {
        struct commands commands;
        struct buf script;

        begin_commands(&commands);
        buf_init(&script, 4096);
        buf_printf(&script,
                   "%s\"\") printf 'sdiag output at now (1794769240)\\nData since then "
                   "(1794769228)\\nServer thread count: 3\\n' ;;",
                   lacks[i]);
        put_command("sdiag", script.p);
        for (int k = 0; k < 2; k++) {
            struct section *section = ask(&commands, KIND_DIAG);

            assert_int_equal(section->diag.server_threads, 3);
            section_unref(section);
            assert_asked(k ? "sdiag \n" : "sdiag --json\nsdiag \n");
        }
        buf_free(&script);
        end_commands(&commands);
    }
}

TEST(a_failure_of_slurms_is_no_lack_of_json)
{
    struct commands commands;
    struct section *section;
    struct err err;

    begin_commands(&commands);
    put_command("sshare", "*) echo 'sshare: error: Connection refused' >&2; exit 1 ;;");
    assert_true(commands.source->class->read(commands.source, KIND_SHARES,
                                             clock_mono(&clock_real) + TEST_DEADLINE, &section,
                                             commands.warning, &err) < 0);
    assert_contains(err.text, "Connection refused");
    assert_asked("sshare --all --json\n");
    put_command("sshare", "*) cat \"$data/doors/shares-24.11-v0.0.42.json\" ;;");
    section = ask(&commands, KIND_SHARES);
    assert_int_equal(section->shares.n, 15);
    section_unref(section);
    assert_asked("sshare --all --json\n");
    end_commands(&commands);
}

TEST(reservations_and_licences_are_asked_for_in_json)
{
    struct commands commands;
    struct section *section;

    begin_commands(&commands);
    put_command("scontrol", "*res*) cat \"$data/doors/reservations-24.11-v0.0.42.json\" ;;\n"
                            "*lic*) cat \"$data/foreign/licenses-24.11.json\" ;;");
    section = ask(&commands, KIND_RESERVATIONS);
    assert_int_equal(section->reservations.n, 2);
    section_unref(section);
    section = ask(&commands, KIND_LICENSES);
    assert_int_equal(section->licenses.n, 2);
    section_unref(section);
    assert_asked("scontrol show reservations --json\nscontrol show licenses --json\n");
    end_commands(&commands);
}
