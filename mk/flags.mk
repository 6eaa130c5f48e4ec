# mk/flags.mk: sets the flags of the compiler and the linker for each variant, and lists the linked packages.

# ---- flags ---------------------------------------------------------------------------------
# A compiler newer than GCC_KNOWN may have more warnings, so its warnings are not errors.
GCC_KNOWN   := 12
WERROR       = $(call once,WERROR,$(shell [ "$$($(CC) -dumpversion | cut -d. -f1)" -gt $(GCC_KNOWN) ] || echo -Werror))
WARNINGS     = $(WERROR) -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
               -Wformat=2 -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef
CPPFLAGS    := -I. -Idaemon -D_GNU_SOURCE
# All code is position independent, because the archive goes into programs and into the stand-in driver.
# Answers have the same bits on every processor: without -ffp-contract=off, gcc rounds a * b + c once on processors that
# have an instruction for it, such as aarch64, and twice on others.
COMMON       = -std=gnu11 $(WARNINGS) -g -fPIC -pthread -ffp-contract=off
HARDENED    := -D_FORTIFY_SOURCE=2 -fstack-protector-strong
# The portable folder needs the old RPATH. Unlike RUNPATH, it also applies to the libraries that a library needs.
# Programs under tests/ find lib/ by ../../lib and ../../../lib.
RPATH       := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN/../../lib:$$ORIGIN/../../../lib'
LINK        := -pie -pthread -Wl,--as-needed -Wl,-z,relro,-z,now $(RPATH)

flags_release := -O2 $(HARDENED)
# Reports of a sanitizer need the lines of functions, but no variables: -g1 compiles in three quarters of the time.
flags_asan    := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
flags_tsan    := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
# Flags for code that only check-long runs under a sanitizer.
plain_asan    := -O2 -fno-sanitize=all
plain_tsan    := -O2 -fno-sanitize=all
# gold, a part of binutils, links a test program in two thirds of the time that ld takes, and in half of it with
# AddressSanitizer. ThreadSanitizer uses ld: a program that gold links crashes if a limit on the size of files is set.
test_ld       = $(if $(filter tsan,$(variant)),,$(TEST_LD))
TEST_LD       = $(call once,TEST_LD,$(if $(shell command -v $(CROSS)ld.gold 2>/dev/null),-fuse-ld=gold))
link_release  :=
WRAP_MALLOC   := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
link_asan     := -fsanitize=address,undefined
link_tsan     := -fsanitize=thread
# A program with AddressSanitizer has some 90,000 addresses in the descriptions of UndefinedBehaviorSanitizer. Without
# their relocation it starts in 17 ms instead of 18.4.
pie_asan      := -no-pie
# Flags of `make fuzz`. clang reports no warnings, because the other builds use gcc's.
flags_fuzz    := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
                 -fno-sanitize-recover=all -w
link_fuzz     := -fsanitize=address,undefined
# Sources that no test under ThreadSanitizer links; they are not compiled for that variant.
without_tsan  := clients/fleet/% clients/examples/% clients/slurm/% clients/cuda/% clients/lab/% $(PROFILE_SRC) \
                 daemon/import/% build/gen/fleet_% daemon/config/% daemon/batch/% daemon/serve.c \
                 daemon/analysis/imported/% daemon/analysis/caches/% daemon/analysis/onchip/% daemon/compare/% \
                 daemon/campaign/c% daemon/campaign/memory% daemon/campaign/read% daemon/campaign/sharing% tests/sim/% \
                 $(foreach f,backend http_threads listen sd_notify state_file token,daemon/service/$(f).c) \
                 $(foreach f,analysis classes sharing/confirm sharing/floorplan sharing/window_level structure/s% \
                             throughput/contiguity throughput/group_reads throughput/parallel,daemon/analysis/$(f).c) \
                 $(foreach f,driver duty inject sanitizer_api writer,clients/profile/inject/$(f).c) \
                 $(foreach f,any_fingerprint any_observation bench_files fleet_fixture paper_gpu placement_fixture raw_daemon \
                             sim_bench written_trace,tests/unit/support/$(f).c)
CLANG         ?= clang
cc_fuzz        = $(CLANG)
cc_release     = $(CC)$(SYSROOT:%= --sysroot=%)
cc_asan        = $(CC)$(SYSROOT:%= --sysroot=%)
cc_tsan        = $(CC)$(SYSROOT:%= --sysroot=%)

# pkg-config runs when a recipe first needs its output, which is then kept. On a bare machine, pkg-config is not
# installed yet when make reads this file.
DAEMON_PKGS := libmicrohttpd jansson sqlite3
CTL_PKGS    := libcurl jansson sqlite3
TEST_PKGS   := $(DAEMON_PKGS) libcurl cmocka
once         = $(eval $(1) := $(2))$($(1))
pkg_config   = $(shell $(PKG_CONFIG) $(1) || echo missing-packages-please-run-make-deps)
PKG_CFLAGS   = $(call once,PKG_CFLAGS,$(call pkg_config,--cflags $(DAEMON_PKGS) libcurl))
DAEMON_LIBS  = $(call once,DAEMON_LIBS,$(call pkg_config,--libs $(DAEMON_PKGS)) -ldl -lm)
CTL_LIBS     = $(call once,CTL_LIBS,$(call pkg_config,--libs $(CTL_PKGS)) $(PQ_LIBS) -lm)
TEST_LIBS    = $(call once,TEST_LIBS,$(call pkg_config,--libs $(TEST_PKGS)) $(PQ_LIBS) -ldl -lm)
# reachctl supports PostgreSQL if libpq is found at build time, and otherwise reports that it does not. NO_LIBPQ=1
# builds it without PostgreSQL.
PQ_FOUND     = $(call once,PQ_FOUND,$(if $(NO_LIBPQ),,$(shell $(PKG_CONFIG) --exists libpq 2>/dev/null && echo yes)))
PQ_LIBS      = $(call once,PQ_LIBS,$(if $(PQ_FOUND),$(shell $(PKG_CONFIG) --libs libpq)))
PQ_DEFINES   = $(call once,PQ_DEFINES,$(if $(PQ_FOUND),-DREACH_HAVE_LIBPQ $(shell $(PKG_CONFIG) --cflags libpq)))
PQ_SRC      := clients/fleet/db_postgres.c
EXAMPLE_LIBS = $(call once,EXAMPLE_LIBS,$(call pkg_config,--libs $(CTL_PKGS)) -ldl -lm -lpthread)

# Only objects whose source names REACHD_VERSION contain the commit, so a new commit rebuilds few files.
COMMIT      := $(shell GIT_OPTIONAL_LOCKS=0 git describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null)
FULL_VERSION := $(VERSION)$(if $(COMMIT),+g$(COMMIT))
VERSION_SRC := $(shell grep -ls REACHD_VERSION daemon/main.c $(filter-out build/%,$(LIB_SRC)) $(CTL_SRC) $(LAB_SRC) $(PROFILE_SRC) $(PAPERS_SRC) /dev/null)
