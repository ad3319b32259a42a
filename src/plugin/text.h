/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The samples of a step as text, in a buffer of fixed size. Label values are escaped here; control
 * characters and what is not UTF-8 become question marks. */
#ifndef SONDE_PLUGIN_TEXT_H
#define SONDE_PLUGIN_TEXT_H

#include "plugin/samples.h"
#include "plugin/step.h"

/* Text format 0.0.4 of everything that there is, families together, with HELP and TYPE, for one
 * group of the Pushgateway. Returns the length; families that do not fit are left out whole, and
 * counted in *ret_left_out. */
size_t text_exposition(const struct samples *samples, const struct profile_step *step,
                       const struct profile_settings *settings, char *to, size_t room,
                       size_t *ret_left_out);

/* One datagram to the agent, from dataset *next on; *next is then the first that did not fit, or
 * the number of datasets. 0: there is nothing to say. A dataset fits into PROFILE_MESSAGE bytes;
 * one that does not fit into less is passed over. The message is lines:
 *
 *   sonde-profile 1
 *   step JOBID STEP NODE            node and step without spaces; "-" if empty
 *   label user VALUE                the wanted ones that are known; VALUE goes to the line's end
 *   every SECONDS                   when to expect the next
 *   dataset task 3                  or "dataset energy", "dataset network", "dataset filesystem"
 *   NAME VALUE                      a metric of profile_metrics; with a sensor: NAME VALUE SENSOR
 *   ...
 *   end                             alone, after the head: the step is over, forget it
 */
size_t text_message(const struct samples *samples, const struct profile_step *step,
                    const struct profile_settings *settings, size_t *next, char *to, size_t room);
size_t text_farewell(const struct profile_step *step, char *to, size_t room);

/* "/metrics/job/123/instance/c1/step/batch": as the Pushgateway wants it, with @base64 where a
 * value needs it. Ended by a NUL, which is not counted; 0: no room. */
size_t text_group_path(const struct profile_step *step, char *to, size_t room);

enum { PROFILE_MESSAGE = 16384 }; /* bytes of a datagram */

#endif
