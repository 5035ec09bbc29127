/* SPDX-License-Identifier: MIT */
/* Text without stdio or the heap.  Safe in signal handlers. */
#include "shim.h"

#include <string.h>
#include <unistd.h>

#include "internal/util.h"

/* Any thread, any signal context.  Cuts at the end of the room. */
void text_add(struct text *t, const char *s)
{
	size_t n = strlen(s);

	n = MIN(n, t->room - 1 - t->used);
	memcpy(t->buf + t->used, s, n);
	t->used += n;
	t->buf[t->used] = '\0';
}

/* Any thread, any signal context. */
void text_add_number(struct text *t, int64_t n)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;

	digits[--at] = '\0';
	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (n < 0)
		digits[--at] = '-';
	text_add(t, digits + at);
}

/* Constructor only. */
void complain(const char *message)
{
	char line[JPHASE_MESSAGE_ROOM + 16];
	struct text t = { .buf = line, .room = sizeof(line) };

	text_add(&t, "jphase: ");
	text_add(&t, message);
	text_add(&t, "\n");
	if (write(STDERR_FILENO, line, t.used) < 0)
		return; /* nobody to tell */
}
