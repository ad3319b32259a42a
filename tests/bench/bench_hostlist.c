/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host lists of 100,000 hosts, written out and folded again: in the order in which Slurm gives
 * them, shuffled, and spread over many racks. */
#include "model/hostlist.h"

#include "bench.h"

enum { HOSTS = 100000, ROUNDS = 15, OUT_MAX = 16 << 20 };

struct input {
    const char *text;
    bool is_shuffled;
    struct arena arena; /* of the names to be folded, made beforehand where they are shuffled */
    struct hostlist hosts;
    struct buf expected;
};

static struct hostlist expand(const char *text, struct arena *arena)
{
    struct hostlist list;
    struct err err;

    if (hostlist_expand(str_of(text), arena, HOSTS, &list, &err) < 0 || list.n != HOSTS)
        bench_give_up("%s does not give %d hosts", text, HOSTS);
    return list;
}

static void shuffle(struct hostlist *list)
{
    uint32_t random = 1;

    for (size_t i = list->n - 1; i > 0; i--) {
        struct str swap = list->hosts[i];
        size_t other;

        random = random * 1664525 + 1013904223;
        other = random % (i + 1);
        list->hosts[i] = list->hosts[other];
        list->hosts[other] = swap;
    }
}

static void prepare(struct input *input)
{
    input->hosts = expand(input->text, &input->arena);
    buf_init(&input->expected, OUT_MAX);
    hostlist_compress(&input->hosts, &input->expected);
    if (input->is_shuffled)
        shuffle(&input->hosts);
}

static void run(void *ctx)
{
    struct input *input = ctx;
    struct arena arena = { 0 };
    struct hostlist list = expand(input->text, &arena);
    struct buf out;

    buf_init(&out, OUT_MAX);
    hostlist_compress(input->is_shuffled ? &input->hosts : &list, &out);
    if (!str_eq(buf_str(&out), buf_str(&input->expected)))
        bench_give_up("%s was folded wrongly", input->text);
    buf_free(&out);
    arena_clear(&arena);
}

/* What nobody can do without: each name copied once, and looked at once. */
static void run_floor(void *ctx)
{
    struct input *input = ctx;
    struct arena arena = { 0 };
    uint64_t bytes = 0;

    for (size_t i = 0; i < input->hosts.n; i++) {
        struct str name = arena_str(&arena, input->hosts.hosts[i]);

        for (size_t k = 0; k < name.n; k++)
            bytes += (unsigned char)name.p[k];
    }
    if (!bytes)
        bench_give_up("%s has empty names", input->text);
    arena_clear(&arena);
}

int main(int argc, char **argv)
{
    struct input sorted = { .text = "n[000001-100000]" };
    struct input shuffled = { .text = "n[000001-100000]", .is_shuffled = true };
    struct input racks = { .text = "rack[1-1000]node[001-100]-ib" };
    struct bench_run runs[] = {
        { .run = run_floor, .ctx = &sorted },
        { .run = run, .ctx = &sorted },
        { .run = run, .ctx = &shuffled },
        { .run = run, .ctx = &racks },
    };
    static const char *const names[] = {
        NULL,
        "hostlist of 100,000 hosts",
        "hostlist of 100,000 hosts, shuffled",
        "hostlist of 100,000 hosts, 1,000 racks",
    };

    bench_begin(argc, argv);
    prepare(&sorted);
    prepare(&shuffled);
    prepare(&racks);
    bench_measure(runs, COUNT(runs), ROUNDS);
    for (size_t i = 1; i < COUNT(runs); i++)
        bench_row(&(struct bench_row){
            .name = names[i],
            .unit = "ms",
            .measured = runs[i].median_seconds * 1e3,
            .reference = runs[0].median_seconds * 1e3,
            .goal = BENCH_AT_MOST,
            .limit = 50,
        });
    for (size_t i = 1; i < COUNT(runs); i++) {
        struct input *input = runs[i].ctx;

        arena_clear(&input->arena);
        buf_free(&input->expected);
    }
    return 0;
}
