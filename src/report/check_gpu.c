/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks on GPUs: whether they worked, where they are, and what is held beside them. */
#include "base/quote.h"
#include "report/check_conditions.h"
#include "report/idle.h"
#include "report/words.h"

#include <math.h>

static void put_gpu(struct buf *to, const struct gpu_facts *gpu)
{
    buf_printf(to, "GPU %s", quote(gpu->gpu).text);
    if (gpu->node.n)
        buf_printf(to, " of %s", quote(gpu->node).text);
}

/* "2 of its 4 GPUs WORDS (GPU 0 of g1 and 1 more)." */
static void put_lazy(struct buf *to, const struct job_facts *facts, size_t n,
                     const struct gpu_facts *first, const char *words)
{
    double held = idle_gpu_count(facts);

    buf_printf(to, "%zu of its ", n);
    words_number(to, held);
    buf_printf(to, " GPU%s %s (", held == 1 ? "" : "s", words);
    put_gpu(to, first);
    if (n > 1)
        buf_printf(to, " and %zu more", n - 1);
    buf_text(to, ").");
}

bool check_gpu_empty(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    const struct gpu_facts *first = NULL;
    size_t n = 0;

    (void)threshold;
    for (size_t i = 0; i < facts->n_gpus; i++)
        if (idle_gpu_is_empty(&facts->gpu[i]) && n++ == 0)
            first = &facts->gpu[i];
    if (!n)
        return false;
    put_lazy(sentence, facts, n, first, "never had a process of the job");
    buf_text(sentence, " See that the program is built for GPUs and told to use them, or ask for "
                       "fewer.");
    return true;
}

bool check_gpu_idle(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    const struct gpu_facts *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < facts->n_gpus; i++)
        if (idle_gpu_is_below(&facts->gpu[i], threshold / 100) && n++ == 0)
            first = &facts->gpu[i];
    if (!n)
        return false;
    put_lazy(sentence, facts, n, first, "did next to nothing");
    buf_text(sentence, " See that the program uses every one that it is given, or ask for fewer.");
    return true;
}

bool check_gpu_low(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    bool is_one = idle_gpu_count(facts) == 1;

    if (!(facts->gpu_ratio < threshold / 100))
        return false;
    buf_text(sentence, is_one ? "Its GPU was busy " : "Its GPUs were busy ");
    words_percent(sentence, facts->gpu_ratio);
    buf_text(sentence, " of the time on average. Larger batches, or more CPUs that prepare data, "
                       "may help");
    buf_text(sentence, is_one ? "." : "; or ask for fewer.");
    return true;
}

bool check_gpu_scattered(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    size_t n = idle_node_count(facts);
    double gpus = facts->total.gpus;

    if (n < 2 || !(gpus > 1 && gpus < (double)n * threshold))
        return false;
    buf_text(sentence, "Its ");
    words_number(sentence, gpus);
    buf_printf(sentence,
               " GPUs were spread over %zu nodes. On one node they reach each other faster, and "
               "others get whole nodes.",
               n);
    return true;
}

/* Held for each GPU, while no more than `most` of it was in use. */
static double held_beside(const struct job_facts *facts, double held, double used, double most)
{
    double gpus = facts->total.gpus;

    return gpus > 0 && used <= gpus * most ? held / gpus : NAN;
}

bool check_cpus_per_gpu(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double used = facts->mean_cpus;
    double each = held_beside(facts, facts->total.cpus, used, threshold);

    if (!(each > threshold))
        return false;
    buf_text(sentence, "For each GPU the job held ");
    words_number(sentence, each);
    buf_text(sentence, " CPUs and kept ");
    words_number(sentence, used / facts->total.gpus);
    buf_text(sentence, " busy. With fewer, the node's other GPUs stay of use to others.");
    return true;
}

bool check_memory_per_gpu(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double most = threshold * 0x1p30, used = idle_memory_peak(facts);
    double each = held_beside(facts, facts->total.memory_bytes, used, most);

    if (facts->is_running || !(each > most))
        return false;
    buf_text(sentence, "For each GPU the job held ");
    words_bytes(sentence, each);
    buf_text(sentence, " of memory and used ");
    words_bytes(sentence, used / facts->total.gpus);
    buf_text(sentence, ". With less, the node's other GPUs stay of use to others.");
    return true;
}
