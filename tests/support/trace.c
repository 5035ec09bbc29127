/* SPDX-License-Identifier: MIT */
#include "support/trace.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/proc.h"

void need_strace(void)
{
	struct child r = { .argv = { "strace", "-o", "/dev/null", "true" } };

	if (run_program(&r) < 0 || r.code != 0) {
		print_message("strace cannot trace here: %s\n", r.err ? r.err : "not started");
		run_clear(&r);
		skip();
	}
	run_clear(&r);
}

/* "1700000000.123456 name(args = result"; other lines tell of signals and ends. */
static bool line_parse(char *line, struct traced_call *ret)
{
	char *name, *open;
	double time = strtod(line, &name);

	if (name == line || *name != ' ')
		return false;
	name++;
	open = strchr(name, '(');
	if (!open || strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != (size_t)(open - name))
		return false;
	*open = '\0';
	*ret = (struct traced_call){
		.time_us = (uint64_t)(time * 1e6),
		.name = name,
		.args = open + 1,
	};
	return true;
}

static void trace_read(const char *path, struct trace *ret)
{
	size_t bytes, lines = 1;
	char *line, *rest;

	ret->text = rest = file_read(path, &bytes);
	assert_non_null(rest);
	for (size_t i = 0; i < bytes; i++)
		lines += rest[i] == '\n';
	ret->calls = calloc(lines, sizeof(*ret->calls));
	assert_non_null(ret->calls);
	while ((line = strsep(&rest, "\n")))
		ret->count += line_parse(line, &ret->calls[ret->count]);
}

struct trace *traces_read(const char *folder)
{
	char *pattern = text_make("%s/trace.*", folder);
	struct trace *traces;
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		fail_msg("strace has left no %s", pattern);
	free(pattern);
	traces = calloc(found.gl_pathc + 1, sizeof(*traces));
	assert_non_null(traces);
	for (size_t i = 0; i < found.gl_pathc; i++)
		trace_read(found.gl_pathv[i], &traces[i]);
	globfree(&found);
	return traces;
}

struct trace *traces_free(struct trace *traces)
{
	for (struct trace *t = traces; t && t->text; t++) {
		free(t->text);
		free(t->calls);
	}
	free(traces);
	return NULL;
}

size_t trace_find(const struct trace *t, size_t from, const char *name, const char *args)
{
	size_t i = from;

	while (i < t->count &&
		!(str_eq(t->calls[i].name, name) && str_starts(t->calls[i].args, args)))
		i++;
	return i;
}
