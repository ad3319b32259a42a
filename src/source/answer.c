/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Feeds the output of a command to the parser of its format. */
#include "source/answer.h"

#include "base/num.h"
#include "model/units.h"

struct answer *answer_new(const struct answer_class *class, struct section *section,
                          size_t max_bytes)
{
    struct answer *answer = heap_alloc(class->size);

    answer->class = class;
    answer->section = section;
    answer->max_bytes = max_bytes;
    class->begin(answer);
    return answer;
}

int answer_feed(void *ctx, struct str piece, struct err *err)
{
    struct answer *answer = ctx;
    int code = answer->class->feed(answer, piece, err);

    if (code < 0 || section_bytes(answer->section) <= answer->max_bytes)
        return code;
    return err_set(err, EFBIG,
                   "the %s take more than %zu bytes of memory; raise --slurm.max-answer if the "
                   "cluster is that large",
                   kind_name(answer->section->kind), answer->max_bytes);
}

struct answer *answer_free(struct answer *answer)
{
    if (answer) {
        answer->class->free(answer);
        free(answer);
    }
    return NULL;
}

void answer_leave_out(struct answer *answer, struct str record)
{
    struct section *section = answer->section;

    if (!section->skipped++)
        section->skipped_example = arena_str(&section->arena, str_head(record, 60));
}

symbol answer_text(struct answer *answer, struct str field)
{
    return units_absent(field) ? 0 : symbols_put(&answer->section->symbols, field);
}

bool answer_is_nameless(struct str field)
{
    return !field.n || str_eq(field, STR("(null)")) || str_eq(field, STR("N/A"));
}

symbol answer_name(struct answer *answer, struct str field)
{
    return answer_is_nameless(field) ? 0 : symbols_put(&answer->section->symbols, field);
}

symbol answer_user(struct answer *answer, struct str name, uint32_t id)
{
    enum { FIRST_PERSON = 1000, NOBODY = 65534 };
    bool is_somebody = id >= FIRST_PERSON && id != NOBODY;
    char text[NUM_U64_MAX];

    if (id == MODEL_UNKNOWN_U32 ||
        !(answer_is_nameless(name) || (is_somebody && str_eq(name, STR("nobody")))))
        return answer_name(answer, name);
    return symbols_put(&answer->section->symbols, (struct str){ text, num_put_u64(text, id) });
}

uint32_t answer_u32(struct str field, uint32_t otherwise)
{
    uint64_t value;

    return num_get_u64(field, &value) && value < UINT32_MAX ? (uint32_t)value : otherwise;
}

uint64_t answer_u64(struct str field)
{
    uint64_t value;

    return num_get_u64(field, &value) ? value : MODEL_UNKNOWN_U64;
}

uint32_t answer_count(struct str field)
{
    uint64_t value;

    return units_count(field, &value) && value < UINT32_MAX ? (uint32_t)value : MODEL_UNKNOWN_U32;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool answer_array_tasks(struct str field, uint32_t *ret_tasks)
{
    static const struct str ellipsis = STR_INIT("...");
    struct str limit = field, list = str_cut(&limit, '%');
    uint64_t tasks = 1;

    if (str_ends(list, ellipsis)) {
        field = str_head(list, list.n - ellipsis.n);
        /* It may have been cut in the middle of a range. */
        while (field.n && !is_digit(field.p[field.n - 1]))
            field.n--;
    }
    if (field.n && (!units_array_tasks(field, &tasks) || tasks > UINT32_MAX))
        return false;
    *ret_tasks = (uint32_t)tasks;
    return true;
}

int64_t answer_timestamp(struct str field)
{
    int64_t seconds;

    return units_timestamp(field, &seconds) ? seconds : 0;
}

uint32_t answer_limit_minutes(struct str field)
{
    uint64_t seconds;

    return units_time_limit(field, &seconds) && seconds != UNITS_UNLIMITED &&
                   seconds / 60 < UINT32_MAX
               ? (uint32_t)(seconds / 60)
               : MODEL_UNKNOWN_U32;
}

uint64_t answer_mebibytes(struct str field)
{
    uint64_t bytes;

    return units_memory(field, 1 << 20, &bytes, NULL) ? bytes : MODEL_UNKNOWN_U64;
}

void answer_cpus(struct str field, struct node *node)
{
    uint64_t aiot[4];

    node->cpus = node->cpus_alloc = node->cpus_idle = node->cpus_other = MODEL_UNKNOWN_U32;
    if (units_aiot(field, aiot) && aiot[3] < UINT32_MAX) {
        node->cpus_alloc = (uint32_t)aiot[0];
        node->cpus_idle = (uint32_t)aiot[1];
        node->cpus_other = (uint32_t)aiot[2];
        node->cpus = (uint32_t)aiot[3];
    }
}
