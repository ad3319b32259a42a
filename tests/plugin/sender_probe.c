/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A step of job 7 on node n1 whose samples are told, for tests: sender_probe URL|SOCKET STEP
 * TIMEOUT_MS. On its input, lines:
 *     start             answered by "started"
 *     sample TASK KIB   of resident memory
 *     stop MS           answered by "ended" or "busy"
 * What the sender says goes to its standard error. */
#include "base/num.h"
#include "plugin/sender.h"

struct probe {
    struct samples *samples;
    struct profile_step step;
    struct profile_settings settings;
    struct sender *sender;
};

static void on_log(bool is_error, const char *sentence)
{
    dprintf(STDERR_FILENO, "%s: %s\n", is_error ? "error" : "info", sentence);
}

static bool start(struct probe *probe, struct str rest)
{
    char why[500] = "";

    (void)rest;
    probe->sender =
        sender_start(probe->samples, &probe->step, &probe->settings, on_log, why, sizeof(why));
    dprintf(STDOUT_FILENO, "%s\n", probe->sender ? "started" : why);
    return probe->sender;
}

static bool add_sample(struct probe *probe, struct str rest)
{
    static const struct samples_field fields[] = { { "RSS", false } };
    struct str number = str_cut(&rest, ' ');
    uint64_t task, kib;

    if (!num_get_u64(number, &task) || !num_get_u64(rest, &kib))
        return false;
    samples_add(probe->samples,
                samples_dataset(probe->samples, PROFILE_OF_TASK, (uint32_t)task, fields, 1), &kib);
    return true;
}

static bool stop(struct probe *probe, struct str rest)
{
    uint64_t ms;
    bool has_ended;

    if (!num_get_u64(rest, &ms) || !probe->sender)
        return false;
    has_ended = sender_stop(probe->sender, (unsigned)ms);
    dprintf(STDOUT_FILENO, "%s\n", has_ended ? "ended" : "busy");
    probe->sender = NULL;
    return has_ended;
}

static const struct {
    const char *word;
    bool (*obey)(struct probe *probe, struct str rest); /* false: this is the end */
} commands[] = {
    { "start", start },
    { "sample", add_sample },
    { "stop", stop },
};

static bool obey(struct probe *probe, struct str line)
{
    struct str word = str_cut(&line, ' ');

    for (size_t i = 0; i < COUNT(commands); i++)
        if (str_eq(word, str_of(commands[i].word)))
            return commands[i].obey(probe, line);
    return false;
}

int main(int argc, char **argv)
{
    struct probe probe = {
        .samples = samples_new(&(struct profile_quirks){ 0 }),
        .step = { .job_id = 7, .node = "n1" },
        .settings = { .names = PROFILE_NAMES_BOTH, .frequency_seconds = 1 },
    };
    uint64_t timeout_ms;
    char line[100];

    if (argc != 4 || !probe.samples || !num_get_u64(str_of(argv[3]), &timeout_ms))
        return 2;
    probe.settings.timeout_ms = (unsigned)timeout_ms;
    if (argv[1][0] == '/')
        snprintf(probe.settings.socket, sizeof(probe.settings.socket), "%s", argv[1]);
    else
        snprintf(probe.settings.url, sizeof(probe.settings.url), "%s", argv[1]);
    snprintf(probe.step.step, sizeof(probe.step.step), "%s", argv[2]);
    while (fgets(line, sizeof(line), stdin) &&
           obey(&probe, str_head(str_of(line), strcspn(line, "\n"))))
        continue;
    samples_free(probe.samples);
    return 0;
}
