/* SPDX-License-Identifier: MIT */
/* What --help shows of an option table, and what was probably meant. */
#include "cli.h"

#include <string.h>
#include <strings.h>

#include "internal/util.h"

#define HELP_COLUMN   26
#define HELP_WIDTH    80
#define SUGGEST_BYTES 64

/* Prints text from that column on, wrapped; the cursor is there already. */
static void print_wrapped(FILE *out, const char *text, int column)
{
	int room = HELP_WIDTH - column;
	int used = 0;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (used && used + 1 + word > room) {
			fprintf(out, "\n%*s", column, "");
			used = 0;
		}
		used += fprintf(out, "%s%.*s", used ? " " : "", word, text);
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void cli_help_line(FILE *out, const char *left, const char *text)
{
	int used = fprintf(out, "  %s", left);

	if (used > HELP_COLUMN - 2) {
		fputc('\n', out);
		used = 0;
	}
	fprintf(out, "%*s", HELP_COLUMN - used, "");
	print_wrapped(out, text, HELP_COLUMN);
}

void cli_help(FILE *out, const struct opt *opts, bool starts)
{
	char left[128], text[512];

	for (const struct opt *o = opts; o->name; o++) {
		char letter[8] = "    ";

		if (o->starts && !starts)
			continue;
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->arg ? " " : "",
			o->arg ? o->arg : "");
		snprintf(text, sizeof(text), "%s%s%s%s", o->help, o->env ? " [" : "",
			o->env ? o->env : "", o->env ? "]" : "");
		cli_help_line(out, left, text);
	}
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/*
 * Insertions, deletions, replacements and swaps of neighbours that make one
 * word of the other, capitals not counted.
 */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][SUGGEST_BYTES + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];
	size_t length = strlen(b);

	for (size_t j = 0; j <= length; j++)
		above[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t *spare = before;

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);
			size_t best = MIN(above[j], row[j - 1]) + 1;

			best = MIN(best, above[j - 1] + !same);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
				lower(a[i - 2]) == lower(b[j - 1]))
				best = MIN(best, before[j - 2] + 1);
			row[j] = best;
		}
		before = above;
		above = row;
		row = spare;
	}
	return above[length];
}

const char *cli_suggest(const char *word, const char *const *names)
{
	size_t length = strlen(word);
	size_t limit = MAX(length / 3, (size_t)1);
	size_t best = limit + 1;
	const char *found = NULL;

	if (length < 2 || length > SUGGEST_BYTES)
		return NULL;
	for (size_t i = 0; names[i]; i++) {
		size_t distance;

		if (strlen(names[i]) > SUGGEST_BYTES)
			continue;
		/* The beginning of a name is as good as one slip. */
		distance = strncasecmp(names[i], word, length) == 0 ? 1
								    : edit_distance(word, names[i]);
		if (distance < best) {
			best = distance;
			found = names[i];
		}
	}
	return found;
}
