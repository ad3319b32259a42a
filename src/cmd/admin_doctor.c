/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin doctor: checks in one go what stands between sonde and a Slurm cluster. */
#include "base/thread.h"
#include "cmd/admin.h"
#include "cmd/doctor.h"

#include <signal.h>
#include <unistd.h>

/* As check plugins of Nagios and its kin exit. */
enum { EXIT_OK = 0, EXIT_WARNING = 1, EXIT_BROKEN = 2, EXIT_MISUSED = 3 };

enum {
    LONGEST_ROUNDS = 20,  /* times --slurm.timeout that all checks together may take, */
    LONGEST_SECONDS = 60, /* and this */
    FAREWELL_MS = 1500,   /* that a check has to end when it is cancelled */
};

struct settings {
    struct source_options source;
    struct str munge_socket;
};

static const struct option munge_option = {
    "munge-socket",
    OPTION_STRING,
    offsetof(struct settings, munge_socket),
    "PATH",
    NULL,
    NULL,
    NULL,
    "Host",
    "Where munged listens, if neither in its usual place nor where AuthInfo in "
    "slurm.conf says."
};

/* A heading, or a check below it. */
static const struct check {
    const char *title;
    void (*run)(struct doctor *doctor);
} checks[] = {
    { "Slurm on this host", NULL }, { NULL, doctor_check_commands },
    { NULL, doctor_check_conf },    { "Doors into Slurm", NULL },
    { NULL, doctor_check_doors },   { NULL, doctor_check_missing },
    { NULL, doctor_check_choice },  { "The cluster, and what it shows", NULL },
    { NULL, doctor_check_cluster }, { NULL, doctor_check_private_data },
    { NULL, doctor_check_token },   { NULL, doctor_check_clock },
    { "This host", NULL },          { NULL, doctor_check_munge },
    { NULL, doctor_check_cgroups }, { NULL, doctor_check_port },
};

static int parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                 struct err *err)
{
    struct option rows[SOURCE_OPTIONS + 2] = { 0 };
    const struct option_command command = {
        .name = "sonde admin doctor",
        .summary = "check which doors into Slurm work here, and what to do",
        .description =
            "Checks a site in one go: which Slurm this is, which doors into it work from here and "
            "what each costs and leaves out, what PrivateData hides, tokens, clocks, munge and "
            "cgroups. Each finding has a mark (ok, note, warn, FAIL) and, where something can be "
            "done, says what. It exits with 0 if there is nothing to warn of, 1 if there are "
            "warnings, 2 if something is broken.\n\n"
            "Give it the flags, variables and --config.file that the exporter has, and run it as "
            "the exporter's user on the exporter's host. It changes nothing. Every door is asked "
            "for everything once, and again for what seems to be missing. A question may take "
            "--slurm.timeout; a door that lets one pass is "
            "not asked another, and none takes longer than three times as long.\n\n"
            "The times are of this one look; CPU is that of sonde and of the commands that it "
            "started, not that of slurmctld or slurmrestd. What a door leaves out is found by "
            "comparing it with the others that work; docs/sources.md lists what is known of each.",
        .shares_file = true,
        .exit_status = "0 if there was nothing to warn of, 1 if there were warnings, 2 if "
                       "something is broken (FAIL), 3 if a flag is wrong: as check plugins of "
                       "Nagios and its kin have it. 128 + N if signal N has ended it.",
        .options = rows,
    };
    char **rest;
    int outcome;

    source_options_rows(offsetof(struct settings, source), rows);
    rows[SOURCE_OPTIONS] = munge_option;
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    if (outcome == OPTION_GO_ON)
        outcome = source_options_check(&settings->source, err);
    return outcome;
}

static void print_head(FILE *to)
{
    char host[256] = "this host";

    gethostname(host, sizeof(host) - 1);
    fprintf(to, "sonde " SONDE_VERSION " on %s\n", quote(str_of(host)).text);
}

struct run {
    struct doctor *doctor;
    pthread_t caller; /* gets SIGUSR1 when all is done */
};

static void *run_checks(void *arg)
{
    const struct run *run = arg;
    struct doctor *doctor = run->doctor;

    print_head(doctor->page->to);
    for (size_t i = 0; i < COUNT(checks) && !atomic_load(&doctor->is_cancelled); i++) {
        if (checks[i].run)
            checks[i].run(doctor);
        else
            page_title(doctor->page, checks[i].title);
    }
    pthread_kill(run->caller, SIGUSR1);
    return NULL;
}

static int conclude(struct page *page)
{
    if (page->counts[MARK_FAIL]) {
        page_summary(page, "Something is broken: see FAIL above.");
        return EXIT_BROKEN;
    }
    if (page->counts[MARK_WARN]) {
        page_summary(page, "The exporter works here, but see warn above.");
        return EXIT_WARNING;
    }
    page_summary(page, "The exporter works here.");
    return EXIT_OK;
}

static int wait_for_signal(const sigset_t *signals, int64_t ns)
{
    const struct timespec time = { ns / NS_PER_SEC, ns % NS_PER_SEC };
    int number;

    do
        number = sigtimedwait(signals, NULL, &time);
    while (number < 0 && errno == EINTR);
    return number < 0 ? 0 : number;
}

/* Its checks are on a thread of their own, so that whatever one waits for, a signal ends it. */
static int run_doctor(struct doctor *doctor)
{
    int64_t limit_ns = LONGEST_ROUNDS * doctor->options->timeout_ns + LONGEST_SECONDS * NS_PER_SEC;
    struct run run = { doctor, pthread_self() };
    sigset_t signals, done;
    pthread_t thread;
    struct err err;
    int number;

    sigemptyset(&done);
    sigaddset(&done, SIGUSR1);
    admin_block_signals(&signals);
    signal(SIGPIPE, SIG_IGN);
    if (thread_start(&thread, "doctor", run_checks, &run, &err) < 0) {
        fprintf(stderr, "sonde admin doctor: %s\n", err.text);
        return EXIT_BROKEN;
    }
    number = wait_for_signal(&signals, limit_ns);
    if (number == SIGUSR1) {
        pthread_join(thread, NULL);
        return conclude(doctor->page);
    }
    doctor_cancel(doctor);
    if (wait_for_signal(&done, FAREWELL_MS * NS_PER_MS) == SIGUSR1)
        pthread_join(thread, NULL);
    if (!number)
        fprintf(stderr, "sonde admin doctor: stopped: the last check has not ended within %lld s\n",
                (long long)(limit_ns / NS_PER_SEC));
    _exit(number ? 128 + number : EXIT_BROKEN);
}

int admin_doctor(int argc, char **argv)
{
    struct settings settings = { 0 };
    struct arena arena = { 0 };
    struct err err = { 0 };
    struct doctor *doctor;
    struct page page;
    int outcome = parse(argc, argv, &arena, &settings, &err);

    if (outcome != OPTION_GO_ON) {
        if (outcome < 0)
            fprintf(stderr, "sonde admin doctor: %s\n", err.text);
        arena_clear(&arena);
        return outcome < 0 ? EXIT_MISUSED : EXIT_OK;
    }
    page = page_for(stdout);
    doctor = heap_alloc(sizeof(*doctor));
    doctor->options = &settings.source;
    doctor->settings = source_options_settings(&settings.source);
    doctor->munge_socket = settings.munge_socket.n ? settings.munge_socket.p : NULL;
    doctor->root = "";
    doctor->page = &page;
    pthread_mutex_init(&doctor->lock, NULL);
    outcome = run_doctor(doctor);
    pthread_mutex_destroy(&doctor->lock);
    free(doctor);
    arena_clear(&arena);
    return outcome;
}
