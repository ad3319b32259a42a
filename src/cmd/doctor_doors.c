/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every door into Slurm is tried as the exporter would: does it work, what does it cost, and what
 * does it leave out that another door tells (model/fields.h). docs/sources.md */
#include "cmd/doctor.h"
#include "model/fields.h"

#include <sys/resource.h>

enum {
    PATIENCE = 3, /* times --slurm.timeout for all questions to one door */
    MISSING_SHOWN = 10,
};

/* As auto tries them. */
static const struct str known_doors[] = {
    STR_INIT("libslurm"),
    STR_INIT("rest"),
    STR_INIT("json"),
    STR_INIT("cli"),
};

/* The configuration first: what it costs to begin is then not counted as the nodes'. */
static const enum kind order[] = {
    KIND_CONFIG,   KIND_NODES, KIND_JOBS,   KIND_RESERVATIONS,
    KIND_LICENSES, KIND_DIAG,  KIND_SHARES, KIND_ASSOCIATIONS,
};

/* The first that fits; sentences of other errors say by themselves what to do. */
static const struct {
    int code;         /* 0: any */
    const char *door; /* NULL: any */
    const char *advice;
} advices[] = {
    { ETIMEDOUT, NULL,
      "See whether slurmctld is down (scontrol ping) or busy (sdiag). If the cluster is that "
      "large, raise --slurm.timeout." },
    { EPROTO, "libslurm", "It needs the helper of this cluster's release, and its libslurm." },
    { 0, "libslurm",
      "It needs libslurm of this cluster's release and its slurm.conf on this host: --slurm.conf, "
      "or SLURM_CONF_SERVER." },
    { EREMOTEIO, NULL, "Run that command by hand as this user; slurmctld's log has the rest." },
    { EBADMSG, NULL, "Please report it, with sonde's and Slurm's versions." },
};

/* For where there is no other door to compare with: docs/sources.md, "What a door cannot know". */
static const struct {
    const char *door, *why;
} gaps[] = {
    { "cli", "sdiag prints means, rounded down, where Slurm has totals" },
    { "rest", "slurmrestd tells limits, not what is in use of them" },
};

struct duration doctor_duration(int64_t ns)
{
    struct duration duration;
    double ms = (double)ns / NS_PER_MS;

    if (ms < 10)
        snprintf(duration.text, sizeof(duration.text), "%.1f" GLUE "ms", ms);
    else if (ms < 1000)
        snprintf(duration.text, sizeof(duration.text), "%.0f" GLUE "ms", ms);
    else
        snprintf(duration.text, sizeof(duration.text), "%.1f" GLUE "s", ms / 1000);
    return duration;
}

void doctor_cancel(struct doctor *doctor)
{
    pthread_mutex_lock(&doctor->lock);
    atomic_store(&doctor->is_cancelled, true);
    if (doctor->current)
        source_cancel(doctor->current);
    pthread_mutex_unlock(&doctor->lock);
}

static void set_current(struct doctor *doctor, struct source *source)
{
    pthread_mutex_lock(&doctor->lock);
    doctor->current = source;
    if (source && atomic_load(&doctor->is_cancelled))
        source_cancel(source);
    pthread_mutex_unlock(&doctor->lock);
}

static struct source *end_source(struct doctor *doctor, struct source *source)
{
    set_current(doctor, NULL);
    return source_close(source);
}

static int64_t timeval_ns(struct timeval time)
{
    return time.tv_sec * NS_PER_SEC + time.tv_usec * (NS_PER_SEC / 1000000);
}

/* Ours, and that of all commands that have ended. */
static int64_t cpu_ns(void)
{
    static const int whose[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
    int64_t ns = 0;

    for (size_t i = 0; i < COUNT(whose); i++) {
        struct rusage usage;

        if (getrusage(whose[i], &usage) == 0)
            ns += timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
    }
    return ns;
}

static size_t count_of(const struct section *section, const struct field_array *array)
{
    size_t n;

    memcpy(&n, (const char *)section + array->count, sizeof(n));
    return n;
}

/* Sets has[] of the record's fields from `first` on; returns where the next ones are. */
static size_t note_fields(const char *records, size_t n, const struct field_record *record,
                          size_t first, bool has[DOOR_FIELDS])
{
    for (size_t i = 0; i < record->n && first + i < DOOR_FIELDS; i++)
        for (size_t j = 0; j < n && !has[first + i]; j++)
            has[first + i] = field_is_told(&record->fields[i],
                                           records + j * record->size + record->fields[i].offset);
    return first + record->n;
}

static void note_presence(const struct section *section, struct look *look)
{
    const struct field_kind *kind = &field_kinds[section->kind];
    size_t at = note_fields((const char *)section, 1, &kind->head, 0, look->has);

    for (size_t i = 0; i < kind->n_arrays; i++) {
        const char *records;

        memcpy(&records, (const char *)section + kind->arrays[i].items, sizeof(records));
        at = note_fields(records, count_of(section, &kind->arrays[i]), kind->arrays[i].record, at,
                         look->has);
    }
}

/* slurmrestd does not tell as whom it asks; nor is that known of commands on another host. */
static void learn_config(struct doctor *doctor, const struct source *source,
                         const struct section *section)
{
    const struct config *config = &section->config;

    doctor->has_config = true;
    if (!doctor->cluster.text[0])
        doctor->cluster = quote(section_text(section, config->cluster));
    if (!doctor->version.text[0])
        doctor->version = quote(section_text(section, config->version));
    if (doctor->has_user || doctor->settings.prefix.n || config->user_id == MODEL_UNKNOWN_U32)
        return;
    doctor->has_user = true;
    doctor->user_door = source->class->name;
    doctor->user = quote(section_text(section, config->user));
    doctor->user_id = config->user_id;
    doctor->hidden = config->hidden;
}

/* slurmctld's clock is told in whole seconds, somewhere between our asking and its answer. */
static void learn_time(struct doctor *doctor, int64_t theirs, int64_t before_ns, int64_t after_ns)
{
    double before = (double)before_ns / NS_PER_SEC, after = (double)after_ns / NS_PER_SEC;

    if (doctor->has_time || !theirs)
        return;
    doctor->has_time = true;
    if (before > (double)theirs + 1)
        doctor->clock_ahead = before - (double)theirs - 1;
    else if (after < (double)theirs)
        doctor->clock_ahead = after - (double)theirs;
}

/* Some doors tell of the waiting tasks of an array one by one, some as one record. */
static size_t count_jobs(const struct jobs *jobs)
{
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++)
        n += jobs->job[i].tasks;
    return n;
}

static void look_at(struct doctor *doctor, struct source *source, enum kind kind,
                    int64_t deadline_ns, struct look *look)
{
    int64_t began = clock_mono(&clock_real), wall = clock_wall(clock_of_environment());
    struct section *section = NULL;

    look->is_asked = true;
    look->code =
        source->class->read(source, kind, deadline_ns, &section, look->warning, &look->err);
    look->took_ns = clock_mono(&clock_real) - began;
    if (look->code < 0)
        return;
    look->skipped = section->skipped;
    if (kind == KIND_NODES)
        look->records = section->nodes.n;
    if (kind == KIND_JOBS)
        look->records = count_jobs(&section->jobs);
    note_presence(section, look);
    memcpy(look->always, look->has, sizeof(look->always));
    if (kind == KIND_CONFIG)
        learn_config(doctor, source, section);
    if (kind == KIND_DIAG)
        learn_time(doctor, section->diag.time, wall, clock_wall(clock_of_environment()));
    section_unref(section);
}

/* One that does not answer one question in time is asked no other: it would take as long again. */
static void ask_all(struct doctor *doctor, struct source *source, struct door *door)
{
    int64_t began = clock_mono(&clock_real), timeout = doctor->options->timeout_ns;
    bool is_over = false;

    door->kinds = source->class->kinds;
    for (size_t i = 0; i < COUNT(order) && !is_over; i++) {
        int64_t now = clock_mono(&clock_real), end = began + PATIENCE * timeout;
        struct look *look = &door->looks[order[i]];

        if (!(door->kinds & KIND_BIT(order[i])) || atomic_load(&doctor->is_cancelled))
            continue;
        look_at(doctor, source, order[i], now + timeout < end ? now + timeout : end, look);
        is_over = look->code == -ETIMEDOUT || clock_mono(&clock_real) >= end;
    }
    door->took_ns = clock_mono(&clock_real) - began;
    door->works = door->looks[KIND_NODES].is_asked && door->looks[KIND_NODES].code == 0 &&
                  door->looks[KIND_JOBS].is_asked && door->looks[KIND_JOBS].code == 0;
    source_tell(source, &door->about);
}

static struct source *open_door(const struct doctor *doctor, struct door *door)
{
    struct source_settings settings = doctor->settings;
    struct source *source = NULL;

    settings.spec = door->spec;
    return source_open(&settings, &clock_real, &source, &door->err) < 0 ? NULL : source;
}

static void try_door(struct doctor *doctor, struct door *door)
{
    int64_t cpu_before = cpu_ns();
    struct source *source = open_door(doctor, door);

    if (!source)
        return;
    if (!source->class->probe || source->class->probe(source, &door->err) == 0) {
        door->is_open = true;
        set_current(doctor, source);
        ask_all(doctor, source, door);
    }
    end_source(doctor, source);
    door->cpu_ns = cpu_ns() - cpu_before;
}

static void advise(struct doctor *doctor, const struct door *door, int code)
{
    for (size_t i = 0; i < COUNT(advices); i++) {
        if ((advices[i].code && advices[i].code != code) ||
            (advices[i].door && strcmp(advices[i].door, door->name) != 0))
            continue;
        page_advice(doctor->page, "%s", advices[i].advice);
        return;
    }
}

/* Whether an earlier door was told the same about this kind. */
static bool is_repeated(const struct doctor *doctor, const struct door *door, enum kind kind)
{
    for (const struct door *earlier = doctor->doors; earlier < door; earlier++)
        if (earlier->looks[kind].is_asked &&
            strcmp(earlier->looks[kind].err.text, door->looks[kind].err.text) == 0 &&
            strcmp(earlier->looks[kind].warning, door->looks[kind].warning) == 0)
            return true;
    return false;
}

static void tell_kind(struct doctor *doctor, const struct door *door, enum kind kind)
{
    const struct look *look = &door->looks[kind];
    struct page *page = doctor->page;

    if (!look->is_asked || look->code == -ECANCELED)
        return;
    if (look->skipped) {
        page_finding(page, MARK_WARN, door->name, "%s: %llu records could not be read",
                     kind_name(kind), (unsigned long long)look->skipped);
        page_advice(page, "Please report it, with sonde's and Slurm's versions.");
    }
    if (is_repeated(doctor, door, kind))
        return;
    if (look->code < 0) {
        page_finding(page, look->code == -EOPNOTSUPP ? MARK_NOTE : MARK_WARN, door->name, "%s: %s",
                     kind_name(kind), look->err.text);
        if (look->code != -EOPNOTSUPP)
            advise(doctor, door, -look->code);
    } else if (look->warning[0] && kind != KIND_CONFIG) {
        page_finding(page, MARK_NOTE, door->name, "%s: %s", kind_name(kind), look->warning);
    }
}

static void tell_cost(struct doctor *doctor, const struct door *door)
{
    size_t n = 0, n_answered = 0;
    char kinds[32];

    for (int kind = 0; kind < KINDS; kind++) {
        n += door->kinds >> kind & 1;
        n_answered += door->looks[kind].is_asked && door->looks[kind].code == 0;
    }
    if (n_answered == n)
        snprintf(kinds, sizeof(kinds), "all %zu kinds", n);
    else
        snprintf(kinds, sizeof(kinds), "%zu of %zu kinds", n_answered, n);
    page_finding(
        doctor->page, MARK_OK, door->name,
        "%s%s%zu" GLUE "nodes in %s, %zu" GLUE "jobs in %s, %s in %s; CPU" GLUE "%s%s",
        door->about.interface, door->about.interface[0] ? ": " : "",
        door->looks[KIND_NODES].records, doctor_duration(door->looks[KIND_NODES].took_ns).text,
        door->looks[KIND_JOBS].records, doctor_duration(door->looks[KIND_JOBS].took_ns).text, kinds,
        doctor_duration(door->took_ns).text, doctor_duration(door->cpu_ns).text,
        door->about.door && strcmp(door->about.door, "rest") == 0 ? " here, besides slurmrestd's"
                                                                  : "");
}

/* It answered none of the questions, or not those that matter. libslurm cannot, on a host without a
 * slurm.conf. */
static void tell_failure(struct doctor *doctor, const struct door *door)
{
    bool is_elsewhere = strcmp(door->name, "libslurm") == 0 && !doctor->conf.is_found;
    enum mark mark = door->is_wanted ? MARK_FAIL : is_elsewhere ? MARK_NOTE : MARK_WARN;
    const struct err *err = NULL;

    for (size_t i = 0; i < COUNT(order) && !err; i++)
        if (door->looks[order[i]].is_asked && door->looks[order[i]].code < 0 &&
            (order[i] == KIND_NODES || order[i] == KIND_JOBS || order[i] == KIND_CONFIG))
            err = &door->looks[order[i]].err;
    page_finding(doctor->page, mark, door->name, "does not work: %s",
                 err ? err->text : "it tells neither nodes nor jobs");
    if (err)
        advise(doctor, door, err->code);
}

/* Its sentence says what to do. */
static void tell_absence(struct doctor *doctor, const struct door *door)
{
    enum mark mark = door->is_wanted ? MARK_FAIL : door->is_configured ? MARK_WARN : MARK_NOTE;

    page_finding(doctor->page, mark, door->name, "%s", door->err.text);
}

static void tell_door(struct doctor *doctor, const struct door *door)
{
    if (atomic_load(&doctor->is_cancelled))
        return;
    if (!door->is_open) {
        tell_absence(doctor, door);
        return;
    }
    if (!door->works) {
        tell_failure(doctor, door);
        return;
    }
    tell_cost(doctor, door);
    for (size_t i = 0; i < COUNT(order); i++)
        tell_kind(doctor, door, order[i]);
}

static struct door *add_door(struct doctor *doctor, struct str name)
{
    struct door *door = &doctor->doors[doctor->n_doors++];

    snprintf(door->name, sizeof(door->name), "%.*s", STR_ARG(name));
    return door;
}

/* Whether there is any use in trying it, as far as the settings tell. */
static int consider(const struct doctor *doctor, struct str name, struct err *err)
{
    if (str_eq(name, STR("rest")) && !doctor->settings.rest_url.n)
        return err_set(err, EINVAL, "not tried: name slurmrestd with --slurm.rest-url to use it");
    if (str_eq(name, STR("libslurm")) && doctor->settings.prefix.n)
        return err_set(err, EINVAL, "not tried: --slurm.prefix is for commands");
    return 0;
}

static void check_door(struct doctor *doctor, struct str name, struct str spec, bool is_named)
{
    struct door *door;

    if (atomic_load(&doctor->is_cancelled))
        return;
    door = add_door(doctor, name);
    door->spec = spec;
    door->is_wanted = is_named;
    door->is_configured = str_eq(name, STR("rest")) && doctor->settings.rest_url.n;
    if (consider(doctor, name, &door->err) == 0)
        try_door(doctor, door);
    tell_door(doctor, door);
}

static void advise_on_none(struct doctor *doctor)
{
    page_finding(doctor->page, MARK_FAIL, "doors", "none of them is open from here");
    if (doctor->has_commands)
        page_advice(doctor->page, "Run scontrol ping and squeue as this user: what keeps them from "
                                  "working keeps sonde from it.");
    else
        page_advice(doctor->page,
                    "One of: run sonde on a host of the cluster that has Slurm's commands; "
                    "install them here (Debian: slurm-client, Fedora and EPEL: slurm) with the "
                    "cluster's slurm.conf; reach a login node with --slurm.prefix=\"ssh "
                    "-oBatchMode=yes HOST\"; or slurmrestd with --slurm.rest-url=URL. Without a "
                    "cluster, sonde exporter --demo shows a simulated one.");
}

/* All, whatever --source says: it may have been said before another one worked. */
void doctor_check_doors(struct doctor *doctor)
{
    struct str rest = doctor->settings.spec, named = str_cut(&rest, ':');
    bool is_known = str_eq(named, STR("auto"));

    for (size_t i = 0; i < COUNT(known_doors); i++) {
        bool is_named = str_eq(known_doors[i], named);

        is_known |= is_named;
        check_door(doctor, known_doors[i], is_named ? doctor->settings.spec : known_doors[i],
                   is_named);
    }
    if (!is_known)
        check_door(doctor, named, doctor->settings.spec, true);
    if (!doctor_has_door(doctor) && !atomic_load(&doctor->is_cancelled))
        advise_on_none(doctor);
}

bool doctor_has_door(const struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->n_doors; i++)
        if (doctor->doors[i].works)
            return true;
    return false;
}

struct missing {
    const struct doctor *doctor;
    const struct door *door;
    enum kind kind;
    size_t n;
    struct buf names;
};

/* With its number in has[]. */
static void note_if_missing(struct missing *missing, size_t index, const char *array,
                            const struct field *field)
{
    bool is_told_elsewhere = false;

    if (index >= DOOR_FIELDS || missing->door->looks[missing->kind].has[index])
        return;
    for (size_t i = 0; i < missing->doctor->n_doors; i++)
        is_told_elsewhere |= missing->doctor->doors[i].looks[missing->kind].always[index];
    if (!is_told_elsewhere || missing->n++ >= MISSING_SHOWN)
        return;
    buf_printf(&missing->names, "%s%s%s%s", missing->names.n ? ", " : "", array ? array : "",
               array ? "." : "", field->name);
}

static void note_missing_fields(struct missing *missing)
{
    const struct field_kind *fields = &field_kinds[missing->kind];
    size_t at = 0;

    for (size_t i = 0; i < fields->head.n; i++)
        note_if_missing(missing, at++, NULL, &fields->head.fields[i]);
    for (size_t i = 0; i < fields->n_arrays; i++)
        for (size_t j = 0; j < fields->arrays[i].record->n; j++)
            note_if_missing(missing, at++, fields->arrays[i].name,
                            &fields->arrays[i].record->fields[j]);
}

static void tell_gap(struct doctor *doctor, const struct door *door)
{
    for (size_t i = 0; i < COUNT(gaps); i++)
        if (strcmp(gaps[i].door, door->name) == 0)
            page_finding(doctor->page, MARK_NOTE, door->name, "leaves out some numbers: %s",
                         gaps[i].why);
}

/* What no door tells comes from elsewhere: from the jobs, a Prometheus, the store. */
static bool is_told_by_any(const struct doctor *doctor, enum kind kind)
{
    for (size_t i = 0; i < doctor->n_doors; i++)
        if (doctor->doors[i].kinds & KIND_BIT(kind))
            return true;
    return false;
}

static void tell_missing(struct doctor *doctor, const struct door *door)
{
    struct missing missing = { .doctor = doctor, .door = door };

    buf_init(&missing.names, 4096);
    for (int kind = 0; kind < KINDS; kind++) {
        missing.kind = kind;
        if (door->looks[kind].is_asked && door->looks[kind].code == 0)
            note_missing_fields(&missing);
        else if (is_told_by_any(doctor, kind) && !(door->kinds & KIND_BIT(kind)))
            buf_printf(&missing.names, "%sall of %s", missing.names.n ? ", " : "", kind_name(kind));
    }
    if (missing.n > MISSING_SHOWN)
        buf_printf(&missing.names, " and %zu more", missing.n - MISSING_SHOWN);
    if (missing.names.n)
        page_finding(doctor->page, MARK_NOTE, door->name, "leaves out what another door tells: %s",
                     missing.names.p);
    else
        tell_gap(doctor, door);
    buf_free(&missing.names);
}

/* The kinds of which a source that works seems to leave out fields. */
static unsigned find_missing(const struct doctor *doctor)
{
    struct missing missing = { .doctor = doctor };
    unsigned kinds = 0;

    buf_init(&missing.names, 1 << 16);
    for (size_t i = 0; i < doctor->n_doors; i++) {
        missing.door = &doctor->doors[i];
        for (int kind = 0; kind < KINDS && missing.door->works; kind++) {
            missing.kind = kind;
            missing.n = 0;
            if (missing.door->looks[kind].is_asked && missing.door->looks[kind].code == 0)
                note_missing_fields(&missing);
            kinds |= missing.n ? KIND_BIT(kind) : 0;
        }
    }
    buf_free(&missing.names);
    return kinds;
}

static void read_again(struct doctor *doctor, struct door *door, unsigned kinds)
{
    int64_t end = clock_mono(&clock_real) + doctor->options->timeout_ns;
    struct source *source = open_door(doctor, door);

    set_current(doctor, source);
    for (int kind = 0; kind < KINDS && source; kind++) {
        struct look *look = &door->looks[kind], again = { 0 };

        if (!(kinds & KIND_BIT(kind)) || !look->is_asked || look->code < 0)
            continue;
        look_at(doctor, source, kind, end, &again);
        for (size_t i = 0; i < DOOR_FIELDS; i++) {
            look->always[i] &= again.has[i];
            look->has[i] |= again.has[i];
        }
    }
    end_source(doctor, source);
}

/* A job that ends between two readings takes its fields along. So all sources are read a second
 * time in the same order: a field is missing from one if it is in none of its readings and in both
 * of another source, one of which was before and one after. */
void doctor_check_missing(struct doctor *doctor)
{
    unsigned kinds = find_missing(doctor);

    for (size_t i = 0; kinds && i < doctor->n_doors; i++)
        if (doctor->doors[i].is_open && !atomic_load(&doctor->is_cancelled))
            read_again(doctor, &doctor->doors[i], kinds);
    for (size_t i = 0; i < doctor->n_doors; i++)
        if (doctor->doors[i].works)
            tell_missing(doctor, &doctor->doors[i]);
}

void doctor_check_choice(struct doctor *doctor)
{
    struct source *source = NULL;
    struct source_about about;
    struct err err = { 0 };
    struct look look = { 0 };

    if (!doctor_has_door(doctor))
        return;
    if (source_open(&doctor->settings, &clock_real, &source, &err) < 0) {
        page_finding(doctor->page, MARK_FAIL, "exporter", "%s", err.text);
        return;
    }
    set_current(doctor, source);
    look_at(doctor, source, KIND_NODES, clock_mono(&clock_real) + doctor->options->timeout_ns,
            &look);
    source_tell(source, &about);
    if (look.code == 0) {
        snprintf(doctor->taken, sizeof(doctor->taken), "%s", about.door);
        page_finding(doctor->page, MARK_OK, "exporter", "with these flags it takes %s", about.door);
    } else if (look.code != -ECANCELED) {
        page_finding(doctor->page, MARK_FAIL, "exporter", "with these flags it has no data: %s",
                     look.err.text);
    }
    end_source(doctor, source);
}
