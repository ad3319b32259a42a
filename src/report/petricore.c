/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shapes of petricore's web app, https://github.com/calculquebec/petricore: names and units
 * stay (its MB is 1,048,576 bytes), what is unknown is absent. docs/compatibility.md has what
 * differs. */
#include "base/shown.h"
#include "report/members.h"
#include "report/outline.h"
#include "report/waiting.h"

#include <math.h>

enum { NAMES_MAX = 100, CORES_MAX = 10000, GPUS_MAX = 1000, TEXT_MAX = 1000 };

static const double bytes_per_mb = 0x1p20;
static const double lowest_cpu_percent = 80;

/* "[1-]02:30:05", as sacct prints it. */
static void put_elapsed(struct buf *to, int64_t seconds)
{
    if (seconds < 0)
        return;
    if (seconds >= 86400)
        buf_printf(to, "%lld-", (long long)(seconds / 86400));
    buf_printf(to, "%02d:%02d:%02d", (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60),
               (int)(seconds % 60));
}

static void put_line(struct buf *to, const char *label, struct str text)
{
    if (!text.n)
        return;
    buf_text(to, label);
    shown_put_cut(to, text, TEXT_MAX);
    buf_byte(to, '\n');
}

static bool has_allocation(const struct job_record *record)
{
    return !waiting_is(record) && !job_record_never_ran(record);
}

static void put_general(struct buf *to, const struct job_facts *facts)
{
    const struct job_record *record = &facts->row.record;

    buf_text(to, "----------General Data----------\n");
    if (facts->origin.is_simulated)
        buf_text(to, OUTLINE_SIMULATED "\n");
    put_line(to, "Sponsor: ", record->account);
    put_line(to, "User: ", record->user);
    if (has_allocation(record) && isfinite(facts->total.cpus)) {
        buf_text(to, "Allocated CPUS: ");
        buf_double(to, facts->total.cpus);
        buf_byte(to, '\n');
    }
    if (has_allocation(record))
        put_line(to, "Allocated TRES: ", record->tres);
    put_line(to, "Node(s): ", record->nodes);
    if (facts->row.elapsed_seconds >= 0) {
        buf_text(to, "Elapsed Time: ");
        put_elapsed(to, facts->row.elapsed_seconds);
        buf_byte(to, '\n');
    }
}

/* Under which of its headings a check stands. */
enum heading { HEADING_IO, HEADING_USAGE, HEADING_THREADS };

static enum heading heading_of(const struct check *check)
{
    return check->subject == SUBJECT_FILES     ? HEADING_IO
           : check->subject == SUBJECT_THREADS ? HEADING_THREADS
                                               : HEADING_USAGE;
}

static void put_findings(struct buf *to, const struct job_report *report, enum heading heading)
{
    for (size_t i = 0; i < report->n_findings; i++) {
        const struct finding *finding = &report->finding[i];

        if (heading_of(finding->check) != heading)
            continue;
        shown_put_cut(to, finding->sentence, TEXT_MAX);
        if (finding->severity >= SEVERITY_WARNING)
            buf_text(to, " -- WARNING");
        if (finding->link.n) {
            buf_text(to, " Related resource: ");
            shown_put_cut(to, finding->link, TEXT_MAX);
        }
        buf_byte(to, '\n');
    }
}

static void put_amount(struct buf *to, const char *label, double amount, const char *unit)
{
    if (isfinite(amount))
        buf_printf(to, "%s: %.2f%s\n", label, amount, unit);
}

static void put_io(struct buf *to, const struct use_facts *total)
{
    buf_text(to, "----------I/O Data----------\n");
    if (isfinite(total->uses_scratch))
        buf_printf(to, "Scratch: %s\n", total->uses_scratch > 0 ? "used" : "not used");
    put_amount(to, "Read", total->read_bytes / bytes_per_mb, " MB");
    put_amount(to, "Written", total->written_bytes / bytes_per_mb, " MB");
    if (isfinite(total->files_peak))
        buf_printf(to, "Open files: %.0f\n", total->files_peak);
}

static void put_usage(struct buf *to, const struct job_facts *facts)
{
    buf_text(to, "----------Usage Data----------\n");
    put_amount(to, "Average CPU utilization per core", facts->cpu_ratio * 100, "%");
    if (facts->total.busiest_cpus > 0)
        put_amount(to, "CPU utilization ratio (average / maximum)",
                   facts->mean_cpus / facts->total.busiest_cpus, "");
    put_amount(to, "RAM usage (maximum / allocated)", facts->memory_ratio * 100, "%");
    put_amount(to, "GPU utilization", facts->gpu_ratio * 100, "%");
}

static void put_threads(struct buf *to, const struct job_facts *facts)
{
    buf_text(to, "----------Thread Data----------\n");
    for (size_t i = 0; i < facts->n_processes && i < NAMES_MAX; i++) {
        const struct process_facts *process = &facts->process[i];

        if (!isfinite(process->threads_peak))
            continue;
        shown_put_cut(to, process->name, TEXT_MAX);
        buf_printf(to, ": %.0f thread(s)\n", process->threads_peak);
    }
}

static bool has_warning(const struct job_report *report)
{
    for (size_t i = 0; i < report->n_findings; i++)
        if (report->finding[i].severity >= SEVERITY_WARNING)
            return true;
    return false;
}

void petricore_mail(struct buf *to, const struct job_report *report)
{
    const struct job_facts *facts = &report->facts;

    put_general(to, facts);
    put_io(to, &facts->total);
    put_findings(to, report, HEADING_IO);
    put_usage(to, facts);
    put_findings(to, report, HEADING_USAGE);
    put_threads(to, facts);
    put_findings(to, report, HEADING_THREADS);
    put_line(to, "\nFor more information on the job, plots are available at ", report->more_url);
    buf_printf(to, "WARNING=%s", has_warning(report) ? "true" : "false");
}

static void put_tres(struct buf *to, const struct job_facts *facts)
{
    const struct job_record *record = &facts->row.record;
    char memory[64];

    member_begin(to, "alloc_tres", '{');
    if (!has_allocation(record)) {
        buf_byte(to, '}');
        return;
    }
    member_u64(to, "billing", facts->row.billing);
    member_number(to, "alloc_cpu", facts->total.cpus);
    if (isfinite(facts->total.memory_bytes)) {
        snprintf(memory, sizeof(memory), "%.0fM", facts->total.memory_bytes / bytes_per_mb);
        member_text(to, "alloc_mem", str_of(memory));
    }
    member_text(to, "alloc_nodes", record->nodes);
    buf_byte(to, '}');
}

static void put_thread_counts(struct buf *to, const struct job_facts *facts)
{
    size_t n = 0;

    member_begin(to, "threads", '{');
    for (size_t i = 0; i < facts->n_processes && n < NAMES_MAX; i++) {
        if (!isfinite(facts->process[i].threads_peak))
            continue;
        buf_text(to, n++ ? "," : "");
        buf_json(to, facts->process[i].name);
        buf_byte(to, ':');
        buf_double(to, facts->process[i].threads_peak);
    }
    buf_byte(to, '}');
}

/* {"amount":8,"unit":"cores"}: absent without an amount. */
static void put_with_unit(struct buf *to, const char *name, const char *what, double amount,
                          const char *unit)
{
    if (!isfinite(amount))
        return;
    member_begin(to, name, '{');
    member_number(to, what, amount);
    member_text(to, "unit", str_of(unit));
    buf_byte(to, '}');
}

static void put_core(struct buf *to, const struct node_facts *node, const struct core_facts *core,
                     double total_seconds)
{
    struct buf name;

    buf_init(&name, 1024);
    shown_put_cut(&name, node->name, 256);
    buf_printf(&name, "_core_%u", core->core);
    member_text(to, "core", buf_str(&name));
    buf_free(&name);
    member_number(to, "time", core->seconds);
    member_text(to, "unit", STR("s"));
    if (total_seconds > 0)
        member_number(to, "percent_of_total", core->seconds / total_seconds * 100);
}

static void put_cores(struct buf *to, const struct job_facts *facts)
{
    size_t n = 0;

    member_begin(to, "time_core", '[');
    for (size_t i = 0; i < facts->n_nodes; i++)
        for (size_t j = 0; j < facts->node[i].n_cores && n < CORES_MAX; j++) {
            member_item(to, n++);
            put_core(to, &facts->node[i], &facts->node[i].core[j], facts->total.cpu_seconds);
            buf_byte(to, '}');
        }
    buf_byte(to, ']');
}

static void put_cpu(struct buf *to, const struct job_facts *facts)
{
    const struct use_facts *total = &facts->total;

    member_begin(to, "cpu", '{');
    put_with_unit(to, "available", "amount", total->cpus, "cores");
    put_with_unit(to, "used", "amount", facts->cores_used, "cores");
    put_cores(to, facts);
    put_with_unit(to, "time_total", "time", total->cpu_seconds, "s");
    if (isfinite(facts->mean_cpus)) {
        member_begin(to, "avg_usage_job", '{');
        member_number(to, "usage", facts->mean_cpus * 100);
        member_number(to, "lowest_expected_usage", lowest_cpu_percent * total->cpus);
        member_text(to, "unit", STR("%"));
        buf_byte(to, '}');
    }
    put_with_unit(to, "max_usage_job", "usage", total->busiest_cpus * 100, "%");
    buf_byte(to, '}');
}

static void put_ram(struct buf *to, const struct job_facts *facts)
{
    const struct use_facts *total = &facts->total;

    member_begin(to, "ram", '{');
    if (isfinite(total->memory_peak_bytes)) {
        member_begin(to, "used", '{');
        member_number(to, "amount", total->memory_peak_bytes / bytes_per_mb);
        member_text(to, "unit", STR("MB"));
        member_number(to, "usage", facts->memory_ratio);
        buf_byte(to, '}');
    }
    put_with_unit(to, "available", "amount", total->memory_bytes / bytes_per_mb, "MB");
    buf_byte(to, '}');
}

/* Those of one node stand together, whatever the order in which they became known. */
static const struct gpu_facts **by_node(struct arena *arena, const struct job_facts *facts,
                                        size_t n)
{
    const struct gpu_facts **gpu = ARENA_ARRAY(arena, const struct gpu_facts *, n);
    bool *is_placed = ARENA_ARRAY(arena, bool, n);
    size_t n_placed = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i, is_new = !is_placed[i]; j < n && is_new; j++)
            if (str_eq(facts->gpu[i].node, facts->gpu[j].node)) {
                gpu[n_placed++] = &facts->gpu[j];
                is_placed[j] = true;
            }
    return gpu;
}

/* {"node17":["0","1"]} */
static void put_gpu_ids(struct buf *to, const struct gpu_facts *const *gpu, size_t n)
{
    member_begin(to, "alloc_gpu", '{');
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !str_eq(gpu[i - 1]->node, gpu[i]->node)) {
            buf_text(to, i ? "]," : "");
            buf_json(to, gpu[i]->node);
            buf_text(to, ":[");
        } else {
            buf_byte(to, ',');
        }
        buf_json(to, gpu[i]->gpu);
    }
    buf_text(to, "]}");
}

/* Its metrics, as nvidia-smi has them: percent and MiB. */
static struct spread scaled(struct spread spread, double factor)
{
    return (struct spread){ spread.min * factor, spread.mean * factor, spread.max * factor };
}

static struct spread gpu_utilization(const struct gpu_facts *gpu)
{
    return scaled(gpu->utilization_ratio, 100);
}

static struct spread gpu_temperature(const struct gpu_facts *gpu)
{
    return gpu->temperature_celsius;
}

static struct spread gpu_memory_total(const struct gpu_facts *gpu)
{
    double total = gpu->memory_bytes / bytes_per_mb;

    return (struct spread){ total, total, total };
}

static struct spread gpu_memory_used(const struct gpu_facts *gpu)
{
    return scaled(gpu->memory_used_bytes, 1 / bytes_per_mb);
}

static struct spread gpu_memory_free(const struct gpu_facts *gpu)
{
    struct spread total = gpu_memory_total(gpu), used = gpu_memory_used(gpu);

    return (struct spread){ total.min - used.max, total.mean - used.mean, total.max - used.min };
}

static const struct {
    const char *name;
    struct spread (*of)(const struct gpu_facts *gpu);
} gpu_metrics[] = {
    { "utilization_gpu", gpu_utilization }, { "temperature_gpu", gpu_temperature },
    { "memory_total", gpu_memory_total },   { "memory_free", gpu_memory_free },
    { "memory_used", gpu_memory_used },
};

static const struct {
    const char *name;
    size_t offset;
} gpu_ends[] = {
    { "max", offsetof(struct spread, max) },
    { "avg", offsetof(struct spread, mean) },
    { "min", offsetof(struct spread, min) },
};

/* One number of each GPU, in the order of alloc_gpu; null where it is unknown. */
static void put_gpu_list(struct buf *to, const struct gpu_facts *const *gpu, size_t n,
                         size_t metric, size_t end)
{
    char name[64];

    snprintf(name, sizeof(name), "%s_%s", gpu_ends[end].name, gpu_metrics[metric].name);
    member_begin(to, name, '[');
    for (size_t i = 0; i < n; i++) {
        struct spread spread = gpu_metrics[metric].of(gpu[i]);
        double value =
            *(const double *)(const void *)((const char *)&spread + gpu_ends[end].offset);

        buf_text(to, i ? "," : "");
        if (isfinite(value))
            buf_double(to, value);
        else
            buf_text(to, "null");
    }
    buf_byte(to, ']');
}

static void put_gpus(struct buf *to, const struct job_facts *facts)
{
    size_t n = facts->n_gpus < GPUS_MAX ? facts->n_gpus : GPUS_MAX;
    struct arena arena = { 0 };
    const struct gpu_facts **gpu = by_node(&arena, facts, n);

    if (n) {
        member_begin(to, "gpu", '{');
        put_gpu_ids(to, gpu, n);
        member_begin(to, "metrics", '{');
        for (size_t i = 0; i < COUNT(gpu_metrics); i++)
            for (size_t j = 0; j < COUNT(gpu_ends); j++)
                put_gpu_list(to, gpu, n, i, j);
        buf_text(to, "}}");
    }
    arena_clear(&arena);
}

static void put_transfer(struct buf *to, const char *name, double bytes, double calls)
{
    if (!isfinite(bytes))
        return;
    member_begin(to, name, '{');
    member_number(to, "amount", bytes / bytes_per_mb);
    member_text(to, "unit", STR("MB"));
    member_number(to, "count", calls);
    buf_byte(to, '}');
}

void petricore_usage(struct buf *to, const struct job_report *report)
{
    const struct job_facts *facts = &report->facts;
    const struct use_facts *total = &facts->total;
    struct buf runtime;

    buf_byte(to, '{');
    if (facts->origin.is_simulated)
        member_truth(to, "simulated", true);
    member_whole(to, "jobid", facts->row.record.id);
    member_text(to, "sponsor", facts->row.record.account);
    member_text(to, "username", facts->row.record.user);
    buf_init(&runtime, 64);
    put_elapsed(&runtime, facts->row.elapsed_seconds);
    member_text(to, "runtime", buf_str(&runtime));
    buf_free(&runtime);
    if (isfinite(total->uses_scratch))
        member_text(to, "uses_scratch", total->uses_scratch > 0 ? STR("True") : STR("False"));
    put_tres(to, facts);
    put_thread_counts(to, facts);
    put_cpu(to, facts);
    put_ram(to, facts);
    put_gpus(to, facts);
    member_begin(to, "io", '{');
    member_number(to, "opened_files", total->files_peak);
    put_transfer(to, "read", total->read_bytes, total->read_calls);
    put_transfer(to, "write", total->written_bytes, total->write_calls);
    buf_text(to, "}}\n");
}

void petricore_user(struct buf *to, const struct petricore_user *user)
{
    buf_byte(to, '{');
    member_begin(to, "user", '{');
    member_text(to, "username", user->name);
    member_u32(to, "uid", user->uid);
    buf_byte(to, '}');
    member_begin(to, "jobs", '[');
    for (size_t i = 0; i < user->n_jobs; i++) {
        buf_text(to, i ? "," : "");
        buf_u64(to, user->job[i]);
    }
    buf_text(to, "]}\n");
}
