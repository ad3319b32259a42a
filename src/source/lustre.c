/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who moves what on Lustre now. Queries in PromQL (prometheus.io/docs/prometheus/latest/querying),
 * of the families of lustre_exporter. */
#include "source/lustre.h"

#include "base/num.h"
#include "source/lustre_ids.h"
#include "source/owners.h"

#include <math.h>

enum {
    MOST_IDS = 1 << 20,
    MOST_NAMELESS = 1000, /* users without a name that the directory is asked for in one look */
};

/* A directory that is slow shows numbers at first, and names later. */
static const int64_t names_patience_ns = 2 * NS_PER_SEC, names_slice_ns = 100 * NS_PER_MS;

/* A rate, or metadata by target. In a text, $ is {matchers}[range], # is more matchers behind
 * others, @ the range. */
struct question {
    const char *text;
    enum lustre_stage stage;
    enum lustre_rate rate;
    enum { BY_ID, BY_TARGET, BY_OPERATION } by;
    bool is_detail;
};

/* The first three are those of prometheus-cluster-exporter, to the letter: there are recording
 * rules and caches for them. */
static const struct question questions[] = {
    { .text = "round(sum by(target,jobid)(irate(lustre_job_stats_total$)>=1))",
      .stage = LUSTRE_STAGE_METADATA,
      .by = BY_TARGET },
    { .text = "sum by(jobid)(irate(lustre_job_read_bytes_total$)!=0)",
      .stage = LUSTRE_STAGE_READ,
      .rate = LUSTRE_READ_BYTES },
    { .text = "sum by(jobid)(irate(lustre_job_write_bytes_total$)!=0)",
      .stage = LUSTRE_STAGE_WRITE,
      .rate = LUSTRE_WRITE_BYTES },
    { .text = "sum by(jobid)(irate(lustre_job_read_samples_total$)!=0)",
      .stage = LUSTRE_STAGE_READ,
      .rate = LUSTRE_READS,
      .is_detail = true },
    { .text = "sum by(jobid)(irate(lustre_job_write_samples_total$)!=0)",
      .stage = LUSTRE_STAGE_WRITE,
      .rate = LUSTRE_WRITES,
      .is_detail = true },
    /* Where Lustre does not count sizes, all of a target's are small if their mean is. */
    { .text = "sum by(jobid)((irate(lustre_job_read_small_samples_total$) or "
              "(irate(lustre_job_read_samples_total$) and (irate(lustre_job_read_bytes_total$)/"
              "irate(lustre_job_read_samples_total$)<=32768)))!=0)",
      .stage = LUSTRE_STAGE_READ,
      .rate = LUSTRE_SMALL_READS,
      .is_detail = true },
    { .text = "sum by(jobid)((irate(lustre_job_write_small_samples_total$) or "
              "(irate(lustre_job_write_samples_total$) and (irate(lustre_job_write_bytes_total$)/"
              "irate(lustre_job_write_samples_total$)<=32768)))!=0)",
      .stage = LUSTRE_STAGE_WRITE,
      .rate = LUSTRE_SMALL_WRITES,
      .is_detail = true },
    { .text = "sum by(jobid)(irate(lustre_job_stats_total$)!=0)",
      .stage = LUSTRE_STAGE_METADATA,
      .rate = LUSTRE_OPERATIONS,
      .is_detail = true },
    { .text = "sum by(jobid,operation)(irate(lustre_job_stats_total{operation=~\"open|close\"#}[@])"
              "!=0)",
      .stage = LUSTRE_STAGE_METADATA,
      .by = BY_OPERATION,
      .is_detail = true },
};
_Static_assert(COUNT(questions) == LUSTRE_QUERIES, "as many as the header says");

struct lustre_source {
    struct source source;
    struct prometheus *prometheus;
    char *texts[LUSTRE_QUERIES];
    struct lustre_format **formats;
    size_t n_formats;
    int64_t range_ns, query_timeout_ns;
    struct owners *owners;
    struct users *users;
    bool has_slow_names; /* the directory took longer than anybody waits; until it has caught up */
    lustre_jobs *jobs;
    void *ctx;
};

/* One look. */
struct look {
    struct lustre_source *of;
    struct section *section;
    struct lustre *lustre;
    size_t id_room, metadata_room;
    int64_t *user_ids; /* by id, of LUSTRE_PROCESS; -1: it has none */
    size_t user_id_room;

    /* By owner.number and by the number of a text: 0, or where the job is + 1; 0, or its symbol. */
    uint32_t *jobs;
    symbol *symbols;
    struct map others; /* ids that are of no job, or of none that is known */
    uint32_t *places;  /* where the id is, by its place in `others` */
    size_t place_room;
    const struct question *question; /* that is being answered */
};

static uint32_t add_id(struct look *look, enum lustre_who who)
{
    struct lustre *lustre = look->lustre;
    size_t room = look->id_room;

    lustre->id = heap_grow(lustre->id, lustre->n, &look->id_room, sizeof(*lustre->id));
    if (room != look->id_room)
        look->user_ids = heap_resize(look->user_ids, look->id_room, sizeof(*look->user_ids));
    lustre->id[lustre->n] = (struct lustre_id){ .who = who };
    for (size_t i = 0; i < LUSTRE_RATES; i++)
        lustre->id[lustre->n].per_second[i] = NAN;
    return (uint32_t)lustre->n++;
}

static symbol symbol_of(struct look *look, struct str text, uint32_t number)
{
    if (!look->symbols[number])
        look->symbols[number] = symbols_put(&look->section->symbols, text);
    return look->symbols[number];
}

static uint32_t find_job(struct look *look, uint32_t job_id, const struct owner *owner)
{
    uint32_t *place = &look->jobs[owner->number];
    struct lustre_id *id;

    if (*place)
        return *place - 1;
    *place = add_id(look, LUSTRE_JOB) + 1;
    id = &look->lustre->id[*place - 1];
    id->job_id = job_id;
    id->account = symbol_of(look, owner->account, owner->account_number);
    id->user = symbol_of(look, owner->user, owner->user_number);
    return *place - 1;
}

/* The place of an id that is no known job's, and whether it is new. */
static uint32_t *find_other(struct look *look, struct str key, bool *ret_is_new)
{
    size_t n = look->others.n;
    size_t place = map_index(&look->others, key);

    *ret_is_new = look->others.n > n;
    if (*ret_is_new)
        look->places = heap_grow(look->places, n, &look->place_room, sizeof(*look->places));
    return &look->places[place];
}

static uint32_t find_process(struct look *look, struct str raw, const struct lustre_parts *parts)
{
    bool is_new;
    uint32_t *place = find_other(look, raw, &is_new);

    if (is_new) {
        uint32_t at = add_id(look, LUSTRE_PROCESS);

        look->lustre->id[at].process = symbols_put(&look->section->symbols, parts->process);
        look->user_ids[at] = parts->has_user ? (int64_t)parts->user_id : -1;
        *place = at;
    }
    return *place;
}

static uint32_t find_nobody(struct look *look, struct str raw, uint64_t *count)
{
    bool is_new;
    uint32_t *place = find_other(look, raw, &is_new);

    if (is_new) {
        *place = add_id(look, LUSTRE_NOBODY);
        ++*count;
    }
    return *place;
}

static bool read_id(const struct lustre_source *source, struct str raw, struct lustre_parts *parts)
{
    for (size_t i = 0; i < source->n_formats; i++)
        if (lustre_format_read(source->formats[i], raw, parts))
            return true;
    return lustre_id_read(raw, parts);
}

/* A job's process can set the variable that its job id is taken from, but not its user id. */
static bool is_forged(const struct lustre_parts *parts, const struct owner *owner)
{
    return parts->has_user && owner->user_id != MODEL_UNKNOWN_U32 &&
           parts->user_id != owner->user_id && parts->user_id != 0;
}

/* Where an id is that stands for no job that is known. Past the ceiling, all are the empty one. */
static uint32_t find_stranger(struct look *look, struct str raw, const struct lustre_parts *parts,
                              uint64_t *count)
{
    uint64_t unused = 0;

    if (look->others.n >= MOST_IDS && !map_get(&look->others, raw)) {
        look->lustre->left_out++;
        return find_nobody(look, STR(""), &unused);
    }
    return count ? find_nobody(look, raw, count) : find_process(look, raw, parts);
}

static struct lustre_id *find_id(struct look *look, struct str raw)
{
    struct lustre *lustre = look->lustre;
    struct lustre_parts parts = { 0 };
    uint64_t *count = NULL; /* as what it is of nobody */
    struct owner owner;
    uint32_t at;

    if (!read_id(look->of, raw, &parts))
        count = &lustre->unreadable;
    else if (parts.has_job && !owners_find(look->of->owners, parts.job_id, &owner))
        count = &lustre->unknown_jobs;
    else if (parts.has_job && is_forged(&parts, &owner))
        count = &lustre->forged;
    at = parts.has_job && !count ? find_job(look, parts.job_id, &owner)
                                 : find_stranger(look, raw, &parts, count);
    return &lustre->id[at];
}

static bool is_mdt(struct str target)
{
    size_t digits = 4, at = target.n - digits;

    if (target.n < STR("-MDT").n + digits || !str_ends((struct str){ target.p, at }, STR("-MDT")))
        return false;
    for (; at < target.n; at++)
        if (!memchr("0123456789abcdefABCDEF", target.p[at], 22))
            return false;
    return true;
}

static void add(double *sum, double value)
{
    *sum = isnan(*sum) ? value : *sum + value;
}

static void take_metadata(struct look *look, const struct prometheus_sample *sample)
{
    struct lustre *lustre = look->lustre;
    const struct lustre_id *id;

    if (!is_mdt(sample->label[1]))
        return;
    id = find_id(look, sample->label[0]);
    lustre->metadata = heap_grow(lustre->metadata, lustre->n_metadata, &look->metadata_room,
                                 sizeof(*lustre->metadata));
    lustre->metadata[lustre->n_metadata++] = (struct lustre_metadata){
        .id = (uint32_t)(id - lustre->id),
        .target = symbols_put(&look->section->symbols, sample->label[1]),
        .per_second = sample->value,
    };
}

static void take(void *ctx, const struct prometheus_sample *sample)
{
    struct look *look = ctx;

    /* Rates of counters; what is none of one is a division by nothing, or no counter. */
    if (!isfinite(sample->value) || sample->value < 0) {
        look->section->skipped++;
        return;
    }
    switch (look->question->by) {
    case BY_TARGET:
        take_metadata(look, sample);
        break;
    case BY_OPERATION:
        add(&find_id(look, sample->label[0])
                 ->per_second[str_eq(sample->label[1], STR("open")) ? LUSTRE_OPENS : LUSTRE_CLOSES],
            sample->value);
        break;
    case BY_ID:
        add(&find_id(look, sample->label[0])->per_second[look->question->rate], sample->value);
        break;
    }
}

static double seconds_since(int64_t ns)
{
    return (double)(clock_mono(&clock_real) - ns) / NS_PER_SEC;
}

static int ask(struct look *look, size_t i, int64_t deadline_ns, char warning[SOURCE_WARNING],
               struct err *err)
{
    static const char *const second_labels[] = {
        [BY_TARGET] = "target", [BY_OPERATION] = "operation"
    };
    struct lustre_source *source = look->of;
    int64_t began = clock_mono(&clock_real);
    int64_t left_ns = deadline_ns - began < source->query_timeout_ns ? deadline_ns - began
                                                                     : source->query_timeout_ns;
    const struct prometheus_query query = {
        .text = source->texts[i],
        .labels = { "jobid", questions[i].by == BY_ID ? NULL : second_labels[questions[i].by] },
        .timeout_ms = left_ns > NS_PER_MS ? left_ns / NS_PER_MS : 1,
        .cancelled = &source->source.cancelled,
        .sink = take,
        .ctx = look,
    };
    struct prometheus_result result = { 0 };
    int code;

    look->question = &questions[i];
    code = prometheus_query(source->prometheus, &query, &result, err);
    look->section->bytes_read += result.bytes;
    look->section->skipped += result.skipped;
    if (result.warning[0] && !warning[0])
        snprintf(warning, SOURCE_WARNING, "%s", result.warning);
    look->lustre->stage_seconds[questions[i].stage] += seconds_since(began);
    return code;
}

/* Asks for all that are not known yet. Ids come from users: one who makes up user ids must not
 * keep the directory busy, nor push names out of what is remembered. */
static void ask_names(struct look *look)
{
    char name[USERS_NAME_MAX];
    size_t n_nameless = 0;

    for (size_t i = 0; i < look->lustre->n && n_nameless < MOST_NAMELESS; i++) {
        if (look->lustre->id[i].who != LUSTRE_PROCESS || look->user_ids[i] < 0)
            continue;
        if (!users_user(look->of->users, (uid_t)look->user_ids[i], name))
            n_nameless++;
        users_own_group(look->of->users, (uid_t)look->user_ids[i], name);
    }
}

/* Those that are asked for the first time should be there at the first look. */
static void await_names(struct lustre_source *source, int64_t deadline_ns)
{
    const struct clock *clock = source->source.clock;
    int64_t now = clock_mono(clock), end = now + names_patience_ns;
    bool is_settled = users_settle(source->users, now);

    while (!is_settled && !source->has_slow_names && now < end &&
           clock_mono(&clock_real) < deadline_ns && !atomic_load(&source->source.cancelled)) {
        is_settled = users_settle(source->users, now + names_slice_ns);
        now = clock_mono(clock);
    }
    source->has_slow_names = !is_settled;
}

static void put_names(struct look *look)
{
    struct lustre *lustre = look->lustre;
    struct symbols *symbols = &look->section->symbols;
    char name[USERS_NAME_MAX];
    size_t n_nameless = 0;

    for (size_t i = 0; i < lustre->n; i++) {
        struct lustre_id *id = &lustre->id[i];

        if (id->who != LUSTRE_PROCESS || look->user_ids[i] < 0)
            continue;
        if (n_nameless >= MOST_NAMELESS) {
            snprintf(name, sizeof(name), "%lld", (long long)look->user_ids[i]);
            id->user = symbols_put(symbols, str_of(name));
            lustre->unknown_users++;
            continue;
        }
        if (!users_user(look->of->users, (uid_t)look->user_ids[i], name))
            n_nameless++;
        id->user = symbols_put(symbols, str_of(name));
        users_own_group(look->of->users, (uid_t)look->user_ids[i], name);
        id->group = symbols_put(symbols, str_of(name));
    }
    lustre->unknown_users += n_nameless;
}

/* Both are asked at once: the first stage is the asking and waiting, the second the looking up. */
static void name_all(struct look *look, int64_t deadline_ns)
{
    int64_t began = clock_mono(&clock_real);

    ask_names(look);
    await_names(look->of, deadline_ns);
    look->lustre->stage_seconds[LUSTRE_STAGE_USERS] = seconds_since(began);
    began = clock_mono(&clock_real);
    put_names(look);
    look->lustre->stage_seconds[LUSTRE_STAGE_GROUPS] = seconds_since(began);
}

static int note_jobs(struct look *look, int64_t deadline_ns, struct err *err)
{
    struct lustre_source *source = look->of;
    int64_t began = clock_mono(&clock_real);
    struct section *jobs = source->jobs(source->ctx, deadline_ns, &source->source.cancelled, err);

    if (!jobs)
        return -err->code;
    owners_note(source->owners, jobs, source->range_ns);
    section_unref(jobs);
    look->jobs = heap_alloc((owners_count(source->owners) + 1) * sizeof(*look->jobs));
    look->symbols = heap_alloc((owners_texts(source->owners) + 1) * sizeof(*look->symbols));
    look->lustre->stage_seconds[LUSTRE_STAGE_JOBS] = seconds_since(began);
    return 0;
}

/* What is told of each job is not worth losing the rest for. */
static bool ask_details(struct look *look, int64_t deadline_ns, char warning[SOURCE_WARNING])
{
    struct err err;

    for (size_t i = 0; i < COUNT(questions); i++) {
        if (!questions[i].is_detail || ask(look, i, deadline_ns, warning, &err) == 0)
            continue;
        snprintf(warning, SOURCE_WARNING, "nothing is told of each job: %.250s", err.text);
        return false;
    }
    return true;
}

static int look_around(struct look *look, int64_t deadline_ns, char warning[SOURCE_WARNING],
                       struct err *err)
{
    int code = note_jobs(look, deadline_ns, err);

    for (size_t i = 0; i < COUNT(questions) && code == 0; i++)
        if (!questions[i].is_detail)
            code = ask(look, i, deadline_ns, warning, err);
    if (code < 0)
        return code;
    look->lustre->has_details =
        look->of->source.depth == SOURCE_DETAILS && ask_details(look, deadline_ns, warning);
    name_all(look, deadline_ns);
    return 0;
}

static int read_lustre(struct source *source, enum kind kind, int64_t deadline_ns,
                       struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct look look = { .of = (struct lustre_source *)source, .section = section_new(kind) };
    int code;

    look.lustre = &look.section->lustre;
    map_init(&look.others, &look.section->arena);
    ret_warning[0] = '\0';
    code = look_around(&look, deadline_ns, ret_warning, err);
    arena_adopt(&look.section->arena, look.lustre->id);
    arena_adopt(&look.section->arena, look.lustre->metadata);
    map_free(&look.others);
    free(look.user_ids);
    free(look.jobs);
    free(look.symbols);
    free(look.places);
    if (code < 0)
        section_unref(look.section);
    else
        *ret = look.section;
    return code;
}

static void close_lustre(struct source *base)
{
    struct lustre_source *source = (struct lustre_source *)base;

    for (size_t i = 0; i < source->n_formats; i++)
        lustre_format_free(source->formats[i]);
    for (size_t i = 0; i < COUNT(questions); i++)
        free(source->texts[i]);
    free(source->formats);
    prometheus_close(source->prometheus);
    owners_free(source->owners);
    free(source);
}

static const struct source_class lustre_class = {
    .name = "prometheus",
    .kinds = KIND_BIT(KIND_LUSTRE),
    .read = read_lustre,
    .close = close_lustre,
};

static char *make_text(const char *of, const struct lustre_settings *settings)
{
    struct buf text;
    char *made;

    buf_init(&text, 4096 + 16 * (settings->matchers.n + settings->time_range.n));
    for (; *of; of++) {
        switch (*of) {
        case '$':
            if (settings->matchers.n)
                buf_printf(&text, "{%.*s}", STR_ARG(settings->matchers));
            buf_printf(&text, "[%.*s]", STR_ARG(settings->time_range));
            break;
        case '#':
            if (settings->matchers.n)
                buf_printf(&text, ",%.*s", STR_ARG(settings->matchers));
            break;
        case '@':
            buf_put(&text, settings->time_range);
            break;
        default:
            buf_put(&text, (struct str){ of, 1 });
        }
    }
    made = heap_str(buf_str(&text));
    buf_free(&text);
    return made;
}

static int open_formats(struct lustre_source *source, const struct lustre_settings *settings,
                        struct err *err)
{
    source->formats = heap_array(settings->n_formats + 1, sizeof(*source->formats));
    for (size_t i = 0; i < settings->n_formats; i++) {
        int code = lustre_format_new(settings->formats[i], &source->formats[i], err);

        if (code < 0)
            return code;
        source->n_formats++;
    }
    return 0;
}

int source_open_lustre(const struct lustre_settings *settings, const struct clock *clock,
                       struct source **ret, struct err *err)
{
    struct lustre_source *source = heap_alloc(sizeof(*source));
    int code;

    source->source.class = &lustre_class;
    source->source.clock = clock;
    source->users = settings->users;
    source->jobs = settings->jobs;
    source->ctx = settings->ctx;
    source->query_timeout_ns = settings->query_timeout_ns;
    source->owners = owners_new();
    for (size_t i = 0; i < COUNT(questions); i++)
        source->texts[i] = make_text(questions[i].text, settings);
    code = open_formats(source, settings, err);
    if (code == 0 && !num_get_duration_ns(settings->time_range, &source->range_ns))
        code = err_set(err, EINVAL, "the time range is not a duration");
    if (code == 0)
        code = prometheus_open(&settings->prometheus, &source->prometheus, err);
    if (code < 0)
        close_lustre(&source->source);
    else
        *ret = &source->source;
    return code;
}
