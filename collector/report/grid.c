/* SPDX-License-Identifier: MIT */
#include "report/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/utf8.h"

#define GAP          2
#define TEXT_LEAST   14 /* columns that the first one may always take */
#define HEADER_PLAIN 9  /* headers up to here stand in one line */
#define HEADER_LINES 2

struct layout {
	size_t width;
	char header[HEADER_LINES][GRID_CELL]; /* the last one is filled first */
};

size_t grid_text_limit(unsigned width)
{
	return MAX((size_t)TEXT_LEAST, (size_t)width * 2 / 5);
}

/* --- measuring --- */

/* Where a long header is best broken: behind the separator next to its middle; 0: nowhere. */
static size_t break_at(const char *text)
{
	size_t length = strlen(text);
	size_t best = 0;

	for (size_t i = 1; i < length; i++) {
		if (!strchr("-_ :./", text[i - 1]))
			continue;
		if (best == 0 || labs((long)(2 * i - length)) < labs((long)(2 * best - length)))
			best = i;
	}
	return best;
}

static void header_set(struct layout *l, const char *text, size_t cells)
{
	size_t at = 0;

	if (utf8_string_width(text) > MAX(cells, (size_t)HEADER_PLAIN))
		at = break_at(text);
	strcpy(l->header[1], text + at);
	/* A separator stays, a blank does not. */
	if (at && text[at - 1] == ' ')
		at--;
	memcpy(l->header[0], text, at);
	l->header[0][at] = '\0';
}

static void cell_text(const struct grid *g, size_t row, size_t column, char text[GRID_CELL])
{
	char whole[GRID_CELL];

	g->cell(g->data, row, column, whole);
	utf8_printable(whole, text, GRID_CELL - 2, GRID_CELL);
	if (column == 0 && g->first_is_text)
		utf8_elide(text, grid_text_limit(g->width));
}

static void measure(const struct grid *g, size_t column, struct layout *l)
{
	char text[GRID_CELL];
	size_t cells = 0;

	for (size_t row = 0; row < g->rows; row++) {
		cell_text(g, row, column, text);
		cells = MAX(cells, utf8_string_width(text));
	}
	g->header(g->data, column, text);
	header_set(l, text, cells);
	l->width = cells;
	for (size_t i = 0; i < HEADER_LINES; i++)
		l->width = MAX(l->width, utf8_string_width(l->header[i]));
}

/* --- printing --- */

/* A run of columns: the sticky ones, then first to before last. */
struct block {
	const struct grid *grid;
	const struct layout *layout;
	size_t first;
	size_t last;
};

static void pad(FILE *out, size_t columns)
{
	fprintf(out, "%*s", (int)columns, "");
}

static void put_cell(FILE *out, const struct block *b, size_t column, const char *text, bool ends)
{
	size_t width = utf8_string_width(text);
	size_t room = b->layout[column].width;
	bool left = column == 0 && b->grid->first_is_text;

	if (column)
		pad(out, GAP);
	if (!left)
		pad(out, room - MIN(width, room));
	fputs(text, out);
	if (left && !ends)
		pad(out, room - MIN(width, room));
}

static size_t next_column(const struct block *b, size_t column)
{
	return column + 1 == b->grid->sticky ? MAX(b->first, b->grid->sticky) : column + 1;
}

static void put_header_line(FILE *out, const struct block *b, size_t line)
{
	fputs(b->grid->colour ? COLOUR_BOLD : "", out);
	for (size_t c = 0; c < b->last; c = next_column(b, c))
		put_cell(out, b, c, b->layout[c].header[line], next_column(b, c) >= b->last);
	fputs(b->grid->colour ? COLOUR_OFF : "", out);
	putc('\n', out);
}

static bool has_header_line(const struct block *b, size_t line)
{
	for (size_t c = 0; c < b->last; c = next_column(b, c))
		if (b->layout[c].header[line][0])
			return true;
	return false;
}

static void put_rule(FILE *out, const struct block *b)
{
	size_t width = 0;

	for (size_t c = 0; c < b->last; c = next_column(b, c))
		width += b->layout[c].width + (c ? GAP : 0);
	while (width--)
		fputs("\xe2\x94\x80", out);
	putc('\n', out);
}

/* One past the last cell of the row that is not empty: no blanks at the end of a line. */
static size_t row_end(const struct block *b, size_t row)
{
	size_t end = 0;
	char text[GRID_CELL];

	for (size_t c = 0; c < b->last; c = next_column(b, c)) {
		cell_text(b->grid, row, c, text);
		if (text[0])
			end = c + 1;
	}
	return end;
}

static void put_row(FILE *out, const struct block *b, size_t row)
{
	bool bold = b->grid->colour && row >= b->grid->rows - b->grid->totals;
	size_t end = row_end(b, row);
	char text[GRID_CELL];

	fputs(bold ? COLOUR_BOLD : "", out);
	for (size_t c = 0; c < end; c = next_column(b, c)) {
		cell_text(b->grid, row, c, text);
		put_cell(out, b, c, text, next_column(b, c) >= end);
	}
	fputs(bold ? COLOUR_OFF : "", out);
	putc('\n', out);
}

static void put_block(FILE *out, const struct block *b)
{
	const struct grid *g = b->grid;

	for (size_t line = 0; line < HEADER_LINES; line++)
		if (has_header_line(b, line))
			put_header_line(out, b, line);
	for (size_t row = 0; row < g->rows; row++) {
		if (g->totals && row == g->rows - g->totals)
			put_rule(out, b);
		put_row(out, b, row);
	}
}

/*
 * One past the last column that fits beside the sticky ones; at least one does.
 * None is left to stand alone in a block of its own.
 */
static size_t fit(const struct grid *g, const struct layout *layout, size_t first)
{
	size_t width = 0;
	size_t column = first;

	for (size_t i = 0; i < g->sticky; i++)
		width += layout[i].width + (i ? GAP : 0);
	while (column < g->columns) {
		width += layout[column].width + GAP;
		if (width > g->width && column > first)
			break;
		column++;
	}
	if (g->columns - column == 1 && column - first > 2)
		column--;
	return column;
}

int grid_print(const struct grid *g, FILE *out)
{
	struct layout *layout = calloc(g->columns, sizeof(*layout));
	struct block b = { .grid = g, .layout = layout, .first = g->sticky };

	if (!layout)
		return -ENOMEM;
	for (size_t i = 0; i < g->columns; i++)
		measure(g, i, &layout[i]);
	do {
		if (b.first > g->sticky)
			putc('\n', out);
		b.last = fit(g, layout, b.first);
		put_block(out, &b);
		b.first = b.last;
	} while (b.last < g->columns);
	free(layout);
	return 0;
}

static size_t word_width(const char *s, size_t length)
{
	const char *end = s + length;
	size_t width = 0;
	uint32_t code;

	for (; s < end; width += utf8_width(code))
		s += utf8_next(s, &code);
	return width;
}

void print_wrapped(FILE *out, const char *text, unsigned indent, unsigned width)
{
	size_t at = indent;
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		size_t columns = word_width(text, length);

		if (!first && at + 1 + columns > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			putc(' ', out);
			at++;
		}
		fwrite(text, 1, length, out);
		at += columns;
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', out);
}
