/* SPDX-License-Identifier: MIT */
/* A folder of kernel files that a test writes and changes. */
#ifndef SUPPORT_TREE_H
#define SUPPORT_TREE_H

/* A new folder below /tmp; the path is to be given to tree_remove. */
char *tree_make(void);

/* Writes a file in place, so that open descriptors see it, with the folders above it. */
void tree_write(const char *root, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Removes one file or the empty folder of that name. */
void tree_unlink(const char *root, const char *file);

void tree_remove(char *root);

#endif
