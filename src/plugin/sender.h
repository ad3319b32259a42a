/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread of a slurmstepd that tells a step's samples: as datagrams to the agent's socket
 * (unix(7)), or to a Pushgateway over one kept-alive connection. It never makes anybody wait; the
 * newest values are told, what failed is not tried again before the next turn. Signals are blocked
 * in it, descriptors are closed on exec. */
#ifndef SONDE_PLUGIN_SENDER_H
#define SONDE_PLUGIN_SENDER_H

#include "plugin/samples.h"
#include "plugin/step.h"

struct sender;

/* What it has to say goes to Slurm's log, one sentence at a time, at most once for each kind of
 * trouble until that is over. Called by the sender's thread. */
typedef void sender_log(bool is_error, const char *sentence);

/* Copies step and settings, and shares the samples. The first message goes after a random part
 * of the frequency. libcurl is loaded here, if it pushes. NULL with a sentence in `why`. */
struct sender *sender_start(struct samples *samples, const struct profile_step *step,
                            const struct profile_settings *settings, sender_log *log, char *why,
                            size_t room);

/* Tells the last values if the agent is told; deletes the group in the Pushgateway; waits for that
 * no longer than `within_ms` in all. True: the thread has ended, and everything was freed. False:
 * it is still busy (a server that hangs); it ends by itself when it can: its code must not go away
 * until then, which is fine in a process that is about to exit.
 */
bool sender_stop(struct sender *sender, unsigned within_ms);

#endif
