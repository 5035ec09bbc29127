/* SPDX-License-Identifier: MIT */
/*
 * A table on a terminal.  Columns that do not fit side by side go into further
 * blocks below, each of which begins with the sticky columns.
 */
#ifndef REPORT_GRID_H
#define REPORT_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define GRID_CELL    320
#define GRID_COLUMNS 1100

struct grid {
	size_t rows;
	size_t columns;
	size_t sticky;  /* so many first columns stand in each block */
	size_t totals;  /* so many last rows stand below a line */
	unsigned width; /* of the terminal */
	bool colour;
	/* Left-aligned, and without its middle where it would take too much room. */
	bool first_is_text;
	const void *data;
	void (*header)(const void *data, size_t column, char text[GRID_CELL]);
	/* Called three times for each cell. */
	void (*cell)(const void *data, size_t row, size_t column, char text[GRID_CELL]);
};

/* Columns that the first one can have. */
size_t grid_text_limit(unsigned width);

/* 0 or -ENOMEM. */
int grid_print(const struct grid *g, FILE *out);

/* Words, from column indent on, not beyond width. */
void print_wrapped(FILE *out, const char *text, unsigned indent, unsigned width);

#define COLOUR_BOLD  "\033[1m"
#define COLOUR_LOUD  "\033[1;31m"
#define COLOUR_QUIET "\033[2m"
#define COLOUR_OFF   "\033[0m"

#endif
