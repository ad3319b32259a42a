/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders and compresses the agent's metrics after a tick. */
#include "snapshot/bulletin.h"

#include "base/arena.h"
#include "base/clock.h"

#include <pthread.h>

static void render(const struct bulletin_config *config, size_t i, const struct usage *usage,
                   enum metric_format format, struct buf *text, struct bulletin_collector *to)
{
    const struct usage_collector *collector = usage_collectors[i];
    int64_t began = clock_mono(&clock_real);
    struct metric_writer writer;

    buf_reset(text);
    metric_writer_init(&writer, text, format, STR(""), collector->families, collector->n_families);
    writer.excluded = config->excluded[i];
    collector->collect(usage, &writer);
    to->is_over = text->over;
    to->samples = text->over ? 0 : writer.samples;
    to->duplicates = writer.duplicates;
    to->folded = writer.folded;
    metric_writer_free(&writer);
    to->packed[format] = segment_new_packed(text->over ? STR("") : buf_str(text));
    to->seconds += (double)(clock_mono(&clock_real) - began) / NS_PER_SEC;
}

struct bulletin *bulletin_new(const struct bulletin_config *config, const struct usage *usage,
                              unsigned formats, uint64_t serial)
{
    struct bulletin *bulletin = heap_alloc(sizeof(*bulletin));
    struct buf text; /* of one collector after another */

    atomic_init(&bulletin->refs, 1);
    bulletin->serial = serial;
    bulletin->formats = formats;
    bulletin->agent = usage->agent;
    bulletin->gpu_up = usage->gpu_up;
    buf_init(&text, config->max_segment);
    for (size_t i = 0; usage_collectors[i]; i++) {
        if (!(config->collectors & (usage_collector_set)1 << i))
            continue;
        for (unsigned format = 0; format < METRIC_FORMATS; format++)
            if (formats & FORMAT_BIT(format))
                render(config, i, usage, format, &text, &bulletin->collectors[i]);
    }
    buf_free(&text);
    return bulletin;
}

struct bulletin *bulletin_ref(struct bulletin *bulletin)
{
    atomic_fetch_add_explicit(&bulletin->refs, 1, memory_order_relaxed);
    return bulletin;
}

struct bulletin *bulletin_unref(struct bulletin *bulletin)
{
    if (bulletin && atomic_fetch_sub_explicit(&bulletin->refs, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < USAGE_COLLECTORS_MAX; i++)
            for (unsigned format = 0; format < METRIC_FORMATS; format++)
                segment_unref(bulletin->collectors[i].packed[format]);
        free(bulletin);
    }
    return NULL;
}

struct bulletin_board {
    pthread_mutex_t lock;
    struct bulletin *newest;
    int64_t wanted_at[METRIC_FORMATS]; /* 0: never */
};

struct bulletin_board *bulletin_board_new(void)
{
    struct bulletin_board *board = heap_alloc(sizeof(*board));

    pthread_mutex_init(&board->lock, NULL);
    return board;
}

struct bulletin_board *bulletin_board_free(struct bulletin_board *board)
{
    if (board) {
        bulletin_unref(board->newest);
        pthread_mutex_destroy(&board->lock);
        free(board);
    }
    return NULL;
}

void bulletin_board_put(struct bulletin_board *board, struct bulletin *bulletin)
{
    struct bulletin *old;

    pthread_mutex_lock(&board->lock);
    old = board->newest;
    board->newest = bulletin;
    pthread_mutex_unlock(&board->lock);
    bulletin_unref(old);
}

struct bulletin *bulletin_board_take(struct bulletin_board *board)
{
    struct bulletin *newest;

    pthread_mutex_lock(&board->lock);
    newest = board->newest ? bulletin_ref(board->newest) : NULL;
    pthread_mutex_unlock(&board->lock);
    return newest;
}

void bulletin_board_want(struct bulletin_board *board, enum metric_format format, int64_t mono_ns)
{
    pthread_mutex_lock(&board->lock);
    if (mono_ns > board->wanted_at[format])
        board->wanted_at[format] = mono_ns;
    pthread_mutex_unlock(&board->lock);
}

unsigned bulletin_board_wanted(struct bulletin_board *board, int64_t since_mono_ns)
{
    unsigned formats = 0;

    pthread_mutex_lock(&board->lock);
    for (unsigned format = 0; format < METRIC_FORMATS; format++)
        if (board->wanted_at[format] && board->wanted_at[format] >= since_mono_ns)
            formats |= FORMAT_BIT(format);
    pthread_mutex_unlock(&board->lock);
    return formats ? formats : FORMAT_BIT(METRIC_TEXT);
}
