/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/wire: sections between processes. */
#include "test.h"

#include "base/arena.h"
#include "model/fields.h"
#include "source/sim.h"
#include "source/wire.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIM_KINDS = KIND_CONFIG + 1, NOON = 1794225600 };

static struct section *section_of(const char *settings, enum kind kind)
{
    struct sim sim;
    struct err err;

    if (sim_parse(str_of(settings), &sim, &err) < 0)
        fail_msg("%s: %s", settings, err.text);
    return sim_section(&sim, kind, NOON);
}

/* What was written into a file in memory. Freed by the caller. */
static struct str taken(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *bytes = heap_array((size_t)size + 1, 1);

    assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
    close(fd);
    return (struct str){ bytes, (size_t)size };
}

static struct str packed(const struct section *section, int64_t last_update, const char *warning)
{
    int fd = memfd_create("wire", MFD_CLOEXEC);
    struct err err;

    assert_int_equal(wire_write_section(fd, section, last_update, str_of(warning), &err), 0);
    return taken(fd);
}

static struct str packed_hello(void)
{
    int fd = memfd_create("wire", MFD_CLOEXEC);
    struct err err;

    assert_int_equal(wire_write_hello(fd, STR("22.05"), &err), 0);
    return taken(fd);
}

/* The result of reading all of it in pieces of that size. */
static int unpack(struct str bytes, size_t piece, struct answer *answer, struct err *err)
{
    int code = 0;

    while (bytes.n && code == 0) {
        code = answer->class->feed(answer, str_head(bytes, piece), err);
        bytes = str_skip(bytes, piece);
    }
    return code < 0 ? code : answer->class->end(answer, err);
}

static const char *items_of(const struct section *section, const struct field_array *array)
{
    return *(char *const *)((const char *)section + array->items);
}

static size_t count_of(const struct section *section, const struct field_array *array)
{
    return *(const size_t *)((const char *)section + array->count);
}

static bool same_double(const char *a, const char *b)
{
    double x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x == y || (isnan(x) && isnan(y));
}

static bool same_text(const struct section *a, const struct section *b, const char *x,
                      const char *y)
{
    symbol of_a, of_b;

    memcpy(&of_a, x, sizeof(of_a));
    memcpy(&of_b, y, sizeof(of_b));
    return str_eq(section_text(a, of_a), section_text(b, of_b));
}

static bool same_field(const struct section *a, const struct section *b, enum field_type type,
                       const char *x, const char *y)
{
    static const size_t sizes[] = { [FIELD_BOOL] = sizeof(bool),
                                    [FIELD_U8] = 1,
                                    [FIELD_U32] = 4,
                                    [FIELD_U64] = 8,
                                    [FIELD_TIME] = 8 };
    const struct job_state *job_a = (const void *)x, *job_b = (const void *)y;
    const struct node_state *node_a = (const void *)x, *node_b = (const void *)y;

    switch (type) {
    case FIELD_DOUBLE:
        return same_double(x, y);
    case FIELD_SYMBOL:
        return same_text(a, b, x, y);
    case FIELD_JOB_STATE:
        return job_a->base == job_b->base && job_a->flags == job_b->flags;
    case FIELD_NODE_STATE:
        return node_a->base == node_b->base && node_a->flags == node_b->flags;
    default:
        return memcmp(x, y, sizes[type]) == 0;
    }
}

static void assert_same_record(const struct section *a, const struct section *b,
                               const struct field_record *record, const void *x, const void *y)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct field *field = &record->fields[i];

        if (!same_field(a, b, field->type, (const char *)x + field->offset,
                        (const char *)y + field->offset))
            fail_msg("%s is not what it was", field->name);
    }
}

static void assert_same(const struct section *a, const struct section *b)
{
    const struct field_kind *kind = &field_kinds[a->kind];

    assert_int_equal(a->kind, b->kind);
    assert_same_record(a, b, &kind->head, a, b);
    for (size_t i = 0; i < kind->n_arrays; i++) {
        const struct field_array *array = &kind->arrays[i];
        size_t size = array->record->size;

        assert_int_equal(count_of(a, array), count_of(b, array));
        for (size_t k = 0; k < count_of(a, array); k++)
            assert_same_record(a, b, array->record, items_of(a, array) + k * size,
                               items_of(b, array) + k * size);
    }
}

static void assert_passes(const char *settings, enum kind kind, size_t piece)
{
    struct section *before = section_of(settings, kind), *after = section_new(kind);
    struct answer *answer = answer_new(&answer_wire, after, SIZE_MAX);
    struct str bytes = packed(before, 42, "a warning");
    struct err err = { 0 };

    if (unpack(bytes, piece, answer, &err) < 0)
        fail_msg("%s: %s", kind_name(kind), err.text);
    assert_int_equal(wire_told(answer), WIRE_SECTION);
    assert_int_equal(wire_last_update(answer), 42);
    assert_str(wire_text(answer), "a warning");
    answer_free(answer);
    assert_same(before, after);
    free((char *)bytes.p);
    section_unref(before);
    section_unref(after);
}

TEST(a_section_of_every_kind_is_the_same_on_the_other_side)
{
    for (int kind = 0; kind < SIM_KINDS; kind++)
        assert_passes("", kind, SIZE_MAX);
}

TEST(a_section_may_take_many_frames)
{
    assert_passes("nodes=20000,jobs=50000", KIND_JOBS, 65536);
    assert_passes("nodes=20000,jobs=50000", KIND_NODES, 65536);
}

TEST(pieces_of_any_size_give_the_same)
{
    for (size_t piece = 1; piece < 40; piece++)
        for (int kind = 0; kind < SIM_KINDS; kind++)
            assert_passes("nodes=8,jobs=20", kind, piece);
}

TEST(an_answer_cut_off_anywhere_is_noticed)
{
    for (int kind = 0; kind < SIM_KINDS; kind++) {
        struct section *section = section_of("nodes=4,jobs=8", kind);
        struct str bytes = packed(section, 1, "");

        for (size_t n = 0; n < bytes.n; n++) {
            struct section *cut = section_new(kind);
            struct answer *answer = answer_new(&answer_wire, cut, SIZE_MAX);
            struct err err = { 0 };

            assert_int_equal(unpack(str_head(bytes, n), SIZE_MAX, answer, &err), -EBADMSG);
            assert_contains(err.text, "garbled");
            answer_free(answer);
            section_unref(cut);
        }
        free((char *)bytes.p);
        section_unref(section);
    }
}

/* Everything in it can be looked at. */
static void look_at_record(const struct section *section, const struct field_record *record,
                           const char *item)
{
    for (size_t i = 0; i < record->n; i++) {
        symbol text;

        if (record->fields[i].type != FIELD_SYMBOL)
            continue;
        memcpy(&text, item + record->fields[i].offset, sizeof(text));
        assert_in_range(text, 0, symbols_count(&section->symbols) - 1);
    }
}

static void look_at(const struct section *section)
{
    const struct field_kind *kind = &field_kinds[section->kind];

    look_at_record(section, &kind->head, (const char *)section);
    for (size_t i = 0; i < kind->n_arrays; i++)
        for (size_t k = 0; k < count_of(section, &kind->arrays[i]); k++)
            look_at_record(section, kind->arrays[i].record,
                           items_of(section, &kind->arrays[i]) + k * kind->arrays[i].record->size);
    for (size_t i = 0; section->kind == KIND_NODES && i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        for (uint32_t k = 0; k < node->n_partitions; k++)
            assert_true(section->nodes.membership[node->first_partition + k] <
                        section->nodes.n_partitions);
    }
    for (size_t i = 0; section->kind == KIND_ASSOCIATIONS && i < section->associations.n; i++) {
        const struct association *association = &section->associations.association[i];

        for (uint32_t k = 0; k < association->n_limits; k++)
            assert_true(section->associations.limit[association->first_limit + k].kind < LIMITS);
    }
}

TEST(a_changed_byte_is_caught_or_harmless)
{
    static const unsigned char changes[] = { 1, 0x80, 0xff };

    for (int kind = 0; kind < SIM_KINDS; kind++) {
        struct section *section = section_of("nodes=2,jobs=3", kind);
        struct str bytes = packed(section, 1, "");

        for (size_t i = 0; i < bytes.n * COUNT(changes); i++) {
            char *byte = (char *)bytes.p + i / COUNT(changes);
            struct section *changed = section_new(kind);
            struct answer *answer = answer_new(&answer_wire, changed, SIZE_MAX);
            struct err err = { 0 };

            *byte ^= (char)changes[i % COUNT(changes)];
            if (unpack(bytes, SIZE_MAX, answer, &err) == 0)
                look_at(changed);
            *byte ^= (char)changes[i % COUNT(changes)];
            answer_free(answer);
            section_unref(changed);
        }
        free((char *)bytes.p);
        section_unref(section);
    }
}

/* Sets a value in the only record that there is, and says how the reading ends. */
static int unpack_broken(struct section *section)
{
    struct section *after = section_new(section->kind);
    struct answer *answer = answer_new(&answer_wire, after, SIZE_MAX);
    struct str bytes = packed(section, 1, "");
    struct err err = { 0 };
    int code = unpack(bytes, SIZE_MAX, answer, &err);

    answer_free(answer);
    section_unref(after);
    free((char *)bytes.p);
    return code;
}

TEST(what_points_nowhere_is_refused)
{
    struct section *nodes = section_new(KIND_NODES), *limits = section_new(KIND_ASSOCIATIONS);
    struct section *jobs = section_new(KIND_JOBS);
    struct node node = { .n_partitions = 1 };
    struct partition partition = { 0 };
    uint32_t member = 0;
    struct association association = { .n_limits = 1 };
    struct limit limit = { .kind = LIMIT_JOBS };
    struct job job = { 0 };

    nodes->nodes = (struct nodes){ &node, 1, &partition, 1, &member, 1, false };
    assert_int_equal(unpack_broken(nodes), 0);
    member = 1;
    assert_int_equal(unpack_broken(nodes), -EBADMSG);
    member = 0;
    node.n_partitions = 2;
    assert_int_equal(unpack_broken(nodes), -EBADMSG);
    node = (struct node){ .first_partition = UINT32_MAX, .n_partitions = 2 };
    assert_int_equal(unpack_broken(nodes), -EBADMSG);
    node = (struct node){ .name = 7 };
    assert_int_equal(unpack_broken(nodes), -EBADMSG);
    node = (struct node){ .state.base = NODE_BASES };
    assert_int_equal(unpack_broken(nodes), -EBADMSG);

    limits->associations.association = &association;
    limits->associations.limit = &limit;
    limits->associations.n = limits->associations.n_limits = 1;
    assert_int_equal(unpack_broken(limits), 0);
    association.first_limit = 1;
    assert_int_equal(unpack_broken(limits), -EBADMSG);
    association.first_limit = 0;
    limit.kind = LIMITS;
    assert_int_equal(unpack_broken(limits), -EBADMSG);

    jobs->jobs = (struct jobs){ .job = &job, .n = 1 };
    assert_int_equal(unpack_broken(jobs), 0);
    job.state.base = JOB_BASES;
    assert_int_equal(unpack_broken(jobs), -EBADMSG);
    job = (struct job){ .start_time = -1 };
    assert_int_equal(unpack_broken(jobs), -EBADMSG);
    job = (struct job){ .start_time = INT64_MAX };
    assert_int_equal(unpack_broken(jobs), -EBADMSG);
    section_unref(nodes);
    section_unref(limits);
    section_unref(jobs);
}

/* A few megabytes could stand for work without end. */
TEST(lists_that_many_share_are_refused)
{
    struct section *nodes = section_new(KIND_NODES), *limits = section_new(KIND_ASSOCIATIONS);
    struct node two_nodes[2] = { { .n_partitions = 1 }, { .first_partition = 1 } };
    struct partition partition = { 0 };
    struct association association = { .n_limits = 1 };
    struct qos qos = { .first_limit = 1 };
    struct limit limit = { .kind = LIMIT_JOBS };
    uint32_t member = 0;

    nodes->nodes = (struct nodes){ two_nodes, 2, &partition, 1, &member, 1, false };
    assert_int_equal(unpack_broken(nodes), 0);
    two_nodes[1] = two_nodes[0];
    assert_int_equal(unpack_broken(nodes), -EBADMSG);
    limits->associations = (struct associations){
        .association = &association,
        .n = 1,
        .qos = &qos,
        .n_qos = 1,
        .limit = &limit,
        .n_limits = 1,
    };
    assert_int_equal(unpack_broken(limits), 0);
    qos = (struct qos){ .n_limits = 1 };
    assert_int_equal(unpack_broken(limits), -EBADMSG);
    section_unref(nodes);
    section_unref(limits);
}

TEST(a_text_too_long_for_a_frame_is_left_out_and_others_are_not)
{
    struct section *section = section_new(KIND_JOBS), *after = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_wire, after, SIZE_MAX);
    char *text = heap_array(WIRE_TEXT_MAX + 1, 1);
    struct job jobs[3] = { 0 };
    struct err err = { 0 };
    struct str bytes;

    memset(text, 'x', WIRE_TEXT_MAX + 1);
    jobs[0].name = symbols_put(&section->symbols, (struct str){ text, WIRE_TEXT_MAX });
    jobs[1].name = symbols_put(&section->symbols, (struct str){ text, WIRE_TEXT_MAX + 1 });
    jobs[2].name = symbols_put(&section->symbols, STR("short\n\xff"));
    section->jobs = (struct jobs){ .job = jobs, .n = 3 };
    bytes = packed(section, 1, "");
    assert_int_equal(unpack(bytes, SIZE_MAX, answer, &err), 0);
    assert_int_equal(section_text(after, after->jobs.job[0].name).n, WIRE_TEXT_MAX);
    assert_int_equal(after->jobs.job[1].name, 0);
    assert_str(section_text(after, after->jobs.job[2].name), "short\n\xff");
    answer_free(answer);
    section_unref(section);
    section_unref(after);
    free((char *)bytes.p);
    free(text);
}

static int read_as(struct str bytes, enum wire_told *ret_told, struct err *err)
{
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_wire, section, SIZE_MAX);
    int code = unpack(bytes, SIZE_MAX, answer, err);

    *ret_told = wire_told(answer);
    answer_free(answer);
    section_unref(section);
    return code;
}

TEST(a_helper_of_another_build_is_refused_with_a_sentence)
{
    struct str hello = packed_hello();
    enum wire_told told;
    struct err err = { 0 };

    assert_int_equal(read_as(hello, &told, &err), 0);
    assert_int_equal(told, WIRE_HELLO);
    ((char *)hello.p)[8 + 8] ^= 1; /* behind the frame's head and the magic: the digest */
    assert_int_equal(read_as(hello, &told, &err), -EOPNOTSUPP);
    assert_contains(err.text, "another build of sonde");
    free((char *)hello.p);
}

TEST(what_is_no_helper_at_all_is_told_from_a_broken_one)
{
    enum wire_told told;
    struct err err = { 0 };

    assert_int_equal(read_as(STR("Usage: squeue [OPTIONS]\n"), &told, &err), -EBADMSG);
    assert_contains(err.text, "does not speak as a helper");
}

TEST(errors_and_no_change_are_answers_too)
{
    int unchanged = memfd_create("wire", MFD_CLOEXEC), error = memfd_create("wire", MFD_CLOEXEC);
    enum wire_told told;
    struct err err = { 0 };
    struct str bytes;

    assert_int_equal(wire_write_unchanged(unchanged, &err), 0);
    bytes = taken(unchanged);
    assert_int_equal(read_as(bytes, &told, &err), 0);
    assert_int_equal(told, WIRE_UNCHANGED);
    free((char *)bytes.p);

    assert_int_equal(wire_write_error(error, EACCES, STR("it is\nforbidden"), &err), 0);
    bytes = taken(error);
    assert_int_equal(read_as(bytes, &told, &err), -EACCES);
    assert_int_equal(told, WIRE_ERROR);
    assert_string_equal(err.text, "it is forbidden");
    free((char *)bytes.p);
}

TEST(more_than_one_answer_is_too_much)
{
    struct str hello = packed_hello();
    char twice[512];
    enum wire_told told;
    struct err err = { 0 };

    memcpy(twice, hello.p, hello.n);
    memcpy(twice + hello.n, hello.p, hello.n);
    assert_int_equal(read_as((struct str){ twice, 2 * hello.n }, &told, &err), -EBADMSG);
    free((char *)hello.p);
}

TEST(an_answer_about_something_else_is_refused)
{
    struct section *section = section_of("nodes=4,jobs=8", KIND_LICENSES);
    struct str bytes = packed(section, 1, "");
    enum wire_told told;
    struct err err = { 0 };

    assert_int_equal(read_as(bytes, &told, &err), -EBADMSG);
    free((char *)bytes.p);
    section_unref(section);
}

TEST(a_frame_longer_than_the_ceiling_is_refused_before_it_comes)
{
    const uint32_t head[] = { WIRE_FRAME_MAX + 1, 2 };
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_wire, section, SIZE_MAX);
    struct err err = { 0 };

    assert_int_equal(
        answer->class->feed(answer, (struct str){ (const char *)head, sizeof(head) }, &err),
        -EBADMSG);
    answer_free(answer);
    section_unref(section);
}

TEST(requests_arrive_as_they_were_put)
{
    struct wire_request request = { KIND_SHARES, 1794225600 }, read_back;
    int ends[2];
    struct err err = { 0 };
    struct buf buf;

    buf_init(&buf, 100);
    wire_put_request(&buf, request);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], buf.p, buf.n), buf.n);
    assert_int_equal(wire_read_request(ends[0], &read_back, &err), 0);
    assert_int_equal(read_back.kind, KIND_SHARES);
    assert_int_equal(read_back.since, 1794225600);
    buf.p[8] = (char)KINDS;
    assert_int_equal(write(ends[1], buf.p, buf.n), buf.n);
    assert_int_equal(wire_read_request(ends[0], &read_back, &err), -EBADMSG);
    close(ends[1]);
    assert_int_equal(wire_read_request(ends[0], &read_back, &err), -EPIPE);
    close(ends[0]);
    buf_free(&buf);
}
