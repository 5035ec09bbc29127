/* SPDX-License-Identifier: MIT */
/* The choice of signals as markers: "RTMIN+3=warmup,USR1=solve". */
#ifndef COLLECTOR_SIGSPEC_H
#define COLLECTOR_SIGSPEC_H

#include <stdint.h>

#include "jphase/abi.h"

#define SIGSPEC_ERROR_ROOM 256

/* Returns the number of signals, or -EINVAL with a sentence in ret_error. */
int sigspec_parse(const char *text, struct jphase_signal ret[JPHASE_SIGNALS_MAX],
	char ret_error[SIGSPEC_ERROR_ROOM]);

/* "USR1", "RTMIN+3", "10"; with or without "SIG".  0: no such signal. */
int sigspec_number(const char *name);

/* "SIGSEGV", "SIGRTMIN+3". */
#define SIGSPEC_NAME_ROOM 24
void sigspec_name(int number, char ret[SIGSPEC_NAME_ROOM]);

/* Does the kernel merge pending instances of it? */
int sigspec_merges(int number);

#endif
