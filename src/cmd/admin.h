/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde admin` can do: each is a main() of its own, called with its own word as argv[0], and
 * returns the exit status. */
#ifndef SONDE_CMD_ADMIN_H
#define SONDE_CMD_ADMIN_H

#include <signal.h>

int admin_backup(int argc, char **argv);
int admin_create_view(int argc, char **argv);
int admin_doctor(int argc, char **argv);
int admin_drop_view(int argc, char **argv);
int admin_migrate(int argc, char **argv);
int admin_plugin_check(int argc, char **argv);
int admin_reconcile(int argc, char **argv);
int admin_record(int argc, char **argv);
int admin_restore(int argc, char **argv);
int admin_sweep_pushgateway(int argc, char **argv);

/* Blocks the signals that end a command, but for those that whoever started us ignores (nohup), and
 * SIGUSR1, by which the thread that does the work says that it is done. *ret are all of them. */
void admin_block_signals(sigset_t *ret);

#endif
