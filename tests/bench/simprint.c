/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the simulated cluster as one of Slurm's commands would: input for parsers, at any size.
 *     simprint nodes=100,jobs=1000,seed=1 squeue '@token@' 1767225600 */
#include "base/num.h"
#include "sim_print.h"

static const struct {
    const char *name;
    enum sim_format format;
} formats[] = {
    { "squeue", SIM_SQUEUE_TEXT },        { "sinfo", SIM_SINFO_TEXT },
    { "squeue-v38", SIM_SQUEUE_JSON_38 }, { "squeue-v42", SIM_SQUEUE_JSON_42 },
    { "nodes-v38", SIM_NODES_JSON_38 },   { "nodes-v42", SIM_NODES_JSON_42 },
    { "squeue-lines", SIM_SQUEUE_LINES }, { "sinfo-lines", SIM_SINFO_LINES },
};

static int write_piece(void *ctx, struct str piece)
{
    (void)ctx;
    return fwrite(piece.p, 1, piece.n, stdout) == piece.n ? 0 : -EIO;
}

static int fail(const char *sentence)
{
    fprintf(stderr, "simprint: %s\n", sentence);
    return 2;
}

static int print(const struct sim *sim, const char *name, struct str token, int64_t time)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (strcmp(name, formats[i].name) == 0)
            return sim_print(sim, formats[i].format, token, time, write_piece, NULL) < 0 ||
                   fflush(stdout) != 0;
    return fail("the formats are squeue, sinfo, squeue-v38, squeue-v42, nodes-v38, nodes-v42, "
                "squeue-lines and sinfo-lines");
}

int main(int argc, char **argv)
{
    struct str token = str_of(argc > 3 ? argv[3] : "|");
    int64_t now = time(NULL);
    struct sim sim;
    struct err err;

    if (argc < 3 || argc > 5)
        return fail("usage: simprint SETTINGS FORMAT [TOKEN] [TIME]");
    if (sim_parse(str_of(argv[1]), &sim, &err) < 0)
        return fail(err.text);
    if (argc > 4 && !num_get_i64(str_of(argv[4]), &now))
        return fail("the time must be in seconds since 1970");
    return print(&sim, argv[2], token, now);
}
