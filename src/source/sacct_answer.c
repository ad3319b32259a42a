/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sacct(1), "Job Accounting Fields". */
#include "source/sacct_answer.h"

#include "base/arena.h"
#include "base/num.h"
#include "model/tres.h"
#include "model/units.h"
#include "source/answer.h"

#include <math.h>
#include <sys/random.h>

/* Fields that have a place of their own. */
enum place {
    JOB_ID_RAW,
    JOB_ID,
    STATE,
    SUBMIT,
    N_NEEDED, /* those before are what a run is named by */
    JOB_NAME = N_NEEDED,
    USER,
    UID,
    ACCOUNT,
    PARTITION,
    QOS,
    RESERVATION,
    REASON,
    NODE_LIST,
    ALLOC_TRES,
    REQ_TRES,
    N_CPUS,
    REQ_CPUS,
    N_NODES,
    TIME_LIMIT,
    PRIORITY,
    ELIGIBLE,
    START,
    END,
    SUSPENDED,
    EXIT_CODE,
    RESTARTS,
    TOTAL_CPU,
    USER_CPU,
    SYSTEM_CPU,
    MAX_RSS,
    USAGE_IN,
    USAGE_OUT,
    ENERGY,
    N_PLACES,
};

static const struct str places[N_PLACES] = {
    [JOB_ID_RAW] = STR_INIT("JobIDRaw"),
    [JOB_ID] = STR_INIT("JobID"),
    [STATE] = STR_INIT("State"),
    [SUBMIT] = STR_INIT("Submit"),
    [JOB_NAME] = STR_INIT("JobName"),
    [USER] = STR_INIT("User"),
    [UID] = STR_INIT("UID"),
    [ACCOUNT] = STR_INIT("Account"),
    [PARTITION] = STR_INIT("Partition"),
    [QOS] = STR_INIT("QOS"),
    [RESERVATION] = STR_INIT("Reservation"),
    [REASON] = STR_INIT("Reason"),
    [NODE_LIST] = STR_INIT("NodeList"),
    [ALLOC_TRES] = STR_INIT("AllocTRES"),
    [REQ_TRES] = STR_INIT("ReqTRES"),
    [N_CPUS] = STR_INIT("NCPUS"),
    [REQ_CPUS] = STR_INIT("ReqCPUS"),
    [N_NODES] = STR_INIT("NNodes"),
    [TIME_LIMIT] = STR_INIT("TimelimitRaw"),
    [PRIORITY] = STR_INIT("Priority"),
    [ELIGIBLE] = STR_INIT("Eligible"),
    [START] = STR_INIT("Start"),
    [END] = STR_INIT("End"),
    [SUSPENDED] = STR_INIT("Suspended"),
    [EXIT_CODE] = STR_INIT("ExitCode"),
    [RESTARTS] = STR_INIT("Restarts"),
    [TOTAL_CPU] = STR_INIT("TotalCPU"),
    [USER_CPU] = STR_INIT("UserCPU"),
    [SYSTEM_CPU] = STR_INIT("SystemCPU"),
    [MAX_RSS] = STR_INIT("MaxRSS"),
    [USAGE_IN] = STR_INIT("TRESUsageInTot"),
    [USAGE_OUT] = STR_INIT("TRESUsageOutTot"),
    [ENERGY] = STR_INIT("ConsumedEnergyRaw"),
};

/* What follows from other fields, or is told of steps only. One that ends with * stands for all
 * that begin so. */
static const struct str left_out[] = {
    STR_INIT("AllocCPUS"),     STR_INIT("AllocNodes"), STR_INIT("Ave*"),
    STR_INIT("BlockID"),       STR_INIT("Cluster"),    STR_INIT("ConsumedEnergy"),
    STR_INIT("CPUTime"),       STR_INIT("CPUTimeRAW"), STR_INIT("Elapsed"),
    STR_INIT("ElapsedRaw"),    STR_INIT("Layout"),     STR_INIT("Max*"),
    STR_INIT("Min*"),          STR_INIT("NTasks"),     STR_INIT("PlannedCPU"),
    STR_INIT("PlannedCPURAW"), STR_INIT("QOSRAW"),     STR_INIT("ReqCPUFreq"),
    STR_INIT("ReqMem"),        STR_INIT("ReqNodes"),   STR_INIT("ResvCPU"),
    STR_INIT("ResvCPURAW"),    STR_INIT("Timelimit"),  STR_INIT("TRESUsage*"),
    STR_INIT("WCKeyID"),
};

static const struct str written_by_people[] = {
    STR_INIT("AdminComment"), STR_INIT("Comment"),       STR_INIT("Extra"),
    STR_INIT("StdErr"),       STR_INIT("StdIn"),         STR_INIT("StdOut"),
    STR_INIT("SubmitLine"),   STR_INIT("SystemComment"), STR_INIT("WCKey"),
    STR_INIT("WorkDir"),
};

/* How long it has waited: that follows from other fields, and grows until it begins. */
static const struct str waits[] = { STR_INIT("Planned"), STR_INIT("Reserved") };

static size_t place_of(struct str name)
{
    size_t place = 0;

    while (place < N_PLACES && !str_eq_nocase(places[place], name))
        place++;
    return place;
}

static bool is_among(const struct str *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++) {
        struct str stem = names[i];

        if (str_ends(stem, STR("*")) ? str_starts(name, str_head(stem, stem.n - 1))
                                     : str_eq_nocase(stem, name))
            return true;
    }
    return false;
}

/* The next word of *rest; empty at its end. */
static struct str next_word(struct str *rest)
{
    size_t n = 0;

    *rest = str_trim(*rest);
    while (n < rest->n && !strchr(" \t\r\n", rest->p[n]))
        n++;
    *rest = str_skip(*rest, n);
    return (struct str){ rest->p - n, n };
}

/* A name goes into a list that sacct cuts at commas. */
static bool is_name(struct str word)
{
    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return word.n && word.n < SACCT_NAME_MAX;
}

static void add_field(struct sacct_fields *fields, struct str name, size_t place)
{
    struct sacct_field *field = &fields->field[fields->n++];

    *field = (struct sacct_field){
        .place = (uint8_t)place,
        .is_anyones = is_among(written_by_people, COUNT(written_by_people), name),
        .is_wait = is_among(waits, COUNT(waits), name),
    };
    memcpy(field->name, name.p, name.n);
}

static bool has_field(const struct sacct_fields *fields, struct str name)
{
    for (size_t i = 0; i < fields->n; i++)
        if (str_eq_nocase(str_of(fields->field[i].name), name))
            return true;
    return false;
}

int sacct_fields_read(struct str help, struct sacct_fields *ret, struct err *err)
{
    struct str word, rest = help;

    ret->n = 0;
    /* Those with a place first: they are not crowded out by what a newer release adds. */
    while ((word = next_word(&rest)).n)
        if (place_of(word) < N_PLACES && !has_field(ret, word))
            add_field(ret, word, place_of(word));
    for (size_t i = 0; i < N_NEEDED; i++)
        if (!has_field(ret, places[i]))
            return err_set(err, EBADMSG, "sacct --helpformat does not name the field %s",
                           places[i].p);
    rest = help;
    while ((word = next_word(&rest)).n && ret->n < FRAME_FIELDS_MAX)
        if (is_name(word) && place_of(word) == N_PLACES && !has_field(ret, word) &&
            !is_among(left_out, COUNT(left_out), word))
            add_field(ret, word, N_PLACES);
    return 0;
}

/* Below n, each with the same chance but for one in 2^32. */
static size_t random_below(size_t n)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        abort();
    return (size_t)(random % n);
}

void sacct_fields_shuffle(struct sacct_fields *fields)
{
    for (size_t n = fields->n; n > 1; n--) {
        size_t other = random_below(n);
        struct sacct_field field = fields->field[n - 1];

        fields->field[n - 1] = fields->field[other];
        fields->field[other] = field;
    }
}

void sacct_fields_put(const struct sacct_fields *fields, struct buf *to)
{
    for (size_t i = 0; i < fields->n; i++)
        buf_printf(to, "%s%s", i ? "," : "", fields->field[i].name);
}

struct sacct_answer {
    struct sacct_answer_config config;
    struct frame frame;
    struct sacct_counts counts;

    /* The job whose steps may still come. */
    bool has_job;
    struct job_record job;
    struct record_extra extra[FRAME_FIELDS_MAX + 1];
    struct buf texts; /* what its strings point into */
    char user[NUM_U64_MAX];
    uint64_t steps_joules;

    int code; /* of the first record that was refused */
    struct err err;
};

static void leave_out(struct sacct_answer *answer, struct str example)
{
    struct sacct_counts *counts = &answer->counts;

    if (!counts->skipped++) {
        size_t n = str_copy_printable(counts->skipped_example, sizeof(counts->skipped_example) - 1,
                                      example);

        counts->skipped_example[n] = '\0';
    }
}

static void hand_on(struct sacct_answer *answer)
{
    struct job_record *job = &answer->job;

    if (!answer->has_job)
        return;
    answer->has_job = false;
    if (job->energy_joules == MODEL_UNKNOWN_U64 && answer->steps_joules)
        job->energy_joules = answer->steps_joules;
    if (answer->code == 0) {
        answer->code = answer->config.record(answer->config.ctx, job, &answer->err);
        answer->counts.records += answer->code == 0;
    }
}

/* Unknown if it is nothing: the node had no meter, or did not look in time. */
static uint64_t amount(struct str field)
{
    uint64_t value;

    return units_memory(field, 1, &value, NULL) && value ? value : MODEL_UNKNOWN_U64;
}

static uint64_t more_of(uint64_t a, uint64_t b)
{
    if (a == MODEL_UNKNOWN_U64 || b == MODEL_UNKNOWN_U64)
        return a == MODEL_UNKNOWN_U64 ? b : a;
    return a > b ? a : b;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    uint64_t sum;

    if (a == MODEL_UNKNOWN_U64 || b == MODEL_UNKNOWN_U64)
        return a == MODEL_UNKNOWN_U64 ? b : a;
    return __builtin_add_overflow(a, b, &sum) ? MODEL_UNKNOWN_U64 : sum;
}

/* "cpu=00:00:03,energy=0,fs/disk=30231,mem=4657152,…" */
static uint64_t disk_bytes(struct str usage)
{
    static const struct str disk = STR_INIT("fs/disk=");
    uint64_t bytes;

    while (usage.p) {
        struct str part = str_cut(&usage, ',');

        if (str_starts(part, disk) && units_memory(str_skip(part, disk.n), 1, &bytes, NULL))
            return bytes;
    }
    return MODEL_UNKNOWN_U64;
}

static void add_step(struct sacct_answer *answer, const struct str *fields)
{
    struct job_record *job = &answer->job;
    uint64_t joules = amount(fields[ENERGY]);

    job->memory_peak_bytes = more_of(job->memory_peak_bytes, amount(fields[MAX_RSS]));
    job->read_bytes = sum_of(job->read_bytes, disk_bytes(fields[USAGE_IN]));
    job->write_bytes = sum_of(job->write_bytes, disk_bytes(fields[USAGE_OUT]));
    if (joules != MODEL_UNKNOWN_U64)
        answer->steps_joules = sum_of(answer->steps_joules, joules);
}

static struct str name_or_none(struct str field)
{
    return answer_is_nameless(field) ? STR("") : field;
}

static size_t count_digits(struct str text)
{
    size_t n = 0;

    while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
        n++;
    return n;
}

/* "5" or, of a task, "2_7"; of tasks that wait together "2_[1-19%4]"; of a component "5+1". */
static bool read_id(struct job_record *job, struct str text)
{
    struct str first = str_head(text, count_digits(text)), rest;

    job->tasks = 1;
    if (str_eq(first, text))
        return true;
    rest = str_skip(text, first.n + 1);
    if (text.p[first.n] == '+') {
        job->het_job_id = answer_u32(first, 0);
        job->het_offset = answer_u32(rest, MODEL_UNKNOWN_U32);
        return job->het_job_id && job->het_offset != MODEL_UNKNOWN_U32;
    }
    job->array_job_id = answer_u32(first, 0);
    if (text.p[first.n] != '_' || !job->array_job_id)
        return false;
    if (str_starts(rest, STR("[")) && str_ends(rest, STR("]")))
        return answer_array_tasks((struct str){ rest.p + 1, rest.n - 2 }, &job->tasks);
    job->array_task_id = answer_u32(rest, MODEL_UNKNOWN_U32);
    return job->array_task_id != MODEL_UNKNOWN_U32;
}

/* "CANCELLED by 1000" too. A word that a newer Slurm has thought of leaves the state unknown, but a
 * word it must be. */
static bool read_state(struct job_record *job, struct str text)
{
    struct str word = str_head(text, str_find(text, ' '));

    for (size_t i = 0; i < word.n; i++)
        if (!(word.p[i] >= 'A' && word.p[i] <= 'Z') && word.p[i] != '_' && word.p[i] != '+')
            return false;
    job_state_parse(word, &job->state);
    return word.n;
}

static void read_times(struct job_record *job, const struct str *fields)
{
    double suspended;

    job->eligible_time = answer_timestamp(fields[ELIGIBLE]);
    job->start_time = answer_timestamp(fields[START]);
    job->end_time = answer_timestamp(fields[END]);
    /* Of a job that ended without having begun, 22.05 says that it began when it ended. */
    if (job->end_time && !job->nodes.n)
        job->start_time = 0;
    if (job->start_time && units_elapsed(fields[SUSPENDED], &suspended) && suspended >= 0)
        job->suspended_seconds = (uint64_t)suspended;
}

static double seconds_of(struct str field)
{
    double seconds;

    return units_elapsed(field, &seconds) ? seconds : NAN;
}

/* What is known once it has run: until then slurmdbd says 0. */
static void read_end(struct job_record *job, const struct str *fields)
{
    struct str signal = fields[EXIT_CODE], code = str_cut(&signal, ':');

    if (!job->end_time)
        return;
    job->exit_code = answer_u32(code, MODEL_UNKNOWN_U32);
    job->exit_signal = answer_u32(signal, MODEL_UNKNOWN_U32);
    if (!job->start_time)
        return;
    job->cpu_seconds = seconds_of(fields[TOTAL_CPU]);
    job->user_seconds = seconds_of(fields[USER_CPU]);
    job->system_seconds = seconds_of(fields[SYSTEM_CPU]);
}

/* A job that has not started has no allocation: its `tres` is what it requests. */
static void read_resources(struct job_record *job, const struct str *fields)
{
    struct tres tres;

    job->tres = job->start_time && fields[ALLOC_TRES].n ? fields[ALLOC_TRES] : fields[REQ_TRES];
    job->tres_requested = fields[REQ_TRES];
    tres_parse(job->tres, &tres);
    job->memory_bytes = tres.memory_bytes;
    job->cpus = answer_count(fields[job->start_time ? N_CPUS : REQ_CPUS]);
    job->node_count = answer_count(fields[N_NODES]);
    job->time_limit_minutes = answer_u32(fields[TIME_LIMIT], MODEL_UNKNOWN_U32);
}

static void read_names(struct sacct_answer *answer, const struct str *fields)
{
    struct job_record *job = &answer->job;
    struct str nodes = fields[NODE_LIST];

    job->user_id = answer_u32(fields[UID], MODEL_UNKNOWN_U32);
    job->user = name_or_none(fields[USER]);
    if (!job->user.n && job->user_id != MODEL_UNKNOWN_U32)
        job->user = (struct str){ answer->user, num_put_u64(answer->user, job->user_id) };
    job->account = name_or_none(fields[ACCOUNT]);
    job->partition = name_or_none(fields[PARTITION]);
    job->qos = name_or_none(fields[QOS]);
    job->reservation = name_or_none(fields[RESERVATION]);
    job->name = fields[JOB_NAME];
    job->reason = units_absent(fields[REASON]) ? STR("") : fields[REASON];
    job->nodes = units_absent(nodes) || str_eq(nodes, STR("None assigned")) ? STR("") : nodes;
}

static void add_extra(struct sacct_answer *answer, const char *name, struct str value)
{
    answer->extra[answer->job.n_extra++] = (struct record_extra){ str_of(name), value };
}

/* What has no place of its own; and a state that says more than its word. */
static void read_extra(struct sacct_answer *answer, const struct str *columns,
                       const struct str *fields)
{
    const struct sacct_fields *asked = answer->config.fields;

    answer->job.extra = answer->extra;
    for (size_t i = 0; i < asked->n; i++) {
        const struct sacct_field *field = &asked->field[i];

        if (field->place == N_PLACES && columns[i].n &&
            (field->is_anyones || !units_absent(columns[i])) &&
            (answer->job.start_time || !field->is_wait))
            add_extra(answer, field->name, columns[i]);
    }
    if (str_find(fields[STATE], ' ') < fields[STATE].n)
        add_extra(answer, places[STATE].p, fields[STATE]);
}

/* The columns of one record by their places. */
static void sort_columns(const struct sacct_fields *asked, const struct str *columns,
                         struct str fields[N_PLACES])
{
    for (size_t i = 0; i < N_PLACES; i++)
        fields[i] = STR("");
    for (size_t i = 0; i < asked->n; i++)
        if (asked->field[i].place < N_PLACES)
            fields[asked->field[i].place] = columns[i];
}

/* The columns are of a piece that is gone when the steps come: keeps what they lie in. */
static void keep_columns(struct sacct_answer *answer, const struct str *columns,
                         struct str kept[FRAME_FIELDS_MAX])
{
    size_t n = answer->config.fields->n;
    struct str all = str_span(columns[0].p, columns[n - 1].p + columns[n - 1].n);

    buf_reset(&answer->texts);
    buf_put(&answer->texts, all);
    for (size_t i = 0; i < n; i++)
        kept[i] = (struct str){ answer->texts.p + (columns[i].p - all.p), columns[i].n };
}

/* One that was requeued is eligible after a while, and may end before. */
static bool was_never_eligible(const struct job_record *job)
{
    return !job->eligible_time || (job->end_time && job->end_time < job->eligible_time);
}

static void read_job(struct sacct_answer *answer, const struct str *columns)
{
    struct str kept[FRAME_FIELDS_MAX], fields[N_PLACES];
    struct job_record *job = &answer->job;

    keep_columns(answer, columns, kept);
    sort_columns(answer->config.fields, kept, fields);
    job_record_clear(job);
    job->origin = RECORD_ACCOUNTED;
    job->as_of = answer->config.as_of;
    job->id = answer_u32(fields[JOB_ID_RAW], 0);
    job->submit_time = answer_timestamp(fields[SUBMIT]);
    if (!job->id || job->submit_time <= 0 || !read_id(job, fields[JOB_ID]) ||
        !read_state(job, fields[STATE])) {
        leave_out(answer, fields[JOB_ID_RAW]);
        return;
    }
    read_names(answer, fields);
    read_times(job, fields);
    read_end(job, fields);
    read_resources(job, fields);
    job->priority = answer_u64(fields[PRIORITY]);
    job->restarts = answer_u32(fields[RESTARTS], MODEL_UNKNOWN_U32);
    job->energy_joules = amount(fields[ENERGY]);
    read_extra(answer, kept, fields);
    answer->steps_joules = 0;
    answer->has_job = !answer->config.only_ineligible || was_never_eligible(job);
}

static void read_step(struct sacct_answer *answer, const struct str *columns, struct str id)
{
    struct str fields[N_PLACES], job_id = str_cut(&id, '.');

    if (!answer->has_job)
        return;
    if (answer_u32(job_id, 0) != answer->job.id) {
        leave_out(answer, job_id);
        return;
    }
    sort_columns(answer->config.fields, columns, fields);
    add_step(answer, fields);
}

static void read_record(void *ctx, const struct str *columns)
{
    struct sacct_answer *answer = ctx;
    const struct sacct_fields *asked = answer->config.fields;
    struct str id = STR("");

    for (size_t i = 0; i < asked->n; i++)
        if (asked->field[i].place == JOB_ID_RAW)
            id = columns[i];
    if (str_find(id, '.') < id.n) {
        read_step(answer, columns, id);
    } else {
        hand_on(answer);
        read_job(answer, columns);
    }
}

struct sacct_answer *sacct_answer_new(const struct sacct_answer_config *config)
{
    struct sacct_answer *answer = heap_alloc(sizeof(*answer));

    answer->config = *config;
    frame_init(&answer->frame, config->fields->n, read_record, answer);
    buf_init(&answer->texts, FRAME_RECORD_MAX);
    return answer;
}

struct sacct_answer *sacct_answer_free(struct sacct_answer *answer)
{
    if (answer) {
        frame_free(&answer->frame);
        buf_free(&answer->texts);
        free(answer);
    }
    return NULL;
}

const char *sacct_answer_token(const struct sacct_answer *answer)
{
    return answer->frame.token;
}

static int verdict(const struct sacct_answer *answer, int code, struct err *err)
{
    if (answer->code == 0)
        return code;
    *err = answer->err;
    return answer->code;
}

int sacct_answer_feed(struct sacct_answer *answer, struct str piece, struct err *err)
{
    int code = frame_feed(&answer->frame, piece, err);

    return verdict(answer, code, err);
}

int sacct_answer_end(struct sacct_answer *answer, struct err *err)
{
    int code = frame_finish(&answer->frame, err);

    if (code == 0)
        hand_on(answer);
    return verdict(answer, code, err);
}

void sacct_answer_count(const struct sacct_answer *answer, struct sacct_counts *counts)
{
    if (!counts->skipped)
        memcpy(counts->skipped_example, answer->counts.skipped_example,
               sizeof(counts->skipped_example));
    counts->records += answer->counts.records;
    counts->skipped += answer->counts.skipped + answer->frame.records_skipped;
}
