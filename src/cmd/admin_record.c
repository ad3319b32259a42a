/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin record: writes down what Slurm tells, to be played back with --source=replay:
 * docs/recording.md. */
#include "base/thread.h"
#include "cmd/admin.h"
#include "cmd/doctor_page.h"
#include "cmd/source_options.h"
#include "source/record.h"

#include <signal.h>

struct settings {
    struct source_options source;
    bool is_anonymous;
    int64_t interval_ns, duration_ns;
};

#define PLACE(member) offsetof(struct settings, member)

static const struct option own_options[] = {
    { "anonymise", OPTION_BOOL, PLACE(is_anonymous), NULL, NULL, NULL, NULL, "Recording",
      "Put user1, account1, job1, node1 and so on in the place of the names of users, accounts, "
      "jobs, nodes, reservations, licences and the cluster, of user numbers, and of what somebody "
      "wrote as the reason of a node; the same name has the same pseudonym throughout. Not "
      "replaced are the names of partitions, QOS, features and generic resources, job numbers, "
      "times and amounts." },
    { "duration", OPTION_DURATION, PLACE(duration_ns), "DURATION", NULL, NULL, NULL, "Recording",
      "Go on for this long. Without it, one look is taken at everything." },
    { "interval", OPTION_DURATION, PLACE(interval_ns), "DURATION", "30s", NULL, NULL, "Recording",
      "Time from one look to the next. What costs Slurm more is looked at less often: fair shares "
      "and limits every 5 minutes, reservations every minute, the configuration every hour." },
};

/* Kinds that are looked at less often than others, at most. */
static const int64_t least_seconds[KINDS] = {
    [KIND_RESERVATIONS] = 60,
    [KIND_SHARES] = 300,
    [KIND_ASSOCIATIONS] = 300,
    [KIND_CONFIG] = 3600,
};

static const int64_t least_interval_ns = NS_PER_SEC, most_ns = 366 * 86400 * NS_PER_SEC;

struct recorder {
    const struct settings *settings;
    const struct clock *clock;
    struct source *source;
    struct pseudonyms *pseudonyms; /* NULL: names stay */
    int directory;
    pthread_t main;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool is_stopping;
    struct {
        int64_t due_ns; /* monotonic */
        unsigned files, failures;
        uint64_t bytes, skipped;
        struct err err;               /* of the last failure */
        char warning[SOURCE_WARNING]; /* the last one */
    } kinds[KINDS];
    char door[32];  /* what the last facts came through */
    struct err err; /* why nothing more can be written */
};

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 char ***ret_rest, struct err *err)
{
    struct option rows[COUNT(own_options) + SOURCE_OPTIONS + 1] = { 0 };
    const struct option_command command = {
        .name = "sonde admin record",
        .summary = "write down what Slurm tells, to be played back later",
        .description =
            "Asks Slurm as the exporter would and writes what it tells into a directory, as JSON: "
            "to send along with a bug report, or to look at a cluster again later. It is played "
            "back with sonde exporter --source=replay:DIRECTORY.\n\n"
            "With --anonymise, names are replaced. Look through the files all the same before you "
            "give them away: they are text.\n\n"
            "SIGINT, SIGTERM and SIGHUP end the recording; what has been written stays and is "
            "whole.",
        .arguments = "DIRECTORY",
        .exit_status = "0 if anything was recorded, 1 if not or if a file could not be written, 2 "
                       "if a flag is wrong.",
        .options = rows,
    };
    int outcome;

    memcpy(rows, own_options, sizeof(own_options));
    source_options_rows(PLACE(source), rows + COUNT(own_options));
    outcome = option_parse(&command, argc, argv, environ, arena, settings, ret_rest, err);
    if (outcome != OPTION_GO_ON)
        return outcome;
    if (!(*ret_rest)[0] || (*ret_rest)[1])
        return err_set(err, EINVAL, "name one directory to record into; see --help");
    if (settings->interval_ns < least_interval_ns)
        return err_set(err, EINVAL, "--interval must be at least 1s");
    if (settings->interval_ns > most_ns || settings->duration_ns > most_ns)
        return err_set(err, EINVAL, "--interval and --duration must be at most 366d");
    return source_options_check(&settings->source, err);
}

/* Asks, without writing. */
static int read_kind(struct recorder *recorder, enum kind kind, struct section **ret,
                     struct err *err)
{
    struct source *source = recorder->source;
    int64_t deadline_ns = clock_mono(&clock_real) + recorder->settings->source.timeout_ns;
    int64_t wall_ns = clock_wall(recorder->clock);
    char warning[SOURCE_WARNING] = "";
    int code = source->class->read(source, kind, deadline_ns, ret, warning, err);

    if (code < 0)
        return code;
    (*ret)->wall_ns = wall_ns;
    if (warning[0])
        memcpy(recorder->kinds[kind].warning, warning, sizeof(warning));
    return 0;
}

static void write_kind(struct recorder *recorder, unsigned look, const struct section *section)
{
    struct source_about source;
    struct record_about about = {
        .kind = section->kind,
        .door = recorder->door,
        .is_simulated = recorder->source->simulated,
        .wall_ns = section->wall_ns,
    };
    uint64_t bytes;

    source_tell(recorder->source, &source);
    snprintf(recorder->door, sizeof(recorder->door), "%s", source.door);
    if (record_add(recorder->directory, look, section, &about, recorder->pseudonyms, &bytes,
                   &recorder->err) < 0)
        return;
    recorder->kinds[section->kind].files++;
    recorder->kinds[section->kind].bytes += bytes;
    recorder->kinds[section->kind].skipped += section->skipped;
}

static void look_at(struct recorder *recorder, unsigned look, int64_t now_ns, enum kind kind)
{
    struct section *section;
    struct err err = { 0 };
    int code = read_kind(recorder, kind, &section, &err);

    if (code == 0) {
        write_kind(recorder, look, section);
        section_unref(section);
        recorder->kinds[kind].due_ns = now_ns + least_seconds[kind] * NS_PER_SEC;
    } else if (code != -ECANCELED) {
        recorder->kinds[kind].failures++;
        recorder->kinds[kind].err = err;
    }
}

/* False if it came first that somebody wants it to end. */
static bool wait_until(struct recorder *recorder, int64_t until_ns)
{
    bool is_stopping;

    pthread_mutex_lock(&recorder->lock);
    while (!recorder->is_stopping &&
           clock_wait(recorder->clock, &recorder->stop, &recorder->lock, until_ns))
        continue;
    is_stopping = recorder->is_stopping;
    pthread_mutex_unlock(&recorder->lock);
    return !is_stopping;
}

/* At a time that is the same for all kinds, so that they stay in step. */
static bool look_around(struct recorder *recorder, unsigned look, int64_t now_ns)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!(recorder->source->class->kinds & KIND_BIT(kind)) ||
            now_ns < recorder->kinds[kind].due_ns)
            continue;
        look_at(recorder, look, now_ns, (enum kind)kind);
        if (recorder->err.code || atomic_load(&recorder->source->cancelled))
            return false;
    }
    return true;
}

static void *record(void *arg)
{
    struct recorder *recorder = arg;
    int64_t next_ns = clock_mono(recorder->clock);
    int64_t end_ns = next_ns + recorder->settings->duration_ns;

    for (unsigned look = 1; look_around(recorder, look, next_ns); look++) {
        next_ns += recorder->settings->interval_ns;
        /* A look that took longer is not made up for. */
        if (next_ns < clock_mono(recorder->clock))
            next_ns = clock_mono(recorder->clock);
        if (next_ns > end_ns || look == RECORD_LOOKS_MAX || !wait_until(recorder, next_ns))
            break;
    }
    pthread_kill(recorder->main, SIGUSR1);
    return NULL;
}

static void stop(struct recorder *recorder)
{
    source_cancel(recorder->source);
    pthread_mutex_lock(&recorder->lock);
    recorder->is_stopping = true;
    pthread_cond_signal(&recorder->stop);
    pthread_mutex_unlock(&recorder->lock);
}

/* Records on a thread of its own, so that this one can hear of signals. */
static int run(struct recorder *recorder, struct err *err)
{
    pthread_t thread;
    sigset_t signals;
    int which, code;

    recorder->main = pthread_self();
    admin_block_signals(&signals);
    code = thread_start(&thread, "recorder", record, recorder, err);
    if (code < 0)
        return code;
    while (sigwait(&signals, &which) != 0 || which != SIGUSR1)
        stop(recorder);
    pthread_join(thread, NULL);
    return 0;
}

static void say_kinds(const struct recorder *recorder)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!recorder->kinds[kind].files)
            continue;
        printf("  %-13s %6u file%s %12llu bytes\n", kind_name((enum kind)kind),
               recorder->kinds[kind].files, recorder->kinds[kind].files == 1 ? " " : "s",
               (unsigned long long)recorder->kinds[kind].bytes);
        if (recorder->kinds[kind].skipped)
            printf("  %-13s %llu records could not be read and are not in it\n", "",
                   (unsigned long long)recorder->kinds[kind].skipped);
    }
}

static bool is_same_failure(const struct recorder *recorder, int a, int b)
{
    return recorder->kinds[a].failures && recorder->kinds[b].failures &&
           strcmp(recorder->kinds[a].err.text, recorder->kinds[b].err.text) == 0;
}

/* The first of those that failed for the same reason. */
static int first_failure(const struct recorder *recorder, int kind)
{
    int first = 0;

    while (!is_same_failure(recorder, first, kind))
        first++;
    return first;
}

/* A reason is told once: without Slurm it is that of all kinds. */
static void say_failures(const struct recorder *recorder)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!recorder->kinds[kind].failures || first_failure(recorder, kind) != kind)
            continue;
        for (int other = kind; other < KINDS; other++) {
            if (!is_same_failure(recorder, kind, other))
                continue;
            printf("%s%s", other == kind ? "  " : ", ", kind_name((enum kind)other));
            if (recorder->kinds[other].files)
                printf(" (%u of %u looks)", recorder->kinds[other].failures,
                       recorder->kinds[other].failures + recorder->kinds[other].files);
        }
        printf(" could not be had:");
        page_line(stdout, recorder->kinds[kind].err.text);
    }
}

static void say_warnings(const struct recorder *recorder)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!recorder->kinds[kind].warning[0])
            continue;
        printf("  %s came with a warning:", kind_name((enum kind)kind));
        page_line(stdout, recorder->kinds[kind].warning);
    }
}

/* Returns the exit status. */
static int say_outcome(const struct recorder *recorder, const char *path)
{
    unsigned files = 0, failures = 0;

    for (int kind = 0; kind < KINDS; kind++) {
        files += recorder->kinds[kind].files;
        failures += recorder->kinds[kind].failures;
    }
    if (files)
        printf("recorded through %s into %s:\n", recorder->door, path);
    else
        printf("nothing was recorded%s\n", failures ? ":" : "");
    say_kinds(recorder);
    say_failures(recorder);
    say_warnings(recorder);
    if (files)
        printf("to play it back: sonde exporter --source=replay:%s\n", path);
    if (files && recorder->pseudonyms)
        printf("names are replaced, but not those of partitions, QOS and features: look through "
               "the files before you give them away\n");
    if (recorder->err.code)
        fprintf(stderr, "sonde admin record: %s\n", recorder->err.text);
    return files && !recorder->err.code ? 0 : 1;
}

static int record_into(const char *path, struct recorder *recorder, struct err *err)
{
    int code;

    recorder->directory = record_directory(path, err);
    if (recorder->directory < 0)
        return recorder->directory;
    pthread_mutex_init(&recorder->lock, NULL);
    clock_cond_init(&recorder->stop);
    recorder->pseudonyms = recorder->settings->is_anonymous ? pseudonyms_new() : NULL;
    code = run(recorder, err);
    if (code == 0)
        code = say_outcome(recorder, path);
    pseudonyms_free(recorder->pseudonyms);
    pthread_mutex_destroy(&recorder->lock);
    pthread_cond_destroy(&recorder->stop);
    close(recorder->directory);
    return code;
}

/* The exit status, or -errno. */
static int record_with(const struct settings *settings, const char *path, struct err *err)
{
    const struct source_settings source_settings = source_options_settings(&settings->source);
    struct recorder recorder = { .settings = settings, .clock = clock_of_environment() };
    int code = source_open(&source_settings, recorder.clock, &recorder.source, err);

    if (code == 0) {
        code = record_into(path, &recorder, err);
        source_close(recorder.source);
    }
    return code;
}

int admin_record(int argc, char **argv)
{
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **rest;
    int code = parse(argc, argv, &arena, &settings, &rest, &err);

    if (code == OPTION_GO_ON)
        code = record_with(&settings, rest[0], &err);
    else if (code == OPTION_EXIT_OK)
        code = 0;
    if (code < 0)
        fprintf(stderr, "sonde admin record: %s\n", err.text);
    arena_clear(&arena);
    return code == -EINVAL ? 2 : code < 0 ? 1 : code;
}
