/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "readers/energy.h"
#include "readers/kfile.h"
#include "readers/span.h"

int energy_counters_add(struct energy_counters *list, const struct energy_counter *counter)
{
	struct energy_counter *grown = reallocarray(list->counter, list->count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->counter = grown;
	list->counter[list->count++] = *counter;
	return 0;
}

void energy_counters_clear(struct energy_counters *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->counter[i].where);
		free(list->counter[i].absent);
	}
	free(list->counter);
	*list = (struct energy_counters){ 0 };
}

const struct energy_counter *energy_counters_find(
	const struct energy_counters *list, enum energy_kind kind, int package)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->counter[i].kind == kind && list->counter[i].package == package)
			return &list->counter[i];
	return NULL;
}

static bool names_amd(struct span line)
{
	struct span word;

	if (!span_starts(line, "vendor_id"))
		return false;
	span_take(&line, ':');
	return span_word(&line, &word) &&
	       (span_is(word, "AuthenticAMD") || span_is(word, "HygonGenuine"));
}

bool energy_is_amd(const struct reader_env *env)
{
	struct span rest, line;
	bool found = false;
	char path[4096];
	char *text;
	size_t size;

	snprintf(path, sizeof(path), "%s/cpuinfo", env->proc_root);
	if (kfile_load(path, &text, &size) < 0)
		return false;
	rest = span_of(text, size);
	while (!found && span_line(&rest, &line))
		found = names_amd(line);
	free(text);
	return found;
}
