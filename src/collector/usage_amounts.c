/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and labels that the agent's collectors share. */
#include "collector/usage_amounts.h"

void usage_amount_write(const struct usage_amount *amount, const void *of, const struct str *labels,
                        struct metric_writer *writer)
{
    uint64_t value = *(const uint64_t *)((const char *)of + amount->offset);

    if (value == MODEL_UNKNOWN_U64)
        return;
    if (amount->divisor)
        metric_double(writer, labels, (double)value / amount->divisor);
    else
        metric_u64(writer, labels, amount->factor ? value * amount->factor : value);
}

void usage_amounts_write(const struct usage *usage, const struct usage_amount *amounts, size_t n,
                         usage_amount_writer *write, struct metric_writer *writer)
{
    for (size_t k = 0; k < n; k++) {
        bool remains = usage_amount_remains(&amounts[k], writer);

        metric_begin(writer, amounts[k].family);
        for (size_t i = 0; i < usage->n_jobs; i++)
            if (remains || !usage->jobs[i]->has_ended)
                write(usage->jobs[i], &amounts[k], writer);
    }
}

void usage_amount_of_job(const struct job_use *job, const struct usage_amount *amount,
                         struct metric_writer *writer)
{
    usage_amount_write(amount, job, METRIC_VALUES(USAGE_JOB_VALUES(job)), writer);
}

static struct str put_digits(char digits[NUM_U64_MAX], uint64_t number)
{
    return (struct str){ digits, num_put_u64(digits, number) };
}

void usage_gpu_text(const struct gpu_use *gpu, struct usage_gpu_text *ret)
{
    ret->index = put_digits(ret->digits[0], gpu->index);
    ret->instance =
        gpu->instance < 0 ? STR("") : put_digits(ret->digits[1], (uint64_t)gpu->instance);
}

void usage_job_gpu_text(const struct usage *usage, const struct job_gpu *gpu,
                        struct usage_gpu_text *ret)
{
    if (gpu->gpu < usage->n_gpus) {
        usage_gpu_text(&usage->gpus[gpu->gpu], ret);
        return;
    }
    ret->index = str_of(gpu->id);
    ret->instance = STR("");
}
