/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a helper sends: whatever comes, the reader neither falls nor takes a section in which
 * something points nowhere; pieces of any size give the same. The first byte of an input says what
 * kind was asked for; with its high bit, what follows is no answer but changes to a right one,
 * three bytes each: two of the place, and what is to be flipped there. So it stays an answer when
 * the tables of model/fields change. */
#include "model/fields.h"
#include "source/sim.h"
#include "source/wire.h"

#include "fuzz.h"

#include <sys/mman.h>

enum { CHANGES = 0x80 };

static int read_in(struct str bytes, size_t piece, struct section *section, enum wire_told *told)
{
    struct answer *answer = answer_new(&answer_wire, section, SIZE_MAX);
    struct err err = { 0 };
    int code = 0;

    while (bytes.n && code == 0) {
        code = answer->class->feed(answer, str_head(bytes, piece), &err);
        bytes = str_skip(bytes, piece);
    }
    if (code == 0)
        code = answer->class->end(answer, &err);
    FUZZ_CHECK(code == -err.code && !code == !err.text[0]);
    *told = wire_told(answer);
    answer_free(answer);
    return code;
}

static void check_texts(const struct section *section, const struct field_record *record,
                        const char *item)
{
    for (size_t i = 0; i < record->n; i++) {
        symbol text;

        if (record->fields[i].type != FIELD_SYMBOL)
            continue;
        memcpy(&text, item + record->fields[i].offset, sizeof(text));
        FUZZ_CHECK(text < symbols_count(&section->symbols));
    }
}

static void check_runs(const struct section *section)
{
    for (size_t i = 0; section->kind == KIND_NODES && i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        for (uint32_t k = 0; k < node->n_partitions; k++)
            FUZZ_CHECK(section->nodes.membership[node->first_partition + k] <
                       section->nodes.n_partitions);
    }
    for (size_t i = 0; section->kind == KIND_ASSOCIATIONS && i < section->associations.n; i++) {
        const struct association *association = &section->associations.association[i];

        for (uint32_t k = 0; k < association->n_limits; k++)
            FUZZ_CHECK(section->associations.limit[association->first_limit + k].kind < LIMITS);
    }
    for (size_t i = 0; section->kind == KIND_ASSOCIATIONS && i < section->associations.n_qos; i++) {
        const struct qos *qos = &section->associations.qos[i];

        for (uint32_t k = 0; k < qos->n_limits; k++)
            FUZZ_CHECK(section->associations.limit[qos->first_limit + k].kind < LIMITS);
    }
}

static void check(const struct section *section)
{
    const struct field_kind *kind = &field_kinds[section->kind];

    check_texts(section, &kind->head, (const char *)section);
    for (size_t i = 0; i < kind->n_arrays; i++) {
        const struct field_array *array = &kind->arrays[i];
        const char *items = *(char *const *)((const char *)section + array->items);
        size_t n = *(const size_t *)((const char *)section + array->count);

        for (size_t k = 0; k < n; k++)
            check_texts(section, array->record, items + k * array->record->size);
    }
    check_runs(section);
}

/* A small section of that kind, packed; the same in every run. */
static struct str right_answer(enum kind kind)
{
    static struct str answers[KINDS];
    int fd = memfd_create("wire", MFD_CLOEXEC);
    struct section *section;
    struct err err;
    struct sim sim;

    if (!answers[kind].p) {
        FUZZ_CHECK(sim_parse(STR("nodes=3,jobs=4,users=2"), &sim, &err) == 0);
        section = sim_section(&sim, kind, 1794225600);
        FUZZ_CHECK(wire_write_section(fd, section, 5, STR("a warning"), &err) == 0);
        section_unref(section);
        answers[kind].n = (size_t)lseek(fd, 0, SEEK_END);
        answers[kind].p = heap_array(answers[kind].n, 1);
        FUZZ_CHECK(pread(fd, (char *)answers[kind].p, answers[kind].n, 0) ==
                   (ssize_t)answers[kind].n);
    }
    close(fd);
    return answers[kind];
}

static char *change(struct str answer, struct str changes)
{
    char *changed = heap_array(answer.n, 1);

    memcpy(changed, answer.p, answer.n);
    for (; changes.n >= 3; changes = str_skip(changes, 3)) {
        size_t place = (size_t)(uint8_t)changes.p[0] << 8 | (uint8_t)changes.p[1];

        changed[place % answer.n] ^= changes.p[2];
    }
    return changed;
}

static void check_answer(enum kind kind, struct str bytes)
{
    static const size_t pieces[] = { SIZE_MAX, 1, 7, 1000 };
    enum wire_told first = WIRE_NOTHING;
    int verdict = 0;

    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct section *section = section_new(kind);
        enum wire_told told;
        int code = read_in(bytes, pieces[i], section, &told);

        if (code == 0 && told == WIRE_SECTION)
            check(section);
        if (i == 0) {
            first = told;
            verdict = code;
        }
        FUZZ_CHECK(code == verdict && told == first);
        section_unref(section);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_skip((struct str){ (const char *)data, size }, 1);
    enum kind kind;

    if (!size)
        return 0;
    kind = (data[0] & ~CHANGES) % (KIND_CONFIG + 1);
    if (data[0] & CHANGES) {
        struct str answer = right_answer(kind);
        char *changed = change(answer, rest);

        check_answer(kind, (struct str){ changed, answer.n });
        free(changed);
    } else {
        check_answer(kind, rest);
    }
    return 0;
}
