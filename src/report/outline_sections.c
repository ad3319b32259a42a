/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sections of an outline, in their order. */
#include "base/moment.h"
#include "base/shown.h"
#include "model/tres.h"
#include "report/exits.h"
#include "report/idle.h"
#include "report/outline_maker.h"
#include "report/outline_tables.h"
#include "report/waiting.h"
#include "report/words.h"

enum { MODELS_MAX = 4 };

static void end_fact(struct maker *maker, const char *label)
{
    struct outline_section *section = maker->section;

    if (!maker->words.n || section->n_facts == OUTLINE_FACTS)
        return;
    section->fact[section->n_facts++] = (struct outline_fact){ label, maker_take(maker), false };
}

static void text_fact(struct maker *maker, const char *label, struct str text)
{
    maker_put_text(maker, text);
    end_fact(maker, label);
}

static void number_fact(struct maker *maker, const char *label,
                        void (*put)(struct buf *to, double value), double value)
{
    put(&maker->words, value);
    end_fact(maker, label);
}

/* Only what has happened is worth a line. */
static void event_fact(struct maker *maker, const char *label,
                       void (*put)(struct buf *to, double value), double value)
{
    if (value > 0)
        number_fact(maker, label, put, value);
}

static void put_in_brackets(struct maker *maker, double ratio)
{
    if (!isfinite(ratio) || !maker->words.n)
        return;
    buf_text(&maker->words, " (");
    words_percent(&maker->words, ratio);
    buf_byte(&maker->words, ')');
}

static void begin_section(struct maker *maker, const char *title)
{
    maker->section = &maker->to->section[maker->to->n_sections];
    *maker->section = (struct outline_section){
        .title = title,
        .fact = ARENA_ARRAY(maker->arena, struct outline_fact, OUTLINE_FACTS),
    };
}

static void end_section(struct maker *maker)
{
    if (maker->section->n_facts || maker->section->table.n_rows)
        maker->to->n_sections++;
}

static void put_nodes(struct maker *maker)
{
    double count = known_u32(maker->record->node_count);

    if (!maker->record->nodes.n)
        return;
    if (count > 1) {
        words_number(&maker->words, count);
        buf_text(&maker->words, ": ");
    }
    maker_put_text(maker, maker->record->nodes);
}

/* Nothing is allocated to a job that is pending, or was canceled while it was. */
static bool is_only_request(const struct job_record *record)
{
    return waiting_is(record) || job_record_never_ran(record);
}

static bool has_whole(struct str tres, struct str name)
{
    struct gres_item item;

    for (struct str rest = tres; gres_next(&rest, &item, NULL);)
        if (!item.type.n && str_eq(item.name, name))
            return true;
    return false;
}

/* "2 tpu", or "2 tpu:v4" where the TRES name only types. */
static void put_other_gres(struct maker *maker)
{
    struct gres_item item;

    for (struct str rest = maker->record->tres; gres_next(&rest, &item, NULL);) {
        if (str_eq(item.name, STR("gpu")) || !item.count ||
            (item.type.n && has_whole(maker->record->tres, item.name)))
            continue;
        buf_text(&maker->words, maker->words.n ? ", " : "");
        words_number(&maker->words, (double)item.count);
        buf_byte(&maker->words, ' ');
        shown_put_cut(&maker->words, item.name, 60);
        buf_text(&maker->words, item.type.n ? ":" : "");
        shown_put_cut(&maker->words, item.type, 60);
    }
}

/* "32 CPUs, 64 GiB of memory, 4 GPUs (a100), 2 tpu"; the number of nodes stands with their names,
 * which a job has that was started. */
static void put_allocated(struct maker *maker)
{
    const struct use_facts *total = &maker->facts->total;
    double nodes = known_u32(maker->record->node_count);

    if (is_only_request(maker->record) && nodes > 1) {
        maker_put_things(maker, nodes, "node");
        buf_text(&maker->words, isfinite(total->cpus) ? ", " : "");
    }
    maker_put_things(maker, total->cpus, "CPU");
    if (total->memory_bytes > 0) {
        buf_text(&maker->words, maker->words.n ? ", " : "");
        words_bytes(&maker->words, total->memory_bytes);
        buf_text(&maker->words, " of memory");
    }
    if (total->gpus > 0) {
        buf_text(&maker->words, maker->words.n ? ", " : "");
        maker_put_things(maker, total->gpus, "GPU");
        if (maker->facts->row.gpu_types.n) {
            buf_text(&maker->words, " (");
            shown_put_cut(&maker->words, maker->facts->row.gpu_types, 60);
            buf_byte(&maker->words, ')');
        }
    }
    put_other_gres(maker);
}

static void put_state(struct maker *maker)
{
    job_state_put(&maker->words, maker->record->state);
    if (maker->record->reason.n) {
        buf_text(&maker->words, " (");
        shown_put_cut(&maker->words, maker->record->reason, 60);
        buf_byte(&maker->words, ')');
    }
}

static void make_general(struct maker *maker)
{
    const struct job_record *record = maker->record;

    begin_section(maker, "General");
    text_fact(maker, "Name", record->name);
    text_fact(maker, "User", record->user);
    text_fact(maker, "Account", record->account);
    text_fact(maker, "Cluster", maker->facts->row.key.cluster);
    text_fact(maker, "Partition", record->partition);
    text_fact(maker, "QOS", record->qos);
    text_fact(maker, "Reservation", record->reservation);
    put_state(maker);
    end_fact(maker, "State");
    if (job_record_has_ended(record))
        exit_put(&maker->words, record);
    end_fact(maker, "Ended with");
    put_nodes(maker);
    end_fact(maker, maker->record->node_count == 1 ? "Node" : "Nodes");
    put_allocated(maker);
    end_fact(maker, is_only_request(record) ? "Requested" : "Allocated");
    text_fact(maker, "TRES", record->tres);
    event_fact(maker, "Billing", words_number, known_u64(maker->facts->row.billing));
    event_fact(maker, "Restarts", words_number, known_u32(record->restarts));
    end_section(maker);
}

static void put_cores_used(struct maker *maker)
{
    const struct job_facts *facts = maker->facts;

    maker_put_part(maker, words_number, facts->cores_used, facts->total.cpus);
    buf_text(&maker->words,
             maker->words.n ? ", with at least 80 % of their share of the time" : "");
}

static void put_modes(struct maker *maker)
{
    const struct use_facts *total = &maker->facts->total;

    if (!isfinite(total->user_seconds) || !isfinite(total->system_seconds))
        return;
    words_duration(&maker->words, total->user_seconds);
    buf_text(&maker->words, " user, ");
    words_duration(&maker->words, total->system_seconds);
    buf_text(&maker->words, " system");
}

static void make_cpu(struct maker *maker)
{
    const struct job_facts *facts = maker->facts;
    const struct use_facts *total = &facts->total;

    begin_section(maker, "CPU");
    number_fact(maker, "Available", words_number, total->cpus);
    put_cores_used(maker);
    end_fact(maker, "Cores used");
    maker_put_part(maker, words_duration, total->cpu_seconds, facts->cpu_seconds_held);
    put_in_brackets(maker, facts->cpu_ratio);
    end_fact(maker, "CPU time");
    put_modes(maker);
    end_fact(maker, "Spent in");
    number_fact(maker, "In use, on average", words_number, facts->mean_cpus);
    number_fact(maker, "In use, at most", words_number, total->busiest_cpus);
    event_fact(maker, "Throttled", words_duration, total->throttled_seconds);
    event_fact(maker, "Waited for a CPU", words_duration, total->cpu_waiting_seconds);
    outline_cores(&maker->section->table, maker->arena, facts);
    end_section(maker);
}

static void make_memory(struct maker *maker)
{
    const struct job_facts *facts = maker->facts;
    const struct use_facts *total = &facts->total;

    begin_section(maker, "Memory");
    maker_put_part(maker, words_bytes, total->memory_peak_bytes, total->memory_bytes);
    put_in_brackets(maker, facts->memory_ratio);
    end_fact(maker, facts_has_sampled_peak(facts) ? "Sampled peak" : "At most");
    event_fact(maker, "Swapped, at most", words_bytes, total->swap_peak_bytes);
    event_fact(maker, "Hits of the limit", words_number, total->limit_hits);
    event_fact(maker, "Killed for memory", words_number, total->oom_kills);
    event_fact(maker, "Waited for memory", words_duration, total->memory_waiting_seconds);
    end_section(maker);
}

static bool is_new_model(const struct job_facts *facts, size_t which)
{
    for (size_t i = 0; i < which; i++)
        if (str_eq(facts->gpu[i].model, facts->gpu[which].model))
            return false;
    return facts->gpu[which].model.n;
}

static void put_models(struct maker *maker)
{
    size_t n = 0;

    for (size_t i = 0; i < maker->facts->n_gpus && n < MODELS_MAX; i++) {
        if (!is_new_model(maker->facts, i))
            continue;
        buf_text(&maker->words, n++ ? ", " : "");
        shown_put_cut(&maker->words, maker->facts->gpu[i].model, 40);
    }
}

static void make_gpu(struct maker *maker)
{
    const struct job_facts *facts = maker->facts;

    begin_section(maker, "GPU");
    event_fact(maker, "Allocated", words_number, facts->total.gpus);
    put_models(maker);
    end_fact(maker, "Model");
    if (facts->total.gpus > 0 && !idle_gpus_measured(facts))
        buf_text(&maker->words, "not measured");
    words_percent(&maker->words, facts->gpu_ratio);
    end_fact(maker, "In use, on average");
    number_fact(maker, "Memory in use", words_percent, facts->gpu_memory_ratio);
    outline_gpus(&maker->section->table, maker->arena, facts);
    end_section(maker);
}

/* "1.2 GiB in 34,000 operations" */
static void put_transfer(struct maker *maker, double bytes, double calls)
{
    words_bytes(&maker->words, bytes);
    if (!maker->words.n || !isfinite(calls))
        return;
    buf_text(&maker->words, " in ");
    maker_put_things(maker, calls, "operation");
}

static void make_io(struct maker *maker)
{
    const struct use_facts *total = &maker->facts->total;
    const struct lustre_facts *lustre = &maker->facts->lustre;

    begin_section(maker, "Input and output");
    put_transfer(maker, total->read_bytes, total->read_calls);
    end_fact(maker, "Read");
    put_transfer(maker, total->written_bytes, total->write_calls);
    end_fact(maker, "Written");
    number_fact(maker, "Files open, at most", words_number, total->files_peak);
    if (isfinite(total->uses_scratch))
        buf_text(&maker->words, total->uses_scratch > 0 ? "used" : "not used");
    end_fact(maker, "Scratch");
    put_transfer(maker, lustre->read_bytes, NAN);
    end_fact(maker, "Read from Lustre");
    put_transfer(maker, lustre->written_bytes, NAN);
    end_fact(maker, "Written to Lustre");
    number_fact(maker, "Lustre operations", words_number, lustre->operations);
    number_fact(maker, "Files opened on Lustre", words_number, lustre->opens);
    event_fact(maker, "Waited for I/O", words_duration, total->io_waiting_seconds);
    end_section(maker);
}

static void make_threads(struct maker *maker)
{
    const struct use_facts *total = &maker->facts->total;

    begin_section(maker, "Processes and threads");
    number_fact(maker, "Processes, at most", words_number, total->processes_peak);
    number_fact(maker, "Threads, at most", words_number, total->threads_peak);
    outline_processes(&maker->section->table, maker->arena, maker->facts);
    end_section(maker);
}

/* Of one node, the job's numbers are its own. */
static void make_nodes(struct maker *maker)
{
    begin_section(maker, "By node");
    if (maker->facts->n_nodes > 1 || maker->record->node_count > 1)
        outline_nodes(&maker->section->table, maker->arena, maker->facts);
    end_section(maker);
}

static void time_fact(struct maker *maker, const char *label, int64_t moment)
{
    words_time(&maker->words, moment);
    end_fact(maker, label);
}

static void make_time(struct maker *maker)
{
    const struct job_facts *facts = maker->facts;
    const struct job_record *record = maker->record;

    begin_section(maker, "Time");
    time_fact(maker, "Submitted", record->submit_time);
    if (record->eligible_time != record->submit_time)
        time_fact(maker, "Could start from", record->eligible_time);
    if (!job_record_never_ran(record))
        time_fact(maker, "Started", record->start_time);
    if (job_record_has_ended(record))
        time_fact(maker, "Ended", record->end_time);
    number_fact(maker, "Waited", words_duration, known_span(facts->row.wait_seconds));
    number_fact(maker, "Elapsed", words_duration, known_span(facts->row.elapsed_seconds));
    event_fact(maker, "Suspended", words_duration, known_u64(record->suspended_seconds));
    words_duration(&maker->words, known_u32(record->time_limit_minutes) * 60);
    if (maker->words.n && isfinite(facts->time_ratio)) {
        buf_text(&maker->words, ", of which ");
        words_percent(&maker->words, facts->time_ratio);
        buf_text(&maker->words, " were used");
    }
    end_fact(maker, "Time limit");
    end_section(maker);
}

static void put_agents(struct maker *maker)
{
    double nodes = known_u32(maker->record->node_count);

    if (!maker->facts->origin.has_agents)
        return;
    buf_text(&maker->words, "counted by agents on ");
    maker_put_part(maker, words_number, (double)maker->facts->n_nodes, nodes);
    buf_text(&maker->words,
             nodes == 1 || (isnan(nodes) && maker->facts->n_nodes == 1) ? " node" : " nodes");
}

static void put_samples(struct maker *maker)
{
    const struct facts_origin *origin = &maker->facts->origin;

    if (!origin->has_series)
        return;
    buf_text(&maker->words, "samples");
    if (origin->series.n) {
        buf_text(&maker->words, " of ");
        maker_put_text(maker, origin->series);
    }
}

const char *outline_teller(const struct job_facts *facts)
{
    static const char *const words[FACTS_TELLERS][2] = {
        [TOLD_BY_QUEUE] = { "Slurm's queue", "Slurm's accounting" },
        [TOLD_BY_STORE] = { "Slurm's queue (store)", "Slurm's accounting (store)" },
        [TOLD_BY_SACCT] = { "Slurm's accounting (sacct)", "Slurm's accounting (sacct)" },
    };

    return words[facts->origin.teller][facts->row.record.origin == RECORD_ACCOUNTED];
}

static void make_origin(struct maker *maker)
{
    const struct facts_origin *origin = &maker->facts->origin;

    begin_section(maker, "Where this is from");
    buf_text(&maker->words, outline_teller(maker->facts));
    end_fact(maker, "Job");
    put_agents(maker);
    end_fact(maker, "Totals");
    put_samples(maker);
    end_fact(maker, "Over time");
    if (origin->has_summary)
        buf_text(&maker->words, "what was kept when the samples were still there");
    end_fact(maker, "Summary");
    if (facts_are_measured(origin))
        text_fact(maker, "Missing", origin->why_no_series);
    if (origin->asked_time)
        moment_put_zoned(&maker->words, origin->asked_time);
    end_fact(maker, "As of");
    text_fact(maker, "More", maker->report->more_url);
    if (maker->report->more_url.n)
        maker->section->fact[maker->section->n_facts - 1].is_link = true;
    end_section(maker);
}

void maker_add_sections(struct maker *maker)
{
    make_general(maker);
    if (!is_only_request(maker->record)) {
        make_cpu(maker);
        make_memory(maker);
        make_gpu(maker);
        make_io(maker);
        make_threads(maker);
    }
    make_time(maker);
    make_nodes(maker);
    begin_section(maker, "Life");
    outline_life(&maker->section->table, maker->arena, maker->facts);
    end_section(maker);
    make_origin(maker);
}
