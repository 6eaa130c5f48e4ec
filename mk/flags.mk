# mk/flags.mk: Compiler and linker flags of each variant, and the packages that are linked.

# ---- flags ---------------------------------------------------------------------------------
# A compiler newer than the newest we know may warn about more; then a warning is only a warning.
GCC_KNOWN   := 12
WERROR       = $(call once,WERROR,$(shell [ "$$($(CC) -dumpversion | cut -d. -f1)" -gt $(GCC_KNOWN) ] || echo -Werror))
WARNINGS     = $(WERROR) -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
               -Wformat=2 -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef
CPPFLAGS    := -I. -Idaemon -D_GNU_SOURCE
# Position independent throughout: the archive goes into programs and into the stand-in driver.
COMMON       = -std=gnu11 $(WARNINGS) -g -fPIC -pthread
HARDENED    := -D_FORTIFY_SOURCE=2 -fstack-protector-strong
# An old-style RPATH on purpose: unlike RUNPATH it also finds the libraries of the libraries, which
# the portable folder needs. ../../lib and ../../../lib are for the programs under tests/.
RPATH       := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN/../../lib:$$ORIGIN/../../../lib'
LINK        := -pie -pthread -Wl,--as-needed -Wl,-z,relro,-z,now $(RPATH)

flags_release := -O2 $(HARDENED)
flags_asan    := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
flags_tsan    := -O1 -fno-omit-frame-pointer -fsanitize=thread
# For what is left to check-long.
plain_asan    := -O2 -fno-sanitize=all
plain_tsan    := -O2 -fno-sanitize=all
# gold links a test program in two thirds of the time of ld, with AddressSanitizer in half. It is a part of binutils.
# Not with ThreadSanitizer: a program that gold links crashes if a limit on the size of files is set.
test_ld       = $(if $(filter tsan,$(variant)),,$(TEST_LD))
TEST_LD       = $(call once,TEST_LD,$(if $(shell command -v ld.gold 2>/dev/null),-fuse-ld=gold))
link_release  :=
WRAP_MALLOC   := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
link_asan     := -fsanitize=address,undefined
link_tsan     := -fsanitize=thread
# For `make fuzz` alone; the warnings are gcc's business.
flags_fuzz    := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
                 -fno-sanitize-recover=all -w
link_fuzz     := -fsanitize=address,undefined
# What no threaded test links need not be compiled for them.
without_tsan  := clients/fleet/% clients/examples/% clients/slurm/% daemon/import/% build/gen/fleet_% \
                 daemon/config/% daemon/batch/% daemon/serve.c daemon/analysis/imported/%
CLANG         ?= clang
cc_fuzz        = $(CLANG)
cc_release     = $(CC)
cc_asan        = $(CC)
cc_tsan        = $(CC)

# pkg-config is asked when a recipe first needs the answer and then remembered: on a bare machine
# it is not there yet when this file is read.
DAEMON_PKGS := libmicrohttpd jansson sqlite3
CTL_PKGS    := libcurl jansson sqlite3
TEST_PKGS   := $(DAEMON_PKGS) libcurl cmocka
once         = $(eval $(1) := $(2))$($(1))
pkg_config   = $(shell pkg-config $(1) || echo missing-packages-please-run-make-deps)
PKG_CFLAGS   = $(call once,PKG_CFLAGS,$(call pkg_config,--cflags $(DAEMON_PKGS) libcurl))
DAEMON_LIBS  = $(call once,DAEMON_LIBS,$(call pkg_config,--libs $(DAEMON_PKGS)) -ldl -lm)
CTL_LIBS     = $(call once,CTL_LIBS,$(call pkg_config,--libs $(CTL_PKGS)) $(PQ_LIBS) -lm)
TEST_LIBS    = $(call once,TEST_LIBS,$(call pkg_config,--libs $(TEST_PKGS)) $(PQ_LIBS) -ldl -lm)
# PostgreSQL is there where libpq is, and otherwise reachctl says that it is not. NO_LIBPQ=1 leaves
# it out.
PQ_FOUND     = $(call once,PQ_FOUND,$(if $(NO_LIBPQ),,$(shell pkg-config --exists libpq 2>/dev/null && echo yes)))
PQ_LIBS      = $(call once,PQ_LIBS,$(if $(PQ_FOUND),$(shell pkg-config --libs libpq)))
PQ_DEFINES   = $(call once,PQ_DEFINES,$(if $(PQ_FOUND),-DREACH_HAVE_LIBPQ $(shell pkg-config --cflags libpq)))
PQ_SRC      := clients/fleet/db_postgres.c
EXAMPLE_LIBS = $(call once,EXAMPLE_LIBS,$(call pkg_config,--libs $(CTL_PKGS)) -ldl -lm -lpthread)

# The commit goes only into the objects whose source asks for it, so a commit rebuilds little.
COMMIT      := $(shell GIT_OPTIONAL_LOCKS=0 git describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null)
FULL_VERSION := $(VERSION)$(if $(COMMIT),+g$(COMMIT))
VERSION_SRC := $(shell grep -ls REACHD_VERSION daemon/main.c $(filter-out build/%,$(LIB_SRC)) $(CTL_SRC) $(LAB_SRC) $(PAPERS_SRC) /dev/null)
