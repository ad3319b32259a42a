/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datagrams of the profile plugin, one after the other, parted by an empty line, from the bytes to
 * the metrics: whatever comes, what is kept is within its ceilings, and no two samples are alike.
 */
#include "agent/profiles.h"
#include "base/clock.h"
#include "collector/usage.h"
#include "source/profile_message.h"

#include "fuzz.h"

#include <math.h>

static void check_text(const char *text, size_t room)
{
    FUZZ_CHECK(strnlen(text, room) < room);
    for (size_t i = 0; text[i]; i++)
        FUZZ_CHECK((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void check_message(struct str text)
{
    struct profile_message message;
    struct profile_sample sample;
    struct err err = { 0 };
    size_t n = 0;

    if (profile_message_read(text, &message, &err) < 0) {
        FUZZ_CHECK(err.text[0] && !strchr(err.text, '\n'));
        return;
    }
    FUZZ_CHECK(message.id.job_id > 0 && message.id.step[0] && message.id.node[0]);
    FUZZ_CHECK(!strchr(message.id.step, ' ') && !strchr(message.id.node, ' '));
    check_text(message.id.step, sizeof(message.id.step));
    check_text(message.id.node, sizeof(message.id.node));
    check_text(message.labels.user, sizeof(message.labels.user));
    check_text(message.labels.account, sizeof(message.labels.account));
    check_text(message.labels.partition, sizeof(message.labels.partition));
    check_text(message.labels.cluster, sizeof(message.labels.cluster));
    FUZZ_CHECK(message.every_seconds >= 1 && message.every_seconds <= PROFILE_EVERY_MOST);
    while (profile_message_next(&message, &sample)) {
        FUZZ_CHECK(!message.is_end && ++n <= text.n);
        FUZZ_CHECK(sample.metric->kind == sample.kind && isfinite(sample.value));
        FUZZ_CHECK(sample.sensor.n < PROFILE_SENSOR);
        FUZZ_CHECK(!sample.sensor.n || sample.metric->has_sensor);
    }
}

static void check_metrics(const struct profiles *profiles)
{
    const struct usage_collector *collector =
        usage_collectors[usage_collector_find(STR("profile"))];
    const struct profile_use *shown[64];
    struct usage usage = { .profiles = shown };
    struct metric_writer writer;
    struct buf text;

    for (const struct profile_use *use = NULL;
         (use = profiles_next(profiles, use)) && usage.n_profiles < COUNT(shown);)
        shown[usage.n_profiles++] = use;
    profiles_count(profiles, &usage.agent);
    buf_init(&text, 16 << 20);
    metric_writer_init(&writer, &text, METRIC_TEXT, STR(""), collector->families,
                       collector->n_families);
    collector->collect(&usage, &writer);
    FUZZ_CHECK(!text.over && writer.samples + writer.duplicates <= usage.agent.profile_values);
    metric_writer_free(&writer);
    buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size };
    struct profiles *profiles = profiles_new(NULL);
    int64_t now_ns = 0;

    while (rest.n) {
        size_t n = str_find_str(rest, STR("\n\n"));
        struct str text = str_head(rest, n);

        check_message(text);
        now_ns += 10 * NS_PER_SEC;
        profiles_take(profiles, text, now_ns);
        profiles_expire(profiles, now_ns, 60 * NS_PER_SEC);
        rest = str_skip(rest, n + 2);
    }
    check_metrics(profiles);
    profiles_free(profiles);
    return 0;
}
