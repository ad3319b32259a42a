/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast squeue's JSON becomes jobs, in the shapes of Slurm 22.05 (v0.0.38: plain numbers) and
 * 24.11 (v0.0.42: {set, infinite, number}). Also an example of a reader that is fed in pieces. */
#include "base/buf.h"
#include "base/json.h"
#include "model/section.h"

#include "bench.h"

#include <malloc.h>

enum { PIECE = 65536, DOCUMENT_BYTES = 64 << 20, ROUNDS = 5 };

/* A reader of jobs. JSON_MORE can come between any two events, so where it is stands in `state`,
 * and each event is handed to that state's function. */
enum state { AT_TOP, AT_JOBS, IN_JOBS, IN_JOB, AT_MEMBER, IN_NUMBER, IN_LIST };

enum part { PART_OTHER, PART_SET, PART_INFINITE, PART_NUMBER };

enum member_kind { NUMBER_32, NUMBER_64, TIME, MEBIBYTES, SYMBOL, STATE };

struct member {
    struct str key;
    enum member_kind kind;
    size_t offset;
};

static const struct member members[] = {
#define MEMBER(key, kind, field)                                                                   \
    {                                                                                              \
        STR_INIT(key), kind, offsetof(struct job, field)                                           \
    }
    MEMBER("job_id", NUMBER_32, id),
    MEMBER("array_job_id", NUMBER_32, array_job_id),
    MEMBER("array_task_id", NUMBER_32, array_task_id),
    MEMBER("het_job_id", NUMBER_32, het_job_id),
    MEMBER("het_job_offset", NUMBER_32, het_offset),
    MEMBER("user_id", NUMBER_32, user_id),
    MEMBER("restart_cnt", NUMBER_32, restarts),
    MEMBER("job_state", STATE, state),
    MEMBER("user_name", SYMBOL, user),
    MEMBER("account", SYMBOL, account),
    MEMBER("qos", SYMBOL, qos),
    MEMBER("name", SYMBOL, name),
    MEMBER("resv_name", SYMBOL, reservation),
    MEMBER("licenses", SYMBOL, licenses),
    MEMBER("features", SYMBOL, features),
    MEMBER("partition", SYMBOL, partition),
    MEMBER("state_reason", SYMBOL, reason),
    MEMBER("nodes", SYMBOL, nodes),
    MEMBER("tres_alloc_str", SYMBOL, tres),
    MEMBER("cpus", NUMBER_32, cpus),
    MEMBER("node_count", NUMBER_32, node_count),
    MEMBER("memory_per_node", MEBIBYTES, memory_bytes),
    MEMBER("time_limit", NUMBER_32, time_limit_minutes),
    MEMBER("priority", NUMBER_64, priority),
    MEMBER("submit_time", TIME, submit_time),
    MEMBER("eligible_time", TIME, eligible_time),
    MEMBER("start_time", TIME, start_time),
    MEMBER("end_time", TIME, end_time),
#undef MEMBER
};

enum { N_MEMBERS = COUNT(members), SLOTS = 256 };

struct reader {
    struct json *json;
    struct section *section;
    size_t cap;
    enum state state;
    struct job job;              /* the one being read, */
    const struct member *member; /* its member whose value is at hand, */
    enum part part;              /* and in { set, infinite, number } which of these */
    bool set, infinite;
    uint64_t number;
    unsigned char slots[SLOTS]; /* index + 1 in members, by slot_of its key */
};

/* The members are few and known: three bytes and the length tell nearly all keys apart. */
static size_t slot_of(struct str key)
{
    if (!key.n)
        return 0;
    return (key.n * 37 + (unsigned char)key.p[0] * 5 + (unsigned char)key.p[key.n / 2] * 11 +
            (unsigned char)key.p[key.n - 1]) %
           SLOTS;
}

static void fill_slots(struct reader *reader)
{
    for (size_t i = 0; i < N_MEMBERS; i++) {
        size_t slot = slot_of(members[i].key);

        while (reader->slots[slot])
            slot = (slot + 1) % SLOTS;
        reader->slots[slot] = (unsigned char)(i + 1);
    }
}

static const struct member *find_member(const struct reader *reader, struct str key)
{
    for (size_t slot = slot_of(key); reader->slots[slot]; slot = (slot + 1) % SLOTS) {
        const struct member *member = &members[reader->slots[slot] - 1];

        if (str_eq(member->key, key))
            return member;
    }
    return NULL;
}

static void set_number(struct reader *reader, uint64_t value)
{
    void *field = (char *)&reader->job + reader->member->offset;

    switch (reader->member->kind) {
    case NUMBER_32:
        *(uint32_t *)field = value < UINT32_MAX ? (uint32_t)value : MODEL_UNKNOWN_U32;
        break;
    case NUMBER_64:
        *(uint64_t *)field = value;
        break;
    case MEBIBYTES:
        *(uint64_t *)field = value << 20;
        break;
    case TIME:
        *(int64_t *)field = (int64_t)value;
        break;
    case SYMBOL:
    case STATE:
        break;
    }
}

static void set_text(struct reader *reader, struct str text)
{
    void *field = (char *)&reader->job + reader->member->offset;

    if (reader->member->kind == SYMBOL)
        *(symbol *)field = symbols_put(&reader->section->symbols, text);
    else if (reader->member->kind == STATE)
        job_state_add(&reader->job.state, text);
}

static void add_job(struct reader *reader)
{
    struct jobs *jobs = &reader->section->jobs;

    if (jobs->n == reader->cap) {
        reader->cap = reader->cap ? reader->cap * 2 : 1024;
        jobs->job = heap_resize(jobs->job, reader->cap, sizeof(*jobs->job));
    }
    jobs->job[jobs->n++] = reader->job;
}

static void take_at_top(struct reader *reader, enum json_event event)
{
    if (event != JSON_KEY)
        return;
    if (str_eq(json_text(reader->json), STR("jobs")))
        reader->state = AT_JOBS;
    else
        json_skip(reader->json);
}

static void take_at_jobs(struct reader *reader, enum json_event event)
{
    reader->state = event == JSON_ARRAY ? IN_JOBS : AT_TOP;
    if (event != JSON_ARRAY)
        json_skip(reader->json);
}

static void take_in_jobs(struct reader *reader, enum json_event event)
{
    if (event == JSON_OBJECT) {
        reader->job = (struct job){ .tasks = 1, .state = JOB_STATE_NONE };
        reader->state = IN_JOB;
    } else if (event == JSON_ARRAY_END) {
        reader->state = AT_TOP;
    } else {
        json_skip(reader->json);
    }
}

static void take_in_job(struct reader *reader, enum json_event event)
{
    if (event == JSON_OBJECT_END) {
        add_job(reader);
        reader->state = IN_JOBS;
        return;
    }
    reader->member = find_member(reader, json_text(reader->json));
    if (reader->member)
        reader->state = AT_MEMBER;
    else
        json_skip(reader->json);
}

static void take_at_member(struct reader *reader, enum json_event event)
{
    uint64_t value;

    reader->state = IN_JOB;
    if (event == JSON_OBJECT) {
        reader->set = reader->infinite = false;
        reader->state = IN_NUMBER;
    } else if (event == JSON_ARRAY) {
        reader->state = IN_LIST;
    } else if (event == JSON_STRING) {
        set_text(reader, json_text(reader->json));
    } else if (json_u64(reader->json, &value)) {
        set_number(reader, value);
    }
}

static enum part part_of(struct str key)
{
    static const struct str parts[] = {
        [PART_SET] = STR_INIT("set"),
        [PART_INFINITE] = STR_INIT("infinite"),
        [PART_NUMBER] = STR_INIT("number"),
    };

    for (enum part part = PART_SET; part <= PART_NUMBER; part++)
        if (str_eq(parts[part], key))
            return part;
    return PART_OTHER;
}

static void take_in_number(struct reader *reader, enum json_event event)
{
    if (event == JSON_OBJECT_END) {
        if (reader->set)
            set_number(reader, reader->infinite ? UINT64_MAX : reader->number);
        reader->state = IN_JOB;
    } else if (event == JSON_KEY) {
        reader->part = part_of(json_text(reader->json));
    } else if (reader->part == PART_SET) {
        reader->set = event == JSON_TRUE;
    } else if (reader->part == PART_INFINITE) {
        reader->infinite = event == JSON_TRUE;
    } else if (reader->part == PART_NUMBER) {
        reader->set &= json_u64(reader->json, &reader->number);
    }
    if (event == JSON_OBJECT || event == JSON_ARRAY)
        json_skip(reader->json);
}

static void take_in_list(struct reader *reader, enum json_event event)
{
    if (event == JSON_STRING)
        set_text(reader, json_text(reader->json));
    else if (event == JSON_ARRAY_END)
        reader->state = IN_JOB;
    else
        json_skip(reader->json);
}

static int feed_reader(struct reader *reader, struct str piece, struct err *err)
{
    static void (*const take[])(struct reader *, enum json_event) = {
        [AT_TOP] = take_at_top,   [AT_JOBS] = take_at_jobs,     [IN_JOBS] = take_in_jobs,
        [IN_JOB] = take_in_job,   [AT_MEMBER] = take_at_member, [IN_NUMBER] = take_in_number,
        [IN_LIST] = take_in_list,
    };
    enum json_event event;

    if (piece.n)
        json_feed(reader->json, piece);
    else
        json_finish(reader->json);
    while ((event = json_next(reader->json)) > JSON_END)
        take[reader->state](reader, event);
    return event == JSON_ERROR ? json_error(reader->json, err) : 0;
}

/* A document and what must come out of it. */
struct input {
    const char *recording; /* in tests/data/json */
    struct buf document;
    size_t jobs;
    size_t scanner_bytes; /* the most that the scanner had allocated at its end */
};

/* glibc counts small freed blocks that it keeps at hand as allocated: right to about a kilobyte. */
static size_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* What a reading of the document cannot do without: finding where each token ends. */
static void run_floor(void *ctx)
{
    static const unsigned char is_between[256] = {
        [' '] = 1, ['\n'] = 1, [','] = 1, [':'] = 1, ['{'] = 1, ['}'] = 1, ['['] = 1, [']'] = 1,
    };
    struct input *input = ctx;
    const char *p = input->document.p, *end = p + input->document.n;
    size_t tokens = 0;

    for (; p < end; tokens++) {
        while (p < end && is_between[(unsigned char)*p])
            p++;
        if (p < end && *p == '"') {
            for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
            p++;
        } else {
            while (p < end && !is_between[(unsigned char)*p])
                p++;
        }
    }
    if (tokens < input->jobs)
        bench_give_up("%s has only %zu tokens", input->recording, tokens);
}

static void run_scanner(void *ctx)
{
    struct input *input = ctx;
    size_t before = allocated_bytes(), bytes;
    struct json *json = json_new();
    struct str rest = buf_str(&input->document);
    enum json_event event = JSON_MORE;
    struct err err;

    for (; rest.n && event == JSON_MORE; rest = str_skip(rest, PIECE)) {
        json_feed(json, str_head(rest, PIECE));
        while ((event = json_next(json)) > JSON_END)
            ;
    }
    json_finish(json);
    if (json_next(json) != JSON_END) {
        json_error(json, &err);
        bench_give_up("%s: %s", input->recording, err.text);
    }
    bytes = allocated_bytes() - before;
    if (bytes > input->scanner_bytes)
        input->scanner_bytes = bytes;
    json_free(json);
}

static void run_reader(void *ctx)
{
    struct input *input = ctx;
    struct reader reader = { .json = json_new(), .section = section_new(KIND_JOBS) };
    struct str rest = buf_str(&input->document);
    uint64_t ids = 0;
    struct err err;

    fill_slots(&reader);
    for (; rest.n; rest = str_skip(rest, PIECE))
        if (feed_reader(&reader, str_head(rest, PIECE), &err) < 0)
            bench_give_up("%s: %s", input->recording, err.text);
    if (feed_reader(&reader, STR(""), &err) < 0)
        bench_give_up("%s: %s", input->recording, err.text);
    for (size_t i = 0; i < reader.section->jobs.n; i++)
        ids += reader.section->jobs.job[i].id;
    if (reader.section->jobs.n != input->jobs || ids != input->jobs * (input->jobs - 1) / 2)
        bench_give_up("%s: %zu jobs were read instead of %zu", input->recording,
                      reader.section->jobs.n, input->jobs);
    free(reader.section->jobs.job);
    section_unref(reader.section);
    json_free(reader.json);
}

static struct buf read_recording(const char *name)
{
    struct buf content, path;
    FILE *file;

    buf_init(&path, 4096);
    buf_init(&content, 1 << 20);
    buf_printf(&path, "%s/json/%s", TEST_DATA, name);
    file = fopen(path.p, "rb");
    if (!file)
        bench_give_up("%s cannot be opened", path.p);
    content.n = fread(buf_room(&content, 1 << 19), 1, 1 << 19, file);
    buf_end(&content);
    fclose(file);
    buf_free(&path);
    return content;
}

/* A line of a recorded job, with values that differ between jobs. */
static void put_line(struct buf *out, struct str line, size_t id)
{
    static const struct {
        struct str start;
        const char *before, *after;
        size_t different;
    } varied[] = {
        { STR_INIT("      \"job_id\": "), "", ",", SIZE_MAX },
        { STR_INIT("      \"user_name\": "), "\"user", "\",", 500 },
        { STR_INIT("      \"account\": "), "\"account", "\",", 60 },
        { STR_INIT("      \"partition\": "), "\"partition", "\",", 8 },
        { STR_INIT("      \"name\": "), "\"train \\\"model\\\" ", ".sh\",", 3000 },
    };

    for (size_t i = 0; i < COUNT(varied); i++) {
        if (str_starts(line, varied[i].start)) {
            buf_put(out, varied[i].start);
            buf_text(out, varied[i].before);
            buf_u64(out, id % varied[i].different);
            buf_text(out, varied[i].after);
            return;
        }
    }
    buf_put(out, line);
}

static size_t position(struct str text, struct str part, const char *recording)
{
    size_t at = str_find_str(text, part);

    if (at == text.n)
        bench_give_up("%s is not as Slurm prints it: no \"%.*s\"", recording, STR_ARG(part));
    return at;
}

/* The recorded jobs, over and over until the document is large enough. */
static void generate(struct input *input)
{
    struct buf recording = read_recording(input->recording);
    struct str all = buf_str(&recording);
    size_t begin = position(all, STR("    {\n      \"account\""), input->recording);
    size_t length = position(str_skip(all, begin), STR("\n  ]"), input->recording);
    struct str jobs = str_head(str_skip(all, begin), length);
    struct buf *out = &input->document;

    buf_init(out, DOCUMENT_BYTES + 2 * recording.n);
    buf_put(out, str_head(all, begin));
    while (out->n < DOCUMENT_BYTES) {
        for (struct str rest = jobs; rest.p;) {
            struct str line = str_cut(&rest, '\n');

            put_line(out, line, input->jobs);
            input->jobs += str_eq(line, STR("    },")) || str_eq(line, STR("    }"));
            buf_text(out, rest.p ? "\n" : "");
        }
        buf_text(out, out->n < DOCUMENT_BYTES ? ",\n" : "");
    }
    buf_put(out, str_skip(all, begin + length));
    if (out->over)
        bench_give_up("%s is too large", input->recording);
    buf_free(&recording);
}

static double megabytes_per_second(const struct input *input, const struct bench_run *run)
{
    return (double)input->document.n / 1e6 / run->best_seconds;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *recording, *scanner, *reader, *memory;
    } shapes[] = {
        { "squeue-22.05.json", "json: scanner alone, Slurm 22.05", "json: into jobs, Slurm 22.05",
          "json: memory beyond the jobs, Slurm 22.05" },
        { "squeue-24.11.json", "json: scanner alone, Slurm 24.11", "json: into jobs, Slurm 24.11",
          "json: memory beyond the jobs, Slurm 24.11" },
    };

    bench_begin(argc, argv);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct input input = { .recording = shapes[i].recording };
        struct bench_run runs[] = {
            { .run = run_floor, .ctx = &input },
            { .run = run_scanner, .ctx = &input },
            { .run = run_reader, .ctx = &input },
        };
        double floor;

        generate(&input);
        bench_measure(runs, COUNT(runs), ROUNDS);
        floor = megabytes_per_second(&input, &runs[0]);
        bench_row(&(struct bench_row){ shapes[i].scanner, "MB/s",
                                       megabytes_per_second(&input, &runs[1]), floor,
                                       BENCH_AT_LEAST, 500 });
        bench_row(&(struct bench_row){ shapes[i].reader, "MB/s",
                                       megabytes_per_second(&input, &runs[2]), floor,
                                       BENCH_AT_LEAST, 300 });
        bench_row(&(struct bench_row){ shapes[i].memory, "KiB", (double)input.scanner_bytes / 1024,
                                       0, BENCH_AT_MOST, 64 });
        buf_free(&input.document);
    }
    return 0;
}
