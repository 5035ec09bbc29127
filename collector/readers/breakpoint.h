/* SPDX-License-Identifier: MIT */
/* The event mem:ADDRESS[/LENGTH][:ACCESS]: how often an address is read, written or executed. */
#ifndef READERS_BREAKPOINT_H
#define READERS_BREAKPOINT_H

#include <linux/perf_event.h>
#include <stdbool.h>

#include "readers/reader.h"

/* Is the event called so, right or wrong? */
bool breakpoint_is_meant(const char *name);

/*
 * As perf reads it: a hexadecimal (0x...) or decimal address, 1 to 8 bytes, and
 * letters of "rwx", "rw" without any.  -EINVAL: ret_reason tells what is wrong.
 */
int breakpoint_parse(
	const char *name, struct perf_event_attr *ret, char ret_reason[READER_REASON_ROOM]);

/* What the kernel means when it does not open one with that -errno.  NULL: nothing special. */
const char *breakpoint_refusal(int err);

#endif
