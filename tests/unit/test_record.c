/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/record and source/replay: recordings. */
#include "test.h"

#include "files.h"
#include "manual_clock.h"

#include "source/record_reader.h"
#include "source/sim.h"
#include "source/source.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { NOW = 1700000000, MOST_BYTES = 64 << 20 };

static const struct record_about about = { .door = "cli", .wall_ns = NOW * NS_PER_SEC + 5000 };

/* The document of a section, on the heap. */
static struct buf write_down(const struct section *section, struct pseudonyms *pseudonyms)
{
    int fd = memfd_create("document", MFD_CLOEXEC);
    struct buf document;
    struct err err;
    uint64_t bytes;

    if (record_write(fd, section, &about, pseudonyms, &bytes, &err) < 0)
        fail_msg("%s", err.text);
    buf_init(&document, MOST_BYTES);
    assert_non_null(buf_room(&document, bytes));
    assert_int_equal(pread(fd, document.p, bytes + 1, 0), bytes);
    document.n = bytes;
    buf_end(&document);
    close(fd);
    return document;
}

static int read_in_pieces(struct str text, size_t piece, struct section **ret, struct err *err)
{
    struct record_reader *reader = record_reader_new(MOST_BYTES);
    int code = 0;

    for (struct str rest = text; rest.n && code == 0; rest = str_skip(rest, piece))
        code = record_reader_feed(reader, str_head(rest, piece), err);
    if (code == 0)
        code = record_reader_end(reader, ret, err);
    record_reader_free(reader);
    return code;
}

static struct section *read_back(struct str text)
{
    struct section *section;
    struct err err;

    if (read_in_pieces(text, 4093, &section, &err) < 0)
        fail_msg("%s", err.text);
    return section;
}

/* There and back. */
static struct section *copy(const struct section *section)
{
    struct buf document = write_down(section, NULL);
    struct section *read = read_back(buf_str(&document));

    buf_free(&document);
    return read;
}

TEST(a_document_in_memory_is_that_of_a_file)
{
    const struct sim sim = { .nodes = 20, .jobs = 300, .seed = 1 };
    struct section *section = sim_section(&sim, KIND_JOBS, NOW);
    struct record_about later = about;
    struct buf of_file = write_down(section, NULL), first, second;
    size_t begin, begin_second;

    later.wall_ns += 60 * NS_PER_SEC;
    buf_init(&first, MOST_BYTES);
    buf_init(&second, MOST_BYTES);
    begin = record_put(&first, section, &about);
    begin_second = record_put(&second, section, &later);
    assert_string_equal(first.p, of_file.p);
    assert_string_not_equal(first.p, second.p);
    assert_string_equal(first.p + begin, second.p + begin_second);
    assert_true(begin < 200);
    buf_free(&first);
    buf_free(&second);
    buf_free(&of_file);
    section_unref(section);
}

static bool is_same_state(const struct field *field, const void *a, const void *b)
{
    if (field->type == FIELD_JOB_STATE) {
        const struct job_state *x = a, *y = b;

        return x->base == y->base && x->flags == y->flags;
    }
    const struct node_state *x = a, *y = b;

    return x->base == y->base && x->flags == y->flags;
}

static bool is_same(const struct field *field, const struct section *in_a, const void *a,
                    const struct section *in_b, const void *b)
{
    static const size_t sizes[] = {
        [FIELD_BOOL] = sizeof(bool),    [FIELD_U8] = sizeof(uint8_t),
        [FIELD_U32] = sizeof(uint32_t), [FIELD_U64] = sizeof(uint64_t),
        [FIELD_TIME] = sizeof(int64_t),
    };

    switch (field->type) {
    case FIELD_DOUBLE:
        return (isnan(*(const double *)a) && isnan(*(const double *)b)) ||
               memcmp(a, b, sizeof(double)) == 0;
    case FIELD_SYMBOL:
        return str_eq(section_text(in_a, *(const symbol *)a),
                      section_text(in_b, *(const symbol *)b));
    case FIELD_JOB_STATE:
    case FIELD_NODE_STATE:
        return is_same_state(field, a, b);
    default:
        return memcmp(a, b, sizes[field->type]) == 0;
    }
}

static void compare_records(const char *name, size_t index, const struct field_record *record,
                            const struct section *in_a, const void *a, const struct section *in_b,
                            const void *b)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];

        if (!is_same(field, in_a, (const char *)a + field->offset, in_b,
                     (const char *)b + field->offset))
            fail_msg("%s %zu differs in %s", name, index, field->name);
    }
}

static const char *items_of(const struct section *section, const struct field_array *array,
                            size_t *ret_n)
{
    *ret_n = *(const size_t *)((const char *)section + array->count);
    return *(const char *const *)((const char *)section + array->items);
}

static void compare(const struct section *a, const struct section *b)
{
    const struct field_kind *kind = &field_kinds[a->kind];

    assert_int_equal(a->kind, b->kind);
    compare_records("head", 0, &kind->head, a, a, b, b);
    for (size_t i = 0; i < kind->n_arrays; i++) {
        const struct field_array *array = &kind->arrays[i];
        size_t n, n_again;
        const char *items = items_of(a, array, &n), *again = items_of(b, array, &n_again);

        assert_int_equal(n, n_again);
        for (size_t k = 0; k < n; k++)
            compare_records(array->name, k, array->record, a, items + k * array->record->size, b,
                            again + k * array->record->size);
    }
}

static struct section *simulate(enum kind kind, int64_t time)
{
    struct sim sim;
    struct err err;

    assert_int_equal(sim_parse(STR("nodes=60,jobs=400,users=50"), &sim, &err), 0);
    return sim_section(&sim, kind, time);
}

TEST(every_kind_comes_back_as_it_was)
{
    for (enum kind kind = 0; kind < KIND_TRACES; kind++) {
        struct section *section = simulate(kind, NOW), *again;

        section->skipped = 3;
        again = copy(section);
        compare(section, again);
        assert_int_equal(again->skipped, 3);
        assert_true(again->bytes_read > 0);
        section_unref(section);
        section_unref(again);
    }
}

TEST(how_the_document_is_cut_makes_no_difference)
{
    struct section *section = simulate(KIND_NODES, NOW), *again;
    struct buf document = write_down(section, NULL);
    struct err err;

    for (size_t piece = 1; piece < 10; piece++) {
        assert_int_equal(read_in_pieces(buf_str(&document), piece, &again, &err), 0);
        compare(section, again);
        section_unref(again);
    }
    buf_free(&document);
    section_unref(section);
}

static struct section *one_job(struct job job)
{
    struct section *section = section_new(KIND_JOBS);

    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, 1);
    section->jobs.job[0] = job;
    section->jobs.n = 1;
    return section;
}

TEST(what_is_unknown_is_left_out)
{
    struct section *section = one_job((struct job){
        .id = 7,
        .array_task_id = MODEL_UNKNOWN_U32,
        .cpus = MODEL_UNKNOWN_U32,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .state = { JOB_PENDING, 0 },
    });
    struct buf document = write_down(section, NULL);
    struct section *again = read_back(buf_str(&document));

    assert_contains(document.p, "\"id\":7,\"array_job_id\":0,\"tasks\":0");
    assert_null(strstr(document.p, "cpus"));
    assert_null(strstr(document.p, "memory"));
    assert_null(strstr(document.p, "user\""));
    assert_null(strstr(document.p, "start_time"));
    compare(section, again);
    buf_free(&document);
    section_unref(section);
    section_unref(again);
}

TEST(every_double_survives)
{
    static const double values[] = {
        0,       -0.0, 0.1,      1.0 / 3,   5e-324, 1.7976931348623157e308, 123456789.123456789,
        -2.5e-9, NAN,  INFINITY, -INFINITY,
    };
    struct section *section = section_new(KIND_SHARES), *again;

    section->shares.n = COUNT(values);
    section->shares.share = ARENA_ARRAY(&section->arena, struct share, COUNT(values));
    for (size_t i = 0; i < COUNT(values); i++)
        section->shares.share[i] = (struct share){
            .level = values[i],
            .factor = values[i],
            .raw_shares = UINT64_MAX - 1 - i,
        };
    again = copy(section);
    compare(section, again);
    section_unref(section);
    section_unref(again);
}

TEST(every_state_survives)
{
    for (int base = 0; base < JOB_BASES; base++) {
        for (int flag = -1; flag < 17; flag++) {
            uint32_t flags = flag < 0 ? 0 : 1u << flag | 1u << (flag * 5 + base) % 17;
            struct section *section = one_job((struct job){ .state = { (uint8_t)base, flags } });
            struct section *again = copy(section);

            compare(section, again);
            section_unref(section);
            section_unref(again);
        }
    }
    for (int base = 0; base < NODE_BASES; base++) {
        for (int flag = -1; flag < NODE_FLAGS; flag++) {
            struct section *section = section_new(KIND_NODES), *again;
            uint32_t flags = flag < 0 ? 0 : 1u << flag | 1u << (flag * 5 + base) % NODE_FLAGS;

            section->nodes.node = ARENA_ARRAY(&section->arena, struct node, 1);
            section->nodes.node[0].state = (struct node_state){ (uint8_t)base, flags };
            section->nodes.n = 1;
            again = copy(section);
            compare(section, again);
            section_unref(section);
            section_unref(again);
        }
    }
}

static struct str name_back(struct str name, struct section **ret)
{
    struct section *section = section_new(KIND_JOBS);

    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, 1);
    section->jobs.job[0].name = symbols_put(&section->symbols, name);
    section->jobs.n = 1;
    *ret = copy(section);
    section_unref(section);
    return section_text(*ret, (*ret)->jobs.job[0].name);
}

TEST(text_survives_as_well_as_json_allows)
{
    static const struct str kept[] = {
        STR_INIT("a \"quoted\" \\ name\n\t\x1b[31m\x7f"),
        STR_INIT("with a \0 inside"),
        STR_INIT("山田 \xf0\x9f\x92\xa5"),
    };
    struct section *section;
    char *lengthy = heap_alloc(RECORD_TEXT_MAX + 1);

    for (size_t i = 0; i < COUNT(kept); i++) {
        assert_true(str_eq(name_back(kept[i], &section), kept[i]));
        section_unref(section);
    }
    assert_str(name_back(STR("caf\xe9!"), &section), "caf\xef\xbf\xbd!");
    section_unref(section);

    /* of the length that still fits, in bytes that take most room */
    memset(lengthy, 1, RECORD_TEXT_MAX + 1);
    assert_int_equal(name_back((struct str){ lengthy, RECORD_TEXT_MAX }, &section).n,
                     RECORD_TEXT_MAX);
    section_unref(section);
    assert_int_equal(name_back((struct str){ lengthy, RECORD_TEXT_MAX + 1 }, &section).n, 0);
    section_unref(section);
    free(lengthy);
}

/* What stands for a text, in a buffer that lasts until the next call but seven. */
static const char *put(struct pseudonyms *pseudonyms, enum field_sense sense, const char *text)
{
    static char results[8][200];
    static size_t next;
    char *result = results[next++ % 8];
    struct buf out;

    buf_init(&out, sizeof(results[0]) - 1);
    pseudonyms_put(pseudonyms, sense, str_of(text), &out);
    snprintf(result, sizeof(results[0]), "%s", buf_str(&out).p);
    buf_free(&out);
    return result;
}

TEST(a_name_has_one_pseudonym_wherever_it_stands)
{
    static const struct {
        enum field_sense sense;
        const char *text, *expected;
    } rows[] = {
        { SENSE_USER, "alice", "user1" },
        { SENSE_USERS, "bob,alice", "user2,user1" },
        { SENSE_USERS, "-bob,-carol", "-user2,-user3" },
        { SENSE_USER, "root", "root" },
        { SENSE_ACCOUNT, "alice", "account1" },
        { SENSE_ACCOUNTS, "physics,alice", "account2,account1" },
        { SENSE_ACCOUNT, "root", "root" },
        { SENSE_JOB_NAME, "train \"x\"", "job1" },
        { SENSE_JOB_NAME, "root", "job2" },
        { SENSE_NODE, "cn09", "node1" },
        { SENSE_NODE, "cn10", "node2" },
        { SENSE_NODES, "cn[09-11],gpu1", "node[1-4]" },
        { SENSE_NODES, "cn[09-10", "node5" },
        { SENSE_NODES, "", "" },
        { SENSE_RESERVATION, "maint", "reservation1" },
        { SENSE_RESERVATIONS, "course,maint", "reservation2,reservation1" },
        { SENSE_CLUSTER, "cedar", "cluster1" },
        { SENSE_LICENSE, "matlab@srv", "license1" },
        { SENSE_LICENSES, "matlab@srv:4,ansys", "license1:4,license2" },
        { SENSE_LICENSES, "ansys:1|fluent=2;matlab@srv*3", "license2:1|license3=2;license1*3" },
        { SENSE_LICENSES, "ansys:alice", "license4" },
        { SENSE_TRES, "cpu=4,license/ansys=1,gres/gpu:a100=2",
          "cpu=4,license/license2=1,gres/gpu:a100=2" },
        { SENSE_TRES, "license/ansys", "license/license2" },
        { SENSE_REMARK, "bad disk, ask bob", "remark1" },
        { SENSE_REMARK, "Not responding", "Not responding" },
        { SENSE_REASON, "QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit" },
        { SENSE_REASON, "ReqNodeNotAvail, UnavailableNodes:cn[10-11]",
          "ReqNodeNotAvail, UnavailableNodes:node[2-3]" },
        { SENSE_REASON,
          "ReqNodeNotAvail, UnavailableNodes:", "ReqNodeNotAvail, UnavailableNodes:" },
        { SENSE_REASON, "ReqNodeNotAvail, Reserved for maintenance",
          "ReqNodeNotAvail, Reserved for maintenance" },
        { SENSE_REASON,
          "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_"
          "partitions",
          "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_"
          "partitions" },
        { SENSE_REASON, "(ReqNodeNotAvail, UnavailableNodes:cn10)",
          "(ReqNodeNotAvail, UnavailableNodes:node2)" },
        { SENSE_REASON, "()", "()" },
        { SENSE_REASON, "(", "remark2" },
        { SENSE_REASON, "ReqNodeNotAvail, cn10", "remark3" },
        { SENSE_REASON, "alice", "remark4" },
        { SENSE_REASON, "Prolog:no space for alice", "Prolog:remark5" },
        { SENSE_PUBLIC, "gpu:a100:4(S:0-1)", "gpu:a100:4(S:0-1)" },
    };
    struct pseudonyms *pseudonyms = pseudonyms_new();

    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT(rows); i++)
            assert_string_equal(put(pseudonyms, rows[i].sense, rows[i].text), rows[i].expected);
    assert_int_equal(pseudonyms_user_id(pseudonyms, 1234), 100001);
    assert_int_equal(pseudonyms_user_id(pseudonyms, 1000), 100002);
    assert_int_equal(pseudonyms_user_id(pseudonyms, 1234), 100001);
    assert_int_equal(pseudonyms_user_id(pseudonyms, 0), 0);
    assert_int_equal(pseudonyms_user_id(pseudonyms, MODEL_UNKNOWN_U32), MODEL_UNKNOWN_U32);
    pseudonyms_free(pseudonyms);
}

/* Every text of a field that names somebody or something. */
static void collect_names(const struct section *section, struct map *names)
{
    const struct field_kind *kind = &field_kinds[section->kind];

    for (size_t i = 0; i < kind->n_arrays; i++) {
        const struct field_record *record = kind->arrays[i].record;
        size_t n;
        const char *items = items_of(section, &kind->arrays[i], &n);

        for (size_t k = 0; k < n * record->n; k++) {
            const struct field *field = &record->fields[k % record->n];

            if (field->type == FIELD_SYMBOL && field->sense != SENSE_PUBLIC &&
                field->sense != SENSE_TRES && field->sense != SENSE_REASON)
                map_put(names, section_text(section,
                                            *(const symbol *)(items + k / record->n * record->size +
                                                              field->offset)));
        }
    }
}

TEST(nothing_of_the_names_remains_in_an_anonymised_recording)
{
    static const struct str kept[] = { STR_INIT(""), STR_INIT("root"), STR_INIT("slurm"),
                                       STR_INIT("nobody") };
    struct pseudonyms *pseudonyms = pseudonyms_new();
    struct arena arena = { 0 };
    struct map names;
    struct buf all;

    buf_init(&all, MOST_BYTES);
    map_init(&names, &arena);
    for (enum kind kind = 0; kind < KIND_TRACES; kind++) {
        struct section *section = simulate(kind, NOW);
        struct buf document = write_down(section, pseudonyms);

        buf_put(&all, buf_str(&document));
        collect_names(section, &names);
        buf_free(&document);
        section_unref(section);
    }
    assert_true(names.n > 300);
    for (size_t i = 0; i < names.n; i++) {
        struct str name = names.entries[i].key;
        struct buf quoted;
        bool is_kept = false;

        for (size_t k = 0; k < COUNT(kept); k++)
            is_kept |= str_eq(name, kept[k]);
        if (is_kept)
            continue;
        /* Whole, and short ones such as the account "cs" only whole. */
        buf_init(&quoted, 10000);
        buf_json(&quoted, name);
        if (str_find_str(buf_str(&all), buf_str(&quoted)) < all.n ||
            (name.n > 5 && str_find_str(buf_str(&all), name) < all.n))
            fail_msg("there is still \"%.*s\"", STR_ARG(name));
        buf_free(&quoted);
    }
    map_free(&names);
    arena_clear(&arena);
    buf_free(&all);
    pseudonyms_free(pseudonyms);
}

TEST(an_anonymised_recording_says_the_same_of_amounts_and_of_who_is_who)
{
    struct pseudonyms *pseudonyms = pseudonyms_new();
    struct section *section = simulate(KIND_JOBS, NOW);
    struct buf document = write_down(section, pseudonyms);
    struct section *again = read_back(buf_str(&document));

    assert_int_equal(section->jobs.n, again->jobs.n);
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i], *other = &again->jobs.job[i];

        assert_int_equal(job->id, other->id);
        assert_int_equal(job->cpus, other->cpus);
        assert_int_equal(job->memory_bytes, other->memory_bytes);
        assert_int_equal(job->start_time, other->start_time);
        assert_true(
            str_eq(section_text(section, job->partition), section_text(again, other->partition)));
        for (size_t k = 0; k < i; k++) {
            assert_true((job->user == section->jobs.job[k].user) ==
                        (other->user == again->jobs.job[k].user));
            assert_true((job->user_id == section->jobs.job[k].user_id) ==
                        (other->user_id == again->jobs.job[k].user_id));
            assert_true((job->account == section->jobs.job[k].account) ==
                        (other->account == again->jobs.job[k].account));
        }
    }
    buf_free(&document);
    section_unref(section);
    section_unref(again);
    pseudonyms_free(pseudonyms);
}

#define ABOUT(kind) "{\"sonde\":\"9\",\"format\":1,\"kind\":\"" kind "\",\"time\":5"

TEST(a_document_that_is_wrong_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "", "" },
        { "[]", "no object" },
        { "{}", "does not begin with" },
        { "null", "no object" },
        { "{\"format\":1,\"kind\":\"jobs\"}", "does not begin with" },
        { "{\"format\":1,\"kind\":\"traces\",\"time\":5}", "does not begin with" },
        { "{\"format\":1,\"kind\":\"jobs\",\"time\":-5}", "does not begin with" },
        { "{\"format\":1,\"kind\":\"jobs\",\"time\":1e300}", "does not begin with" },
        { "{\"jobs\":[],\"format\":1,\"kind\":\"jobs\",\"time\":5}", "does not begin with" },
        { "{\"sonde\":\"9.1\",\"format\":2,\"kind\":\"jobs\",\"time\":5}",
          "format 2 of sonde 9.1" },
        { ABOUT("jobs") ",\"jobs\":[{\"id\":1}", "" },
        { ABOUT("jobs") "} x", "" },
        { ABOUT("nodes") ",\"nodes\":[{}]}", "node 0 has more partitions" },
        { ABOUT("nodes") ",\"nodes\":[{\"first_partition\":0,\"n_partitions\":1}]}", "node 0" },
        { ABOUT("nodes") ",\"nodes\":[{\"first_partition\":4294967294,\"n_partitions\":1}],"
                         "\"partitions\":[{}],\"memberships\":[{\"partition\":0}]}",
          "node 0" },
        { ABOUT("nodes") ",\"nodes\":[{\"first_partition\":0,\"n_partitions\":1},"
                         "{\"first_partition\":0,\"n_partitions\":1}],"
                         "\"partitions\":[{}],\"memberships\":[{\"partition\":0}]}",
          "node 1" },
        { ABOUT("nodes") ",\"partitions\":[{}],\"memberships\":[{\"partition\":1}]}",
          "membership 0 is in partition 1, and there are 1" },
        { ABOUT("nodes") ",\"memberships\":[{}]}", "membership 0" },
        { ABOUT("associations") ",\"limits\":[{\"kind\":9}]}", "limit 0 is of a kind" },
        { ABOUT("associations") ",\"qos\":[{\"first_limit\":1,\"n_limits\":1}],\"limits\":[{}]}",
          "QOS 0" },
        { ABOUT("associations") ",\"associations\":[{\"first_limit\":0,\"n_limits\":2}],"
                                "\"limits\":[{}]}",
          "association 0" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section;
        struct err err = { 0 };

        if (read_in_pieces(str_of(rows[i].text), 7, &section, &err) == 0)
            fail_msg("taken: %s", rows[i].text);
        assert_true(err.code && err.text[0]);
        assert_contains(err.text, rows[i].sentence);
    }
}

TEST(what_is_strange_is_passed_over)
{
    struct section *section = read_back(
        STR(ABOUT("jobs") ",\"future\":{\"jobs\":[{\"id\":1}]},\"jobs.lacks_qos\":true,"
                          "\"jobs.lacks_features\":17,\"jobs\":[5,[{}],null,"
                          "{\"id\":2,\"new\":[[]],\"user\":{\"name\":\"x\"},\"cpus\":\"4\","
                          "\"state\":\"RUNNING+ORBITING\",\"start_time\":-3,"
                          "\"end_time\":9223372036854775807,\"memory_bytes\":1.5,"
                          "\"submit_time\":100,\"name\":7}],\"kind\":\"nodes\"}"));
    const struct job *job = section->jobs.job;

    assert_int_equal(section->kind, KIND_JOBS);
    assert_int_equal(section->jobs.n, 1);
    assert_true(section->jobs.lacks_qos);
    assert_false(section->jobs.lacks_features);
    assert_int_equal(job->id, 2);
    assert_int_equal(job->state.base, JOB_RUNNING);
    assert_int_equal(job->user, 0);
    assert_int_equal(job->name, 0);
    assert_int_equal(job->cpus, MODEL_UNKNOWN_U32);
    assert_int_equal(job->tasks, 1); /* a record is a job, if it does not say more */
    assert_int_equal(job->memory_bytes, MODEL_UNKNOWN_U64);
    assert_int_equal(job->start_time, 0);
    assert_int_equal(job->end_time, 0);
    assert_int_equal(job->submit_time, 100);
    section_unref(section);
}

TEST(nothing_is_hidden_but_what_is_said_to_be)
{
    static const struct {
        const char *text;
        unsigned hidden;
    } rows[] = {
        { ABOUT("config") "}", 0 },
        { ABOUT("config") ",\"config.hidden\":\"jobs\"}", 0 },
        { ABOUT("config") ",\"config.hidden\":4}", 1u << PRIVATE_JOBS },
        { ABOUT("config") ",\"config.hidden\":1073741828}", 1u << PRIVATE_JOBS },
        { ABOUT("config") ",\"config.private\":4}", 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section = read_back(str_of(rows[i].text));

        assert_int_equal(section->config.hidden, rows[i].hidden);
        section_unref(section);
    }
}

TEST(what_is_private_is_read_back)
{
    static const struct {
        const char *text;
        unsigned private;
    } rows[] = {
        { ABOUT("config") ",\"config.hidden\":4}", 0 }, /* of a recording from before it was told */
        { ABOUT("config") ",\"config.private\":1073741828}", 1u << PRIVATE_JOBS },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section = read_back(str_of(rows[i].text));

        assert_int_equal(section->config.private, rows[i].private);
        section_unref(section);
    }
}

TEST(records_of_a_few_bytes_cannot_fill_the_memory)
{
    struct record_reader *reader = record_reader_new(1 << 20);
    struct err err = { 0 };
    int code = record_reader_feed(reader, STR(ABOUT("jobs") ",\"jobs\":["), &err);

    for (int i = 0; i < 100000 && code == 0; i++)
        code = record_reader_feed(reader, STR("{},"), &err);
    assert_int_equal(code, -EFBIG);
    assert_contains(err.text, "memory");
    record_reader_free(reader);
}

TEST(times_are_moved_and_what_has_none_stays_without)
{
    struct section *section = one_job((struct job){
        .submit_time = NOW, .start_time = RECORD_TIME_MAX, .end_time = 0, .eligible_time = 50 });

    record_move_times(section, 1000);
    assert_int_equal(section->jobs.job[0].submit_time, NOW + 1000);
    assert_int_equal(section->jobs.job[0].start_time, 0);
    assert_int_equal(section->jobs.job[0].end_time, 0);
    record_move_times(section, -2000);
    assert_int_equal(section->jobs.job[0].submit_time, NOW - 1000);
    assert_int_equal(section->jobs.job[0].eligible_time, 0);
    section_unref(section);
}

/* A directory of a test, with a clock. */
struct fixture {
    char spec[300];
    int directory;
    struct manual_clock clock;
};

static struct fixture *fixture;

static void set_up(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    snprintf(fixture->spec, sizeof(fixture->spec), "replay:%s", test_dir());
    fixture->directory = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    manual_clock_init(&fixture->clock, (NOW + 500000) * NS_PER_SEC, 77 * NS_PER_SEC);
}

static void tear_down(void)
{
    close(fixture->directory);
    manual_clock_destroy(&fixture->clock);
    free(fixture);
}

/* A job that began a minute before; its id tells the looks apart. */
static void record_look(unsigned look, uint32_t id, double at_seconds)
{
    struct section *section =
        one_job((struct job){ .id = id, .tasks = 1, .start_time = NOW + (int64_t)at_seconds - 60 });
    struct record_about when = about;
    uint64_t bytes;
    struct err err;

    when.wall_ns = NOW * NS_PER_SEC + (int64_t)(at_seconds * 1e9);
    if (record_add(fixture->directory, look, section, &when, NULL, &bytes, &err) < 0)
        fail_msg("%s", err.text);
    section_unref(section);
}

static int try_open(size_t most, struct source **ret, struct err *err)
{
    struct source_settings settings = { .spec = str_of(fixture->spec), .max_answer = most };

    return source_open(&settings, &fixture->clock.clock, ret, err);
}

static struct source *open_replay(void)
{
    struct source *source;
    struct err err;

    if (try_open(MOST_BYTES, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static int read_kind(struct source *source, enum kind kind, struct section **ret, char *warning,
                     struct err *err)
{
    warning[0] = '\0';
    return source->class->read(source, kind, clock_mono(&clock_real) + TEST_DEADLINE, ret, warning,
                               err);
}

/* The id of the job that is shown now. */
static uint32_t job_now(struct source *source, char warning[SOURCE_WARNING])
{
    struct section *section;
    struct err err;
    uint32_t id;

    if (read_kind(source, KIND_JOBS, &section, warning, &err) < 0)
        fail_msg("%s", err.text);
    id = section->jobs.job[0].id;
    section_unref(section);
    return id;
}

TEST(files_are_private_and_sort_by_time, .set_up = set_up, .tear_down = tear_down)
{
    struct stat status;

    record_look(1, 1, 0);
    record_look(12, 2, 1);
    assert_int_equal(fstatat(fixture->directory, "000001-jobs.json", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fstatat(fixture->directory, "000012-jobs.json", &status, 0), 0);
}

TEST(a_recording_that_fails_leaves_no_half_file, .set_up = set_up, .tear_down = tear_down)
{
    struct section *section = simulate(KIND_JOBS, NOW);
    struct rlimit before, small = { 5000, RLIM_INFINITY };
    struct stat status;
    struct err err;
    uint64_t bytes;
    int code;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    code = record_add(fixture->directory, 1, section, &about, NULL, &bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, -EFBIG);
    assert_contains(err.text, "cannot write 000001-jobs.json");
    assert_int_equal(fstatat(fixture->directory, "000001-jobs.json", &status, 0), -1);
    assert_int_equal(fstatat(fixture->directory, "000001-jobs.json.new", &status, 0), -1);
    section_unref(section);
}

TEST(a_directory_that_holds_a_recording_is_not_added_to, .set_up = set_up, .tear_down = tear_down)
{
    struct err err;
    int fd;

    write_file("notes.txt", "not ours");
    fd = record_directory(test_dir(), &err);
    assert_true(fd >= 0);
    close(fd);
    record_look(1, 1, 0);
    assert_int_equal(record_directory(test_dir(), &err), -EEXIST);
    assert_contains(err.text, "already holds a recording");
    assert_int_equal(record_directory("/dev/null/x", &err), -ENOTDIR);
}

TEST(looks_are_told_when_their_time_has_come, .set_up = set_up, .tear_down = tear_down)
{
    char warning[SOURCE_WARNING];
    struct source *source;

    record_look(1, 1, 0.5);
    record_look(2, 2, 30.5);
    record_look(3, 3, 60.5);
    write_file("000004-jobs.json.new", "half");
    write_file("4-jobs.json", "a stranger's");
    source = open_replay();
    assert_int_equal(job_now(source, warning), 1);
    manual_clock_advance(&fixture->clock, 30 * NS_PER_SEC - 1);
    assert_int_equal(job_now(source, warning), 1);
    manual_clock_advance(&fixture->clock, 1);
    assert_int_equal(job_now(source, warning), 2);
    assert_string_equal(warning, "");
    manual_clock_advance(&fixture->clock, 30 * NS_PER_SEC);
    assert_int_equal(job_now(source, warning), 3);
    assert_contains(warning, "the recording has ended");
    manual_clock_advance(&fixture->clock, 1000 * NS_PER_SEC);
    assert_int_equal(job_now(source, warning), 3);
    assert_string_equal(warning, "");
    source_close(source);
}

TEST(ages_come_out_as_they_were, .set_up = set_up, .tear_down = tear_down)
{
    char warning[SOURCE_WARNING];
    struct section *section;
    struct source *source;
    struct err err;

    record_look(1, 1, 0);
    record_look(2, 2, 30);
    source = open_replay();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_kind(source, KIND_JOBS, &section, warning, &err), 0);
        assert_int_equal(
            clock_wall(&fixture->clock.clock) / NS_PER_SEC - section->jobs.job[0].start_time, 60);
        section_unref(section);
        manual_clock_advance(&fixture->clock, 30 * NS_PER_SEC);
    }
    source_close(source);
}

TEST(a_clock_that_was_set_back_holds_nothing_up, .set_up = set_up, .tear_down = tear_down)
{
    char warning[SOURCE_WARNING];
    struct source *source;

    record_look(1, 1, 0);
    record_look(2, 2, -3600);
    record_look(3, 3, 5);
    source = open_replay();
    assert_int_equal(job_now(source, warning), 2);
    manual_clock_advance(&fixture->clock, 5 * NS_PER_SEC);
    assert_int_equal(job_now(source, warning), 3);
    source_close(source);
}

TEST(what_was_not_recorded_is_said_to_be_missing, .set_up = set_up, .tear_down = tear_down)
{
    char warning[SOURCE_WARNING];
    struct section *section;
    struct source *source;
    struct err err;

    record_look(1, 1, 0);
    source = open_replay();
    assert_false(source->simulated);
    assert_int_equal(read_kind(source, KIND_DIAG, &section, warning, &err), -EOPNOTSUPP);
    assert_contains(err.text, "nothing of kind diag was recorded in");
    source_cancel(source);
    assert_int_equal(read_kind(source, KIND_JOBS, &section, warning, &err), -ECANCELED);
    source_close(source);
}

TEST(a_simulated_cluster_stays_one, .set_up = set_up, .tear_down = tear_down)
{
    struct section *section = simulate(KIND_CONFIG, NOW);
    struct record_about simulated = about;
    struct source *source;
    uint64_t bytes;
    struct err err;

    simulated.is_simulated = true;
    assert_int_equal(record_add(fixture->directory, 1, section, &simulated, NULL, &bytes, &err), 0);
    source = open_replay();
    assert_true(source->simulated);
    source_close(source);
    section_unref(section);
}

TEST(what_cannot_be_played_is_named, .set_up = set_up, .tear_down = tear_down)
{
    char warning[SOURCE_WARNING];
    struct section *section;
    struct source *source;
    struct err err;

    assert_int_equal(try_open(MOST_BYTES, &source, &err), -ENOENT);
    assert_contains(err.text, "there is no recording in it");

    /* neither is a file of ours */
    assert_int_equal(symlinkat("/etc/passwd", fixture->directory, "000001-jobs.json"), 0);
    assert_int_equal(mkfifoat(fixture->directory, "000001-nodes.json", 0600), 0);
    assert_int_equal(try_open(MOST_BYTES, &source, &err), -ENOENT);
    assert_int_equal(unlinkat(fixture->directory, "000001-jobs.json", 0), 0);
    assert_int_equal(unlinkat(fixture->directory, "000001-nodes.json", 0), 0);

    write_file("000001-nodes.json", ABOUT("jobs") "}");
    assert_int_equal(try_open(MOST_BYTES, &source, &err), -EBADMSG);
    assert_contains(err.text, "000001-nodes.json: it tells of jobs; remove that file");
    assert_int_equal(unlinkat(fixture->directory, "000001-nodes.json", 0), 0);

    record_look(1, 1, 0);
    source = open_replay();
    write_file("000001-jobs.json", "{\"x");
    assert_int_equal(read_kind(source, KIND_JOBS, &section, warning, &err), -EBADMSG);
    assert_contains(err.text, "000001-jobs.json");
    source_close(source);
}

TEST(a_file_past_the_ceiling_is_refused, .set_up = set_up, .tear_down = tear_down)
{
    struct section *section = simulate(KIND_JOBS, NOW), *again;
    char warning[SOURCE_WARNING];
    struct source *source;
    uint64_t bytes;
    struct err err;

    assert_int_equal(record_add(fixture->directory, 1, section, &about, NULL, &bytes, &err), 0);
    assert_int_equal(try_open(bytes - 1, &source, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &again, warning, &err), -EFBIG);
    source_close(source);
    assert_int_equal(try_open(bytes, &source, &err), 0);
    assert_int_equal(read_kind(source, KIND_JOBS, &again, warning, &err), 0);
    assert_int_equal(again->bytes_read, bytes);
    section_unref(again);
    source_close(source);
    section_unref(section);
}
