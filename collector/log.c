/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

static int quiet;

static void line(const char *format, va_list ap)
{
	char text[1024];

	/* One write, so that lines of several processes do not mix. */
	vsnprintf(text, sizeof(text), format, ap);
	fprintf(stderr, "jphase: %s\n", text);
}

void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	line(format, ap);
	va_end(ap);
}

void inform(const char *format, ...)
{
	va_list ap;

	if (quiet)
		return;
	va_start(ap, format);
	line(format, ap);
	va_end(ap);
}

void log_set_quiet(int on)
{
	quiet = on;
}
