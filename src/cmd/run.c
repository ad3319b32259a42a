/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde run: runs a command of a job, and tells the exporter what its processes use meanwhile.
 * Takes the flags and variables of prometheus-slurm-exporter's proctrac.py. */
#include "base/num.h"
#include "base/option.h"
#include "base/quote.h"
#include "cmd/run_child.h"
#include "cmd/run_trace.h"

enum { LEAST_PERIOD_MS = 100, MOST_PERIOD_S = 86400 };

/* Texts, since a variable with something else in it must not keep the command from running. */
struct settings {
    struct str endpoint, sample_rate, job_id, munge_socket;
    bool is_dry, is_check, is_verbose;
};

#define PLACE(member) offsetof(struct settings, member)

static const struct option options[] = {
    { "endpoint", OPTION_STRING, PLACE(endpoint), "URL", "localhost:9092", "SLURM_EXPORTER", NULL,
      "Trace",
      "Where the exporter takes samples. HOST, HOST:PORT and http://HOST are completed with http, "
      "port 9092 and /trace. With user:password@ before the host these are sent along; give them "
      "in "
      "the variable then, since everybody can see flags." },
    { "sample-rate", OPTION_STRING, PLACE(sample_rate), "SECONDS", "10", "SAMPLE_RATE", NULL,
      "Trace", "Time from one sample to the next; fractions, and units as in 500ms, are fine." },
    { "jobid", OPTION_STRING, PLACE(job_id), "ID", NULL, "SLURM_JOBID", NULL, "Trace",
      "The job, if not the one that we run in." },
    { "job-id", OPTION_STRING, PLACE(job_id), "ID", NULL, "SLURM_JOB_ID", NULL, "Trace",
      "The same." },
    { "munge-socket", OPTION_STRING, PLACE(munge_socket), "PATH", NULL, NULL, NULL, "Trace",
      "Where munged listens, if slurm.conf names another place than the usual one "
      "(AuthInfo=socket=PATH)." },
    { "dry-run", OPTION_BOOL, PLACE(is_dry), NULL, NULL, NULL, NULL, "Trace",
      "Print the samples, as JSON, instead of posting them." },
    { "validate", OPTION_BOOL, PLACE(is_check), NULL, NULL, NULL, NULL, "Trace",
      "Print one sample, end the command and exit with 0." },
    { "verbose", OPTION_BOOL, PLACE(is_verbose), NULL, NULL, NULL, NULL, "Trace",
      "Tell of each post on standard error." },
    { .name = NULL },
};

static const struct option_command command = {
    .name = "sonde run",
    .summary = "run a command of a job, and trace what it uses",
    .description =
        "Runs a command and posts what it and all processes that it starts on this host use "
        "(processors, memory, threads, bytes read and written) to a sonde exporter, which shows it "
        "beside what the job was given. The first sample is posted after a second.\n\n"
        "The command runs as if it had been started alone: it has the same standard input and "
        "output, environment, terminal and process group, gets the signals that are sent to sonde "
        "run, and its exit status is passed on. An exporter that is away, slow or refuses costs a "
        "line on standard error, and never time.\n\n"
        "Put it next to the program: \"srun sonde run ./solver\" traces every task, while \"sonde "
        "run srun ./solver\" sees no more than srun itself, because Slurm starts the tasks. Under "
        "mpirun likewise: \"mpirun sonde run ./solver\".\n\n"
        "Where munge is installed, a sample is sent as a munge credential, which proves whose it "
        "is.",
    .arguments = "[--] COMMAND [ARGUMENT]…",
    .takes_command = true,
    .end_flag = "cmd",
    .exit_status =
        "That of the command, or 128 + N if signal N has ended it; 127 if there is no such "
        "command, 126 if it cannot be run; 2 if a flag is wrong or the command is missing.",
    .options = options,
};

/* False, and the reason told, if the command has to run untraced. */
static bool configure(const struct settings *settings, struct tracer_config *config)
{
    static const uint64_t highest_job = UINT64_C(4294967293); /* NO_VAL and INFINITE follow */
    bool prints = settings->is_dry || settings->is_check;

    config->endpoint = settings->endpoint;
    config->munge_socket = settings->munge_socket.n ? settings->munge_socket.p : NULL;
    config->is_dry = settings->is_dry;
    config->is_check = settings->is_check;
    config->is_verbose = settings->is_verbose;
    if (!num_get_duration_ns(settings->sample_rate, &config->period_ns) ||
        config->period_ns < LEAST_PERIOD_MS * NS_PER_MS ||
        config->period_ns > MOST_PERIOD_S * NS_PER_SEC) {
        say("not traced: the sample rate \"%s\" is no number of seconds from 0.1 to 86400; set "
            "--sample-rate or SAMPLE_RATE",
            quote(settings->sample_rate).text);
        return false;
    }
    if (!settings->job_id.n && !prints) {
        say("not traced: there is no SLURM_JOB_ID; outside of a job, name one with --jobid");
        return false;
    }
    if (settings->job_id.n && (!num_get_u64(settings->job_id, &config->job_id) ||
                               config->job_id == 0 || config->job_id > highest_job)) {
        say("not traced: \"%s\" is no number of a job; set --jobid or SLURM_JOB_ID",
            quote(settings->job_id).text);
        return false;
    }
    return true;
}

static struct tracer *start_tracer(const struct settings *settings, const struct child *child,
                                   const struct clock *clock, int64_t began_ns)
{
    struct tracer_config config = { .pid = child->pid, .clock = clock, .began_ns = began_ns };
    struct tracer *tracer = NULL;
    struct err err;

    if (configure(settings, &config) && tracer_start(&config, &tracer, &err) < 0)
        say("not traced: %s", err.text);
    return tracer;
}

int main(int argc, char **argv)
{
    struct settings settings;
    struct arena arena = { 0 };
    struct err err = { 0 };
    struct child child;
    struct tracer *tracer;
    const struct clock *clock;
    int64_t began_ns;
    char **line;
    bool is_clean;
    int outcome, status;

    child_prepare(&child);
    outcome = option_parse(&command, argc, argv, environ, &arena, &settings, &line, &err);
    if (outcome == OPTION_GO_ON && !line[0])
        outcome = err_set(&err, EINVAL, "there is no command to run; see --help");
    if (outcome != OPTION_GO_ON) {
        if (outcome < 0)
            say("%s", err.text);
        arena_clear(&arena);
        return outcome < 0 ? 2 : 0;
    }
    clock = clock_of_environment();
    began_ns = clock_mono(clock);
    if (child_start(&child, line, settings.is_dry || settings.is_check, &err) < 0) {
        say("%s", err.text);
        arena_clear(&arena);
        return err.code == ENOENT ? 127 : 126;
    }
    tracer = start_tracer(&settings, &child, clock, began_ns);
    if (settings.is_check && !tracer)
        kill(child.pid, SIGKILL);
    status = child_follow(&child);
    is_clean = !tracer || tracer_finish(tracer);
    if (is_clean)
        arena_clear(&arena);
    if (settings.is_check)
        status = tracer ? 0 : 1;
    child_exit(&child, status, is_clean);
}
