/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts named threads that block all signals. */
#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg, struct err *err)
{
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code)
        return err_set(err, code,
                       "cannot start the %s thread: %s; is the limit on threads too low?", name,
                       err_words(code));
    pthread_setname_np(*ret, name);
    return 0;
}
