/* SPDX-License-Identifier: MIT */
/* System calls of a program, as strace saw them. */
#ifndef SUPPORT_TRACE_H
#define SUPPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* strace and what it has to be told; "-o", FOLDER "/trace" and the program follow. */
#define TRACE_WORDS "strace", "-ff", "-y", "-ttt", "-o"

struct traced_call {
	uint64_t time_us;
	const char *name; /* "read" */
	const char *args; /* "3</proc/1/stat>, ..." and the result; ends with the line */
};

/* One thread's, in order. */
struct trace {
	char *text;
	struct traced_call *calls;
	size_t count;
};

/* Skips the test where strace is missing or may not attach. */
void need_strace(void);

/*
 * The traces of all threads that lie in the folder; ends with one that has no
 * text.  To be given to traces_free().
 */
struct trace *traces_read(const char *folder);
struct trace *traces_free(struct trace *traces);

/* Index of the first such call at or after from, whose arguments start so; count: none. */
size_t trace_find(const struct trace *t, size_t from, const char *name, const char *args);

#endif
