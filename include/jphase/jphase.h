/* SPDX-License-Identifier: MIT */
/*
 * jphase: mark the phases of a program.
 *
 *	joule_phase("load");
 *	...
 *	joule_phase("solve");
 *
 * Nothing has to be linked.  The functions below look for a preloaded
 * libjphase.so; without one each call is one load and one branch, and the
 * program runs unchanged.  A static program cannot be preloaded: there the
 * calls do nothing.  Run the program with LD_PRELOAD=libjphase.so or with
 * `jphase run` to measure it.
 *
 * All functions may be called from any thread, from signal handlers, from
 * constructors and atexit handlers, and after fork.  They keep errno, take no
 * lock and allocate nothing.  Names are copied: any bytes but NUL.  A name
 * longer than JPHASE_NAME_BYTES is cut at a UTF-8 boundary and ends in '~' and
 * eight hex digits of a hash of the whole; NULL and "" become "(unnamed)".
 *
 * While a program is measured, joule_phase, joule_begin and joule_end wait until
 * their counters have been read, 50 ms at most; in the async mode nothing waits.
 * A marker that finds no room is dropped, and counted in the report.  A forked
 * child is a process of its own from its first marker on.
 *
 * Valid C99 and C++11 with gcc and clang.
 */
#ifndef JPHASE_JPHASE_H
#define JPHASE_JPHASE_H

#define JPHASE_VERSION_MAJOR 1
#define JPHASE_VERSION_MINOR 0

/* Bytes of a name that are kept as they are. */
#define JPHASE_NAME_BYTES 70

#ifdef __cplusplus
extern "C" {
#endif

#ifdef JPHASE_DECLARE_ONLY

/*
 * Plain declarations, for programs that link with -ljphase and for the
 * library itself.
 */
void joule_phase(const char *name);
void joule_begin(const char *name);
void joule_end(const char *name);
void joule_mark(const char *name);
void joule_value(const char *name, double amount);
int joule_active(void);

#else

/*
 * The address of a preloaded function, or 0.  A weak reference alone is
 * resolved to 0 at link time in position-dependent programs, and a weak
 * address in a static pointer fails even in others; a load from the global
 * offset table works everywhere and is 0 where nothing was preloaded.
 */
#if defined(__x86_64__)
#define JPHASE_FIND_(symbol, function)                                                             \
	__asm__(".weak " symbol "\n\tmovq " symbol "@GOTPCREL(%%rip), %0" : "=r"(function))
#elif defined(__aarch64__)
#define JPHASE_FIND_(symbol, function)                                                             \
	__asm__(".weak " symbol "\n\tadrp %0, :got:" symbol "\n\tldr %0, [%0, :got_lo12:" symbol   \
		"]"                                                                                \
		: "=r"(function))
#else
#error "jphase supports x86-64 and arm64; define JPHASE_DECLARE_ONLY and link with -ljphase"
#endif

/*
 * The functions carry assembler names of their own, so that the names looked
 * up above are the preloaded ones.
 */
static __inline__ void joule_phase(const char *name) __asm__("jphase_call_phase");
static __inline__ void joule_begin(const char *name) __asm__("jphase_call_begin");
static __inline__ void joule_end(const char *name) __asm__("jphase_call_end");
static __inline__ void joule_mark(const char *name) __asm__("jphase_call_mark");
static __inline__ void joule_value(const char *name, double amount) __asm__("jphase_call_value");
static __inline__ int joule_active(void) __asm__("jphase_call_active");

/*
 * Ends the process's current phase and begins the one called name.  Phases of
 * a process follow each other; the one before the first call is called START.
 * In the sync mode the call waits, 50 ms at most, until the counters have
 * been read.
 */
static __inline__ void joule_phase(const char *name)
{
	void (*call)(const char *);

	JPHASE_FIND_("joule_phase", call);
	if (call)
		call(name);
}

/* Opens a region on the calling thread.  Regions nest. */
static __inline__ void joule_begin(const char *name)
{
	void (*call)(const char *);

	JPHASE_FIND_("joule_begin", call);
	if (call)
		call(name);
}

/* Closes the calling thread's region of that name; NULL: the innermost one. */
static __inline__ void joule_end(const char *name)
{
	void (*call)(const char *);

	JPHASE_FIND_("joule_end", call);
	if (call)
		call(name);
}

/* Notes that something happened now. */
static __inline__ void joule_mark(const char *name)
{
	void (*call)(const char *);

	JPHASE_FIND_("joule_mark", call);
	if (call)
		call(name);
}

/*
 * Adds an amount of work (items, bytes, iterations) to the current phase and
 * to the calling thread's innermost region, so that reports can say cost per
 * unit.  Amounts of the same name add up.
 */
static __inline__ void joule_value(const char *name, double amount)
{
	void (*call)(const char *, double);

	JPHASE_FIND_("joule_value", call);
	if (call)
		call(name, amount);
}

/* 1 while this process is being measured, else 0. */
static __inline__ int joule_active(void)
{
	int (*call)(void);

	JPHASE_FIND_("joule_active", call);
	return call ? call() : 0;
}

#undef JPHASE_FIND_

#endif /* JPHASE_DECLARE_ONLY */

#ifdef __cplusplus
}
#endif

#endif
