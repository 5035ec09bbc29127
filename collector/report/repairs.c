/* SPDX-License-Identifier: MIT */
#include "report/repairs.h"

#include <inttypes.h>

#include "report/utf8.h"

static const struct {
	const char *key;
	const char *one;
	const char *many;
} kinds[REPAIR_KINDS] = {
	[REPAIR_STRAY] = { "without_begin", "end without a begin", "ends without a begin" },
	[REPAIR_CROSSED] = { "crossed", "closed by an outer one's end",
		"closed by an outer one's end" },
	[REPAIR_UNCLOSED] = { "unclosed", "never closed", "never closed" },
	[REPAIR_END_LOST] = { "end_lost", "whose end was lost", "whose ends were lost" },
};

void repair_add(struct repair *r, const char *name)
{
	size_t i = 0;

	r->count++;
	/* Names are of the pool, where equal strings are one. */
	while (i < REPAIR_NAMES && r->name[i] && r->name[i] != name)
		i++;
	if (!*name)
		return;
	if (i < REPAIR_NAMES)
		r->name[i] = name;
	else
		r->more = true;
}

const char *repair_key(enum repair_kind kind)
{
	return kinds[kind].key;
}

static void print_names(const struct repair *r, FILE *out)
{
	char name[256];

	for (size_t i = 0; i < REPAIR_NAMES && r->name[i]; i++) {
		utf8_printable(r->name[i], name, sizeof(name), sizeof(name));
		fprintf(out, "%s%s", i ? ", " : " (", name);
	}
	if (r->name[0])
		fputs(r->more ? ", …)" : ")", out);
}

void repairs_print(const struct run *run, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < REPAIR_KINDS; i++) {
		const struct repair *r = &run->repairs[i];

		if (r->count == 0)
			continue;
		fprintf(out, "%s%" PRIu64 " %s", between, r->count,
			r->count == 1 ? kinds[i].one : kinds[i].many);
		print_names(r, out);
		between = ", ";
	}
}
