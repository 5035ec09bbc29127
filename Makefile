# jphase: what each phase of a program costs.
#
#   make deps demo      a fresh machine to a first report
#   make deps check     a fresh machine to all tests
#   make deps-guest check-guest
#                       hardware counters and cgroups, in an emulated machine
#   make install        PREFIX=/usr/local DESTDIR=
#
# CC=clang, SAN=address,undefined or SAN=thread, and CROSS=aarch64-linux-gnu
# build in directories of their own.  WERROR=-Werror makes warnings errors.

VERSION := 1.0.0
PREFIX  ?= /usr/local
DESTDIR ?=
LIBDIR  ?= $(PREFIX)/lib
SAN     ?=
CROSS   ?=

comma := ,
empty :=
space := $(empty) $(empty)

B := build$(if $(CROSS),/$(CROSS))$(if $(findstring clang,$(CC)),/clang)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

ifneq ($(CROSS),)
CC := $(CROSS)-gcc
AR := $(CROSS)-ar

# Libraries for the other machine, unpacked beside the objects.
SYSROOT              := $(B)/sysroot
SYSROOT_LIB          := $(SYSROOT)/usr/lib/$(CROSS)
SYSROOT_PACKAGES     := libpfm4-dev libpfm4 libmsgpack-dev libmsgpackc2 \
			libcmocka-dev libcmocka0 busybox-static dash
# Another list of packages is another file.
SYSROOT_READY        := $(SYSROOT)/ready-$(firstword $(shell echo $(SYSROOT_PACKAGES) | cksum))
DEB_ARCH             := $(subst x86_64,amd64,$(subst aarch64,arm64,$(firstword $(subst -, ,$(CROSS)))))
CROSS_CPPFLAGS       := -isystem $(SYSROOT)/usr/include
CROSS_LIBS           := -L$(SYSROOT_LIB) -Wl,-rpath-link,$(SYSROOT_LIB)
endif

CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
WERROR   ?=
override CPPFLAGS += -D_GNU_SOURCE -Iinclude -DJPHASE_VERSION='"$(VERSION)"'
override CFLAGS   += -std=gnu11 -fno-strict-aliasing $(WARN) $(WERROR) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
override LDFLAGS  += $(if $(SAN),-fsanitize=$(SAN))

SHIM_CFLAGS  := -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector -U_FORTIFY_SOURCE -fno-sanitize=all
SHIM_LDFLAGS := -shared -Wl,-soname,libjphase.so -Wl,--version-script=preload/libjphase.map \
		-Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete -fno-sanitize=all
COLLECTOR_CPPFLAGS := -iquote collector $(CROSS_CPPFLAGS)
COLLECTOR_LIBS     := $(CROSS_LIBS) -lpfm -lmsgpackc -lm -lpthread
TEST_CPPFLAGS      := $(COLLECTOR_CPPFLAGS) -iquote tests -DBUILD_DIR='"$(abspath $(B))"' -DSOURCE_DIR='"$(CURDIR)"'

SHIM_SRC      := $(wildcard preload/*.c)
COLLECTOR_SRC := $(filter-out collector/main.c,$(wildcard collector/*.c collector/readers/*.c collector/report/*.c))
TARGET_SRC    := $(wildcard tests/integration/targets/*.c)
EXAMPLE_SRC   := $(wildcard examples/*.c)
SUPPORT_SRC   := $(wildcard tests/support/*.c)
UNIT_SRC      := $(wildcard tests/unit/test_*.c)
INTEG_SRC     := $(wildcard tests/integration/test_*.c)
FUZZ_SRC      := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC     := $(wildcard tests/bench/*.c)
SCRIPTS       := .ci/run $(wildcard tests/guest/*.sh)

SHIM_OBJ      := $(SHIM_SRC:%.c=$(B)/%.o)
COLLECTOR_OBJ := $(COLLECTOR_SRC:%.c=$(B)/%.o)
SUPPORT_OBJ   := $(SUPPORT_SRC:%.c=$(B)/%.o)
EXAMPLES      := $(EXAMPLE_SRC:examples/%.c=$(B)/examples/%)
TARGETS       := $(TARGET_SRC:tests/integration/targets/%.c=$(B)/targets/%)
UNIT_TESTS    := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/%)
INTEG_TESTS   := $(INTEG_SRC:tests/integration/%.c=$(B)/tests/%)
REPLAYS       := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/tests/%)
BENCHES       := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)

DEPS := gcc g++ make pkg-config binutils libpfm4-dev libmsgpack-dev \
	libcmocka-dev clang libclang-rt-14-dev lld python3 python3-msgpack groff-base strace valgrind \
	clang-format cppcheck shellcheck \
	gcc-aarch64-linux-gnu libc6-dev-arm64-cross debian-archive-keyring

# Other goals have to wait for what `make deps` installs.
ifneq ($(filter deps deps-guest,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

all: $(B)/libjphase.so $(B)/jphase examples

$(B)/preload/%.o: preload/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(SHIM_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/collector/%.o: collector/%.c | $(SYSROOT_READY)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(COLLECTOR_CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libjphase.so: $(SHIM_OBJ) preload/libjphase.map
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHIM_LDFLAGS) -o $@ $(SHIM_OBJ)

$(B)/libcollector.a: $(COLLECTOR_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/jphase: $(B)/collector/main.o $(B)/libcollector.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(COLLECTOR_LIBS)

$(B)/examples/%: examples/%.c include/jphase/jphase.h
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -Iinclude $(CFLAGS) $(LDFLAGS) -o $@ $< -lpthread

TARGET_LDFLAGS_act_static  := -static
TARGET_LDFLAGS_crew_static := -static

$(B)/targets/%: tests/integration/targets/%.c include/jphase/jphase.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fno-sanitize=all -MMD -MP -o $@ $< $(TARGET_LDFLAGS_$*) -lpthread

$(B)/tests/support/%.o: tests/support/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/%: tests/unit/%.c $(SUPPORT_OBJ) $(B)/libcollector.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(SUPPORT_OBJ) $(B)/libcollector.a $(COLLECTOR_LIBS) -lcmocka

$(B)/tests/%: tests/integration/%.c $(SUPPORT_OBJ) $(B)/libcollector.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(SUPPORT_OBJ) $(B)/libcollector.a $(COLLECTOR_LIBS) -lcmocka

$(B)/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/fuzz_%: $(B)/fuzz/fuzz_%.o $(B)/fuzz/replay.o $(B)/libcollector.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(COLLECTOR_LIBS) -lcmocka

$(B)/fuzz/%: $(B)/fuzz/fuzz_%.o $(B)/libcollector.a
	$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(COLLECTOR_LIBS)

$(B)/bench/%: tests/bench/%.c $(B)/libcollector.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(B)/libcollector.a $(COLLECTOR_LIBS)

examples: $(EXAMPLES)

# What a fresh Debian machine lacks.
deps: DEPS_WANTED = $(DEPS)
deps-guest: DEPS_WANTED = $(GUEST_DEPS)
deps deps-guest:
	@missing=; for p in $(DEPS_WANTED); do \
		dpkg-query -W -f '$${db:Status-Status}\n' $$p 2>/dev/null | grep -qx installed || missing="$$missing $$p"; \
	done; \
	if [ -z "$$missing" ]; then echo "all packages are installed"; exit; fi; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	$$sudo apt-get update -q && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing

demo: all
	$(B)/jphase run -o $(B)/hello.msgpack -- $(B)/examples/hello
	$(B)/jphase report $(B)/hello.msgpack

# Older thread sanitizers cannot live with more random address bits.
RND_BITS := /proc/sys/vm/mmap_rnd_bits
TEST_RUN := $(if $(filter thread,$(SAN)),$(shell [ "$$(cat $(RND_BITS) 2>/dev/null || echo 0)" -le 28 ] || echo setarch -R))

# Runs every program, also after one has failed.
define run_tests
	@ran=0; failed=; \
	for t in $(1); do \
		echo "== $$t"; ran=$$((ran + 1)); $(TEST_RUN) $$t || failed="$$failed $$t"; \
	done; \
	if [ $$ran = 0 ]; then echo "$@: there is nothing to run" >&2; exit 1; fi; \
	if [ -n "$$failed" ]; then echo "$@: FAILED:$$failed" >&2; exit 1; fi; \
	echo "$@: $$ran test programs passed"
endef

check-unit: $(UNIT_TESTS)
	$(call run_tests,$^)

# A sanitizer's runtime has to be loaded first, which a jphase that is itself
# run with a preloaded library (by test_report) cannot have.
INTEG_RUN := $(if $(SAN),$(filter-out %/test_report,$(INTEG_TESTS)),$(INTEG_TESTS))

check-integration: all $(TARGETS) $(INTEG_RUN)
	$(call run_tests,$(INTEG_RUN))

# The fuzzers' corpora, without libFuzzer.
check-fuzz: $(REPLAYS)
	$(call run_tests,$^)

SAN_CHECKS := address,undefined thread

check:
	+@failed=; \
	$(MAKE) check-unit || failed="$$failed check-unit"; \
	$(MAKE) check-integration || failed="$$failed check-integration"; \
	for san in $(SAN_CHECKS); do \
		$(MAKE) SAN=$$san check-unit || failed="$$failed SAN=$$san"; \
	done; \
	$(MAKE) SAN=address,undefined check-integration || failed="$$failed SAN-integration"; \
	$(MAKE) SAN=address,undefined check-fuzz || failed="$$failed check-fuzz"; \
	if [ -n "$$failed" ]; then echo "check: FAILED:$$failed" >&2; exit 1; fi; \
	echo "check: all tests passed"

# Each fuzzer for so long; FUZZ_ONLY="ring options" runs some.  What it finds
# stays below build/, beside its own growing corpus.
FUZZ_SECONDS ?= 60
FUZZ_ONLY    ?= $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)

fuzz:
	+$(MAKE) CC=clang SAN=fuzzer-no-link,address,undefined run-fuzzers

run-fuzzers: $(FUZZ_ONLY:%=$(B)/fuzz/%)
	@failed=; \
	for f in $^; do \
		echo "== $$f"; mkdir -p $$f.corpus; \
		$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -malloc_limit_mb=64 -verbosity=0 \
			-print_final_stats=1 -artifact_prefix=$$f.found- \
			$$f.corpus tests/fuzz/corpus/$${f##*/} >$$f.log 2>&1 || \
			{ cat $$f.log; failed="$$failed $$f"; }; \
		grep number_of_executed_units $$f.log; \
	done; \
	if [ -n "$$failed" ]; then echo "fuzz: FAILED:$$failed" >&2; exit 1; fi

LINT_C := $(shell find collector examples include preload tests -name '*.[ch]')

lint:
	clang-format --dry-run -Werror $(LINT_C)
	cppcheck -q -j2 --std=c11 --error-exitcode=1 --inline-suppr \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		-D__linux__ -D__x86_64__ -D_GNU_SOURCE -DJPHASE_VERSION='"$(VERSION)"' \
		-Iinclude -Icollector -Itests collector examples preload tests
	shellcheck $(SCRIPTS)

bench: all $(BENCHES)
	$(call run_tests,$(BENCHES))

cross:
	$(MAKE) CROSS=aarch64-linux-gnu all

# An emulated arm64 machine with hardware counters and all of cgroup v2.
GUEST_KERNELS ?= 6.1 6.12
GUEST_DEPS    := qemu-system-arm cpio xz-utils gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
		 debian-archive-keyring
GUEST_TARGETS := $(patsubst tests/guest/targets/%.c,$(B)/guest/targets/%,$(wildcard tests/guest/targets/*.c))
GUEST_TESTS   := $(patsubst tests/guest/%.c,$(B)/guest/%,$(wildcard tests/guest/test_*.c))

$(B)/guest/targets/%: tests/guest/targets/%.c include/jphase/jphase.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< -lpthread

$(B)/guest/test_%: tests/guest/test_%.c $(SUPPORT_OBJ) $(B)/libcollector.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(SUPPORT_OBJ) $(B)/libcollector.a $(COLLECTOR_LIBS) -lcmocka

sysroot: $(SYSROOT_READY)

# And those of the integration tests that make sense there.
GUEST_CHOICE := tests/guest/integration
GUEST_INTEG  := $(addprefix $(B)/tests/,$(shell sed 's/ .*//' $(GUEST_CHOICE) | sort -u))

guest-programs: all $(TARGETS) $(GUEST_TARGETS) $(GUEST_TESTS) $(GUEST_INTEG)

guest-list:
	@printf '%s\n' $(GUEST_TESTS)
	@sed 's|^|$(B)/tests/|' $(GUEST_CHOICE)

check-guest:
	+MAKE=$(MAKE) tests/guest/check.sh $(GUEST_KERNELS)

ifneq ($(CROSS),)
$(SYSROOT_READY): tests/guest/fetch.sh
	tests/guest/fetch.sh $(DEB_ARCH) $(SYSROOT) $(SYSROOT_PACKAGES)
	@touch $@

# The man page and the completion are printed by a jphase that runs here.
MANUAL := build/jphase
$(MANUAL): FORCE
	$(MAKE) CROSS= SAN= CC=cc $@
else
MANUAL := $(B)/jphase
endif

$(B)/jphase.1: $(MANUAL)
	$(MANUAL) manual man >$@

$(B)/jphase.bash: $(MANUAL)
	$(MANUAL) manual bash >$@

$(B)/jphase.pc: preload/jphase.pc.in FORCE
	@mkdir -p $(@D)
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' $< >$@

BIN_TO        = $(DESTDIR)$(PREFIX)/bin
LIB_TO        = $(DESTDIR)$(LIBDIR)
INCLUDE_TO    = $(DESTDIR)$(PREFIX)/include/jphase
PKGCONFIG_TO  = $(DESTDIR)$(LIBDIR)/pkgconfig
MAN_TO        = $(DESTDIR)$(PREFIX)/share/man/man1
COMPLETION_TO = $(DESTDIR)$(PREFIX)/share/bash-completion/completions

# The loader finds the library by its name alone after this.
RUN_LDCONFIG = $(if $(DESTDIR),,[ "$$(id -u)" != 0 ] || PATH=$$PATH:/usr/sbin:/sbin ldconfig)

install: $(B)/jphase $(B)/libjphase.so $(B)/jphase.1 $(B)/jphase.bash $(B)/jphase.pc
	install -d $(BIN_TO) $(LIB_TO) $(INCLUDE_TO) $(PKGCONFIG_TO) $(MAN_TO) $(COMPLETION_TO)
	install -m 755 $(B)/jphase $(BIN_TO)/jphase
	install -m 755 $(B)/libjphase.so $(LIB_TO)/libjphase.so
	install -m 644 include/jphase/jphase.h include/jphase/abi.h $(INCLUDE_TO)
	install -m 644 $(B)/jphase.pc $(PKGCONFIG_TO)/jphase.pc
	install -m 644 $(B)/jphase.1 $(MAN_TO)/jphase.1
	install -m 644 $(B)/jphase.bash $(COMPLETION_TO)/jphase
	$(RUN_LDCONFIG)

uninstall:
	rm -f $(BIN_TO)/jphase $(LIB_TO)/libjphase.so $(PKGCONFIG_TO)/jphase.pc \
		$(MAN_TO)/jphase.1 $(COMPLETION_TO)/jphase \
		$(INCLUDE_TO)/jphase.h $(INCLUDE_TO)/abi.h
	rmdir $(INCLUDE_TO) 2>/dev/null || true
	$(RUN_LDCONFIG)

clean:
	rm -rf build

FORCE:

.PHONY: all examples deps deps-guest demo check check-unit check-integration check-fuzz check-guest fuzz \
	run-fuzzers guest-list guest-programs sysroot lint bench cross install uninstall clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

-include $(foreach d,preload collector collector/readers collector/report tests tests/support fuzz targets bench guest guest/targets,$(wildcard $(B)/$d/*.d))
