/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads which GPUs of which nodes a job has, from GRES details. */
#include "model/job_gpus.h"

#include "base/num.h"
#include "model/hostlist.h"
#include "model/tres.h"

enum { INDEXES_TEXT_MAX = GPU_INDEXES_MAX * 5 };

static bool add_range(struct gpu_indexes *indexes, uint64_t first, uint64_t last)
{
    if (first > last || last >= GPU_INDEXES_MAX)
        return false;
    for (uint64_t i = first; i <= last; i++) {
        uint64_t bit = UINT64_C(1) << i % 64;

        if (indexes->bits[i / 64] & bit)
            return false;
        indexes->bits[i / 64] |= bit;
    }
    return true;
}

bool gpu_indexes_add(struct gpu_indexes *indexes, struct str list)
{
    for (struct str rest = list; rest.p;) {
        struct str to = str_cut(&rest, ','), from = str_cut(&to, '-');
        uint64_t first, last;

        if (!num_get_u64(from, &first) || !(to.p ? num_get_u64(to, &last) : (last = first, true)) ||
            !add_range(indexes, first, last))
            return false;
    }
    return true;
}

bool gpu_indexes_next(const struct gpu_indexes *indexes, unsigned *index)
{
    for (unsigned i = *index; i < GPU_INDEXES_MAX; i = (i / 64 + 1) * 64) {
        uint64_t rest = indexes->bits[i / 64] >> i % 64;

        if (rest) {
            *index = i + (unsigned)__builtin_ctzll(rest);
            return true;
        }
    }
    return false;
}

size_t gpu_indexes_count(const struct gpu_indexes *indexes)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(indexes->bits); i++)
        n += (size_t)__builtin_popcountll(indexes->bits[i]);
    return n;
}

void gpu_indexes_put(const struct gpu_indexes *indexes, struct buf *to)
{
    const char *comma = "";

    for (unsigned first = 0, last; gpu_indexes_next(indexes, &first); first = last + 1) {
        last = first;
        for (unsigned next = last + 1; gpu_indexes_next(indexes, &next) && next == last + 1; next++)
            last = next;
        buf_text(to, comma);
        buf_u64(to, first);
        if (last > first) {
            buf_byte(to, '-');
            buf_u64(to, last);
        }
        comma = ",";
    }
}

bool gpu_indexes_of_detail(struct str detail, struct gpu_indexes *ret)
{
    struct gpu_indexes indexes = { 0 };
    struct gres_item item;
    bool is_bad = false;

    for (struct str rest = detail; gres_next(&rest, &item, &is_bad);) {
        struct gpu_indexes own = { 0 };

        /* many jobs may have a GPU at once that is not consumed */
        if (!str_eq(item.name, STR("gpu")) || !item.indexes.n || item.count >= GRES_NO_CONSUME)
            continue;
        if (!gpu_indexes_add(&own, item.indexes) || gpu_indexes_count(&own) != item.count ||
            !gpu_indexes_add(&indexes, item.indexes))
            return false;
    }
    if (is_bad)
        return false;
    *ret = indexes;
    return true;
}

static bool names_gpus(struct str gres)
{
    struct gres_item item;

    for (struct str rest = gres; gres_next(&rest, &item, NULL);)
        if (str_eq(item.name, STR("gpu")))
            return true;
    return false;
}

bool section_has_gpus(const struct section *section)
{
    bool is_of_nodes = section->kind == KIND_NODES, has_any = false;
    size_t n = is_of_nodes ? section->nodes.n : section->jobs.n;
    bool *seen = heap_alloc(symbols_count(&section->symbols)); /* most say the same */

    for (size_t i = 0; i < n && !has_any; i++) {
        symbol text = is_of_nodes ? section->nodes.node[i].gres : section->jobs.job[i].tres;

        has_any = !seen[text] && names_gpus(section_text(section, text));
        seen[text] = true;
    }
    free(seen);
    return has_any;
}

void job_gpus_init(struct job_gpus_reader *reader, struct section *section)
{
    *reader = (struct job_gpus_reader){ .section = section };
}

void job_gpus_begin(struct job_gpus_reader *reader)
{
    reader->n_held = 0;
    reader->is_bad = false;
}

static symbol put_indexes(struct symbols *symbols, const struct gpu_indexes *indexes)
{
    struct buf text;
    symbol s;

    buf_init(&text, INDEXES_TEXT_MAX);
    gpu_indexes_put(indexes, &text);
    s = symbols_put(symbols, buf_str(&text));
    buf_free(&text);
    return s;
}

void job_gpus_detail(struct job_gpus_reader *reader, struct str detail)
{
    struct gpu_indexes indexes;

    if (!gpu_indexes_of_detail(detail, &indexes)) {
        reader->is_bad = true;
        return;
    }
    reader->held = section_grow(reader->section, reader->held, reader->n_held, &reader->room_held,
                                sizeof(*reader->held));
    reader->held[reader->n_held++] = put_indexes(&reader->section->symbols, &indexes);
}

static bool holds_any(const struct job_gpus_reader *reader)
{
    for (size_t i = 0; i < reader->n_held; i++)
        if (reader->held[i])
            return true;
    return false;
}

static void add_rows(struct job_gpus_reader *reader, uint32_t job_id, const struct hostlist *nodes)
{
    struct jobs *jobs = &reader->section->jobs;

    for (size_t i = 0; i < nodes->n; i++) {
        if (!reader->held[i])
            continue;
        jobs->gpus = section_grow(reader->section, jobs->gpus, jobs->n_gpus, &reader->room,
                                  sizeof(*jobs->gpus));
        jobs->gpus[jobs->n_gpus++] = (struct job_gpus){
            .job_id = job_id,
            .node = symbols_put(&reader->section->symbols, nodes->hosts[i]),
            .gpus = reader->held[i],
        };
    }
}

bool job_gpus_end(struct job_gpus_reader *reader, const struct job *job)
{
    struct arena arena = { 0 };
    struct hostlist nodes;
    bool is_known;

    /* Of a job that completes Slurm tells nothing, or what its other nodes had. */
    if ((job->state.base != JOB_RUNNING && job->state.base != JOB_SUSPENDED) ||
        job->state.flags & JOB_COMPLETING)
        return true;
    if (reader->is_bad || !holds_any(reader))
        return !reader->is_bad;
    is_known = hostlist_expand(section_text(reader->section, job->nodes), &arena, reader->n_held,
                               &nodes, NULL) == 0 &&
               nodes.n == reader->n_held;
    if (is_known)
        add_rows(reader, job->id, &nodes);
    arena_clear(&arena);
    return is_known;
}

void job_gpus_free(struct job_gpus_reader *reader)
{
    free(reader->held);
    arena_adopt(&reader->section->arena, reader->section->jobs.gpus);
}
