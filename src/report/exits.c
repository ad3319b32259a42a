/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals are numbered as Linux numbers them on x86 and ARM: signal(7). The 139 that a
 * shell makes of signal 11 may as well be the program's own exit code: it is left alone. */
#include "report/exits.h"

/* Slurm's own SIG_OOM is 253, of which a wait status keeps seven bits; no signal has this number.
 */
enum { SLURM_OUT_OF_MEMORY = 125 };

static const char *const signal_names[] = {
    [1] = "SIGHUP",     [2] = "SIGINT",   [3] = "SIGQUIT",   [4] = "SIGILL",   [5] = "SIGTRAP",
    [6] = "SIGABRT",    [7] = "SIGBUS",   [8] = "SIGFPE",    [9] = "SIGKILL",  [10] = "SIGUSR1",
    [11] = "SIGSEGV",   [12] = "SIGUSR2", [13] = "SIGPIPE",  [14] = "SIGALRM", [15] = "SIGTERM",
    [16] = "SIGSTKFLT", [17] = "SIGCHLD", [18] = "SIGCONT",  [19] = "SIGSTOP", [20] = "SIGTSTP",
    [21] = "SIGTTIN",   [22] = "SIGTTOU", [23] = "SIGURG",   [24] = "SIGXCPU", [25] = "SIGXFSZ",
    [26] = "SIGVTALRM", [27] = "SIGPROF", [28] = "SIGWINCH", [29] = "SIGIO",   [30] = "SIGPWR",
    [31] = "SIGSYS",
};

bool exit_is_out_of_memory(const struct job_record *record)
{
    return record->exit_signal == SLURM_OUT_OF_MEMORY;
}

void exit_put(struct buf *to, const struct job_record *record)
{
    uint32_t code = record->exit_code, signal = record->exit_signal;

    if (exit_is_out_of_memory(record)) {
        buf_text(to, "out of memory");
    } else if (signal != MODEL_UNKNOWN_U32 && signal) {
        buf_printf(to, "signal %u", (unsigned)signal);
        if (signal < COUNT(signal_names))
            buf_printf(to, " (%s)", signal_names[signal]);
    } else if (code != MODEL_UNKNOWN_U32) {
        buf_printf(to, "exit code %u", (unsigned)code);
    }
}
