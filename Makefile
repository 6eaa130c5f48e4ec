# One makefile, not recursive over directories; everything it makes is under build/.
#
#   make run        install what is missing, build, start the daemon in the foreground
#   make check      install what is missing, build, run every test that needs no GPU
#   make            build reachd, reachctl and, where nvcc is found, the examples
#   make check-long the tests that have more to do than fits into check, up to an hour
#   make check-fleet the tests of surveys and schedulers beside real servers; check-long has them too
#   make fuzz       SECONDS=60 TARGET=name: looks for inputs that break something
#   make check-gpu  the tests that need a GPU          make bench     timings, printed not judged
#   make soak       REQUESTS=10000000 of all kinds to one daemon: does its memory stay flat?
#   make portable   a folder that runs elsewhere       make install   DESTDIR= PREFIX=
#   make deb        Debian packages, under build/deb
#   make format     clang-format in place              make lint      format, clang-tidy, cppcheck
#   make deps       only install what is missing       make clean
#   make build/tests/unit/test_units   one test program (its release build)
#
# V=1 shows the commands. A new .c file is found by its directory; nothing is listed by hand.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# ---- settings: override on the command line -------------------------------------------------
VERSION     := 0.1.0
# Of libreach: in the name of the shared library. A new number breaks every program that links it.
ABI         := 0
PREFIX      ?= /usr/local
DESTDIR     ?=
# `cc` is make's own default and need not be there on a bare machine; gcc is what deps installs.
ifeq ($(origin CC),default)
CC          := gcc
endif
NVCC        ?= $(firstword $(wildcard $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc))
CFLAGS      ?=
LDFLAGS     ?=
TSAN_TESTS  := api_reader snapshot pipeline store_maintenance store store_upkeep libreach_threads
# The newest glibc that a portable build may ask for.
GLIBC_MAX   := 2.36
JOBS        := $(shell nproc 2>/dev/null || echo 2)
# Scripts wait more than they compute.
TEST_JOBS   := $(shell expr 2 \* $(JOBS))

# ---- sources, by directory -----------------------------------------------------------------
find_files   = $(sort $(foreach d,$(wildcard $(1)),$(shell find $(d) -name '$(2)' -type f)))
SQL         := $(sort $(wildcard schema/db/[0-9]*_*.sql))
FLEET_SQL   := $(sort $(wildcard schema/fleet/*.sql))
GEN_SRC     := $(if $(SQL),build/gen/migrations.c) $(if $(FLEET_SQL),build/gen/fleet_sql.c) $(if $(wildcard api/openapi.yaml),build/gen/openapi.c)
# The plugin for Slurm needs its header (libslurm-dev); without it a build does without the plugin.
SPANK_H     := $(wildcard /usr/include/slurm/spank.h)
SLURM_SRC   := $(filter-out $(if $(SPANK_H),,%/reach_spank.c),$(wildcard clients/slurm/*.c))
# What answers a request from a snapshot, without a daemon around it: an archive of its own, because
# libreach links it too.
ANSWER_SRC  := $(call find_files,$(addprefix daemon/,base fingerprint planner snapshot),*.c) \
               $(wildcard api/handlers/*.c api/encode/*.c api/decode/*.c) $(filter %/openapi.c,$(GEN_SRC))
DAEMON_SRC  := $(filter-out daemon/main.c $(ANSWER_SRC),$(call find_files,daemon,*.c)) \
               $(wildcard api/server/*.c clients/c/*.c clients/fleet/*.c clients/examples/*.c) $(SLURM_SRC) \
               $(filter-out $(ANSWER_SRC),$(GEN_SRC))
LIB_SRC     := $(DAEMON_SRC) $(ANSWER_SRC)
CTL_SRC     := $(wildcard clients/reachctl/*.c)
KERNELS     := $(wildcard kernels/*.cu)
EXAMPLE_SRC := $(wildcard clients/examples/*.cu)
# Host code that the examples share.
EXAMPLE_OBJ := $(patsubst %.c,build/release/obj/%.o,$(wildcard clients/examples/*.c))
TEST_DIRS   := unit sim replay fakecuda
TEST_SRC    := $(wildcard $(TEST_DIRS:%=tests/%/test_*.c))
# Fuzz targets, each a program of its own: with libFuzzer in the clang build, with a main that replays
# the inputs of its corpus in the others.
FUZZ_SRC    := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_NAMES  := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
# What is not a test program itself: shared by the test programs, or the stand-in driver.
SUPPORT_SRC := $(filter-out $(TEST_SRC),$(wildcard tests/unit/*.c tests/sim/*.c tests/replay/*.c))
FAKE_SRC    := $(filter-out $(TEST_SRC),$(wildcard tests/fakecuda/*.c))
TOOL_SRC    := $(wildcard tests/gpu/*.c tests/bench/*.c)
TOOL_CU     := $(if $(NVCC),$(wildcard tests/gpu/*.cu tests/bench/*.cu))
# Scripts; those whose name starts with lib or common are read by the others, and a survey is run by
# hand: it runs the others.
SCRIPT_FILES = $(wildcard tests/$(1)/*.sh tests/$(1)/*.py)
SCRIPTS      = $(filter-out tests/$(1)/lib% tests/$(1)/common% tests/$(1)/survey%,$(call SCRIPT_FILES,$(1)))
C_FILES     := $(call find_files,daemon api clients tests kernels,*.[ch])
LINT_SRC    := $(filter-out build/%,$(LIB_SRC)) $(wildcard daemon/main.c) $(CTL_SRC)

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
# the portable folder needs. ../../lib is for the programs under tests/.
RPATH       := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN/../../lib'
LINK        := -pie -pthread -Wl,--as-needed -Wl,-z,relro,-z,now $(RPATH)

flags_release := -O2 $(HARDENED)
flags_asan    := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
flags_tsan    := -O1 -fno-omit-frame-pointer -fsanitize=thread
link_release  :=
link_asan     := -fsanitize=address,undefined
link_tsan     := -fsanitize=thread
# For `make fuzz` alone; the warnings are gcc's business.
flags_fuzz    := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
                 -fno-sanitize-recover=all -w
link_fuzz     := -fsanitize=address,undefined
VARIANTS      := release asan tsan fuzz
# What no threaded test links need not be compiled for them.
without_tsan  := clients/fleet/% clients/examples/% clients/slurm/% daemon/import/% build/gen/fleet_%
CLANG         ?= clang
cc_fuzz        = $(CLANG)
cc_release     = $(CC)
cc_asan        = $(CC)
cc_tsan        = $(CC)

# pkg-config is asked when a recipe first needs the answer and then remembered: on a bare machine
# it is not there yet when this file is read.
DAEMON_PKGS := libmicrohttpd jansson sqlite3
CTL_PKGS    := libcurl jansson sqlite3
# For reachctl hwloc alone.
HWLOC_PKGS  := hwloc
TEST_PKGS   := $(DAEMON_PKGS) libcurl cmocka
once         = $(eval $(1) := $(2))$($(1))
pkg_config   = $(shell pkg-config $(1) || echo missing-packages-please-run-make-deps)
PKG_CFLAGS   = $(call once,PKG_CFLAGS,$(call pkg_config,--cflags $(DAEMON_PKGS) libcurl $(HWLOC_PKGS)))
DAEMON_LIBS  = $(call once,DAEMON_LIBS,$(call pkg_config,--libs $(DAEMON_PKGS)) -ldl -lm)
HWLOC_LIBS   = $(call once,HWLOC_LIBS,$(call pkg_config,--libs $(HWLOC_PKGS)))
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
VERSION_SRC := $(shell grep -ls REACHD_VERSION daemon/main.c $(filter-out build/%,$(LIB_SRC)) $(CTL_SRC) /dev/null)

# ---- how a command is shown ----------------------------------------------------------------
Q           := $(if $(V),,@)
silent      := $(findstring s,$(filter-out --%,$(firstword $(MAKEFLAGS))))
say          = $(if $(V)$(silent),@:,@printf '  %-8s %s\n' $(1) $(2))
# Rewrites $@ only where its text changed, so that what depends on it is rebuilt only then.
define write_if_changed
	@mkdir -p $(@D)
	@printf '%s\n' $(1) | cmp -s - $@ || printf '%s\n' $(1) >$@
endef
FORCE:
.PHONY: FORCE

# ---- all -----------------------------------------------------------------------------------
EXAMPLES    := $(if $(NVCC),$(EXAMPLE_SRC:clients/examples/%.cu=build/release/examples/%))
# What the examples in Python need beside them: the clients, and kernels that they load.
EXAMPLE_PY  := $(patsubst clients/%,build/release/%,$(wildcard clients/examples/*.py clients/python/*.py))
EXAMPLE_FAT := $(if $(NVCC),build/release/examples/gather.fatbin)
PROGRAMS    := build/release/reachd $(if $(CTL_SRC),build/release/reachctl) $(EXAMPLES) $(EXAMPLE_FAT) \
               $(EXAMPLE_PY)
SPANK       := $(if $(SPANK_H),build/release/reach_spank.so)
LIBREACH    := build/release/libreach.so.$(ABI) build/release/libreach.so build/release/libreach.a

.PHONY: all
all: $(PROGRAMS) $(LIBREACH) $(SPANK)
	$(if $(SPANK_H),,@echo '  no slurm/spank.h (libslurm-dev): without the plugin for Slurm')

# ---- per variant: objects, archive, programs, tests ------------------------------------------
define VARIANT_RULES
build/$(1)/flags: FORCE
	$$(call write_if_changed,'$$(cc_$(1)) $$(CPPFLAGS) $$(PKG_CFLAGS) $$(COMMON) $$(flags_$(1)) $$(CFLAGS)')

build/$(1)/obj/%.o: %.c build/$(1)/flags
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(cc_$(1)) $$(CPPFLAGS) $$(PKG_CFLAGS) $$(COMMON) $$(flags_$(1)) $$(CFLAGS) $$(DEFINES) -MMD -MP -c $$< -o $$@

build/$(1)/obj/fatbin.o: build/gen/fatbin.S build/kernels/reach_kernels.fatbin
	$$(call say,AS,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(cc_$(1)) -c $$< -o $$@

$(VERSION_SRC:%.c=build/$(1)/obj/%.o): private DEFINES := -DREACHD_VERSION='"$(FULL_VERSION)"'
$(VERSION_SRC:%.c=build/$(1)/obj/%.o): build/gen/version
$(PQ_SRC:%.c=build/$(1)/obj/%.o): private DEFINES = $$(PQ_DEFINES)
$(PQ_SRC:%.c=build/$(1)/obj/%.o): build/gen/libpq

objects_$(1) := $(patsubst %.c,build/$(1)/obj/%.o,$(filter-out $(without_$(1)),$(DAEMON_SRC))) build/$(1)/obj/fatbin.o
answer_$(1)  := $(patsubst %.c,build/$(1)/obj/%.o,$(filter-out $(without_$(1)),$(ANSWER_SRC)))
libs_$(1)    := build/$(1)/libreachd.a build/$(1)/libanswer.a
support_$(1) := $(SUPPORT_SRC:%.c=build/$(1)/obj/%.o)
helpers_$(1) := build/$(1)/tests/libhelpers.a $$(libs_$(1))
fake_$(1)    := $(FAKE_SRC:%.c=build/$(1)/obj/%.o)
tests_$(1)   := $(TEST_SRC:%.c=build/$(1)/%)
fuzz_$(1)    := $(FUZZ_SRC:%.c=build/$(1)/%)
fakelib_$(1) := $(if $(FAKE_SRC),build/$(1)/tests/fakecuda/libcuda.so.1)

# The list is a file of its own: a source that went away must leave the archive.
build/$(1)/objects: FORCE
	$$(call write_if_changed,$$(objects_$(1)) $$(answer_$(1)))

build/$(1)/libreachd.a: $$(objects_$(1)) build/$(1)/objects
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && ar rcs $$@ $$(objects_$(1))

build/$(1)/libanswer.a: $$(answer_$(1)) build/$(1)/objects
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && ar rcs $$@ $$(answer_$(1))

# An archive: a test program is linked with what it asks for, and with nothing else.
build/$(1)/tests/libhelpers.a: $$(support_$(1)) build/$(1)/objects
	$$(call say,AR,$$@)
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && ar rcs $$@ $$(support_$(1))

build/$(1)/reachd: build/$(1)/obj/daemon/main.o $$(libs_$(1))
	$$(call say,LINK,$$@)
	$$(Q)$$(cc_$(1)) $$(LINK) $$(link_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(DAEMON_LIBS)

build/$(1)/reachctl: $(CTL_SRC:%.c=build/$(1)/obj/%.o) $$(libs_$(1))
	$$(call say,LINK,$$@)
	$$(Q)$$(cc_$(1)) $$(LINK) $$(link_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(CTL_LIBS) $$(HWLOC_LIBS)

build/$(1)/tests/%: build/$(1)/obj/tests/%.o $$(helpers_$(1))
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(cc_$(1)) $$(LINK) $$(link_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(TEST_LIBS)

# With libFuzzer's main in the clang build, with ours in the others.
build/$(1)/tests/fuzz/fuzz_%: build/$(1)/obj/tests/fuzz/fuzz_%.o $(if $(filter fuzz,$(1)),,build/$(1)/obj/tests/fuzz/replay.o) \
                              $$(helpers_$(1))
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(cc_$(1)) $$(LINK) $$(link_$(1)) $(if $(filter fuzz,$(1)),-fsanitize=fuzzer) $$(LDFLAGS) -o $$@ $$^ $$(TEST_LIBS)

$$(filter build/$(1)/tests/fakecuda/%,$$(tests_$(1))): | $$(fakelib_$(1))

# The stand-in driver binds to its own copy of the model, whatever the program that opens it has.
build/$(1)/tests/fakecuda/libcuda.so.1: $$(fake_$(1)) $$(libs_$(1))
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(cc_$(1)) -shared -pthread -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--exclude-libs,ALL \
	    -Wl,--as-needed $$(link_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(DAEMON_LIBS)
endef
$(foreach v,$(VARIANTS),$(eval $(call VARIANT_RULES,$(v))))

# ---- libreach: the client library, with the daemon's handlers inside --------------------------
# Of the archive only what it needs goes in. The functions in reach.map are all
# that a program sees, of the archive too: its objects are joined and every other name is hidden.
REACH_MAP   := clients/c/reach.map
REACH_OBJ   := $(patsubst %.c,build/release/obj/%.o,$(wildcard clients/c/*.c))

build/release/libreach.so.$(ABI): $(REACH_OBJ) build/release/libanswer.a $(REACH_MAP)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -pthread -Wl,-soname,$(@F) -Wl,--version-script=$(REACH_MAP) -Wl,-Bsymbolic \
	    -Wl,--no-undefined -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(REACH_OBJ) \
	    build/release/libanswer.a $(CTL_LIBS)

build/release/libreach.so: build/release/libreach.so.$(ABI)
	$(Q)ln -sfn $(<F) $@

build/release/libreach.a: $(REACH_OBJ) build/release/libanswer.a $(REACH_MAP)
	$(call say,AR,$@)
	$(Q)ld -r -o build/release/libreach.o $(REACH_OBJ) build/release/libanswer.a
	$(Q)sed -n 's/^ *\(reach_[a-z0-9_]*\);.*/\1/p' $(REACH_MAP) >build/release/libreach.names
	$(Q)objcopy --keep-global-symbols=build/release/libreach.names build/release/libreach.o
	$(Q)rm -f $@ && ar rcs $@ build/release/libreach.o

# ---- the plugin for Slurm: libc and what slurmstepd brings, nothing else ----------------------
build/release/reach_spank.so: $(SLURM_SRC:%.c=build/release/obj/%.o) clients/slurm/reach_spank.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,--version-script=clients/slurm/reach_spank.map -Wl,-z,relro $(LDFLAGS) \
	    -o $@ $(filter %.o,$^)

# Short names for the release build of a test program.
build/tests/%: build/release/tests/%
	@mkdir -p $(@D) && ln -sfn $(abspath $<) $@

-include $(shell find build -name '*.d' -type f 2>/dev/null)

# ---- generated sources: texts that travel inside the binary ----------------------------------
c_string     = sed -e 's/\\/\\\\/g' -e 's/?/\\?/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$$/\\n"/'

build/gen/version: FORCE
	$(call write_if_changed,'$(FULL_VERSION)')

build/gen/libpq: FORCE
	$(call write_if_changed,'$(PQ_DEFINES)')

build/gen/sql-files: FORCE
	$(call write_if_changed,'$(SQL) $(FLEET_SQL)')

# The statements of a folder, in the order of the file names, as an array and its length.
define EMBED_SQL
	$(call say,GEN,$@)
	$(Q){ \
	    echo '/* Generated from $(2), in the order of the file names. */'; \
	    echo 'extern const char *const $(1)_migrations[];'; \
	    echo 'extern const unsigned $(1)_migration_count;'; \
	    echo 'const char *const $(1)_migrations[] = {'; \
	    for f in $(3); do echo "    /* $$f */ \"\""; $(c_string) "$$f"; echo '    ,'; done; \
	    echo '};'; \
	    echo 'const unsigned $(1)_migration_count = $(words $(3));'; \
	} >$@
endef

build/gen/migrations.c: $(SQL) build/gen/sql-files Makefile
	$(call EMBED_SQL,store,schema/db,$(SQL))

# Each file as a text of its own: report_maps.sql is fleet_sql_report_maps.
build/gen/fleet_sql.c: $(FLEET_SQL) build/gen/sql-files Makefile
	$(call say,GEN,$@)
	$(Q){ \
	    echo '/* Generated from schema/fleet. */'; \
	    for f in $(FLEET_SQL); do \
	        name=fleet_sql_$$(basename $$f .sql); \
	        echo "extern const char $$name[];"; \
	        echo "const char $$name[] ="; $(c_string) $$f; echo '    ;'; \
	    done; \
	} >$@

build/gen/openapi.c: api/openapi.yaml Makefile
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ \
	    echo '/* Generated from api/openapi.yaml. */'; \
	    echo 'extern const char api_openapi_yaml[];'; \
	    echo 'extern const unsigned long api_openapi_yaml_size;'; \
	    echo 'const char api_openapi_yaml[] = ""'; \
	    $(c_string) $<; \
	    echo '    ;'; \
	    echo 'const unsigned long api_openapi_yaml_size = sizeof(api_openapi_yaml) - 1;'; \
	} >$@

# ---- device code ---------------------------------------------------------------------------
# Machine code for the chips we name, and PTX for all others. One PTX, of the lowest architecture:
# a driver compiles PTX for any chip at or above its level, so the lowest also serves the chips
# between the named ones (8.7, 11.0) and not only the later ones, and what is compiled is as good,
# because the level limits which instructions may be written and the kernels use none above 7.5.
CUDA_ARCHS  := 75 80 86 89 90 100 120
nvcc_archs   = $(call once,nvcc_archs,$(shell $(NVCC) --list-gpu-arch 2>/dev/null))
known_archs  = $(foreach a,$(CUDA_ARCHS),$(if $(filter compute_$(a),$(nvcc_archs)),$(a)))
lowest_arch  = $(firstword $(known_archs))
gencode      = $(foreach a,$(known_archs),-gencode arch=compute_$(a),code=sm_$(a)) \
               -gencode arch=compute_$(lowest_arch),code=compute_$(lowest_arch)
NVCC_FLAGS  := -O3 -std=c++17 --threads $(JOBS) -I. -Idaemon

build/kernels/flags: FORCE
	$(call write_if_changed,'$(NVCC) $(NVCC_FLAGS) $(CUDA_ARCHS) $(KERNELS)')

# All kernels are one translation unit, because a fatbin holds one.
build/gen/reach_kernels.cu: build/kernels/flags
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(KERNELS) >$@

ifneq ($(and $(NVCC),$(KERNELS)),)
build/kernels/reach_kernels.fatbin: build/gen/reach_kernels.cu $(KERNELS) $(wildcard kernels/*.h)
	$(call say,NVCC,$@)
	@$(if $(filter-out $(known_archs),$(CUDA_ARCHS)),echo '  this nvcc does not know: $(filter-out $(known_archs),$(CUDA_ARCHS)) (left to PTX)',:)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) -fatbin -o $@ $<
else
build/kernels/reach_kernels.fatbin: build/kernels/flags
	@echo '  no nvcc: the device code is left out, so this build measures simulated GPUs only'
	@: >$@
endif

build/gen/fatbin.S: Makefile
	@mkdir -p $(@D)
	@printf '%s\n' \
	    '/* The device code, as bytes; start and end are equal in a build without nvcc. */' \
	    '.section .rodata' \
	    '.balign 16' \
	    '.globl reach_fatbin_start' \
	    '.globl reach_fatbin_end' \
	    'reach_fatbin_start:' \
	    '.incbin "build/kernels/reach_kernels.fatbin"' \
	    'reach_fatbin_end:' \
	    '.byte 0' \
	    '.section .note.GNU-stack,"",@progbits' >$@

# Example jobs, and tests and benchmarks written in CUDA: the runtime inside, nothing to install.
define LINK_CU
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) -Iclients/c -Iclients/cuda -cudart static -MD -MP -MF $@.d \
	    -Xcompiler -fPIE -Xlinker -pie -Xlinker --as-needed -Xlinker --disable-new-dtags \
	    -Xlinker -rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN/../../lib' \
	    -o $@ $< $(filter %.o,$^) $(libs_release) $(EXAMPLE_LIBS)
endef

$(EXAMPLES): build/release/examples/%: clients/examples/%.cu $(EXAMPLE_OBJ) $(libs_release)
	$(LINK_CU)

$(EXAMPLE_FAT): build/release/examples/%.fatbin: clients/examples/%_kernels.cuh
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) -Iclients/c -Iclients/cuda -MD -MP -MF $@.d -x cu -fatbin -o $@ $<

$(EXAMPLE_PY): build/release/%: clients/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

TOOLS_CU    := $(TOOL_CU:%.cu=build/release/%)
$(TOOLS_CU): build/release/%: %.cu $(libs_release)
	$(LINK_CU)

# ---- deps, run -------------------------------------------------------------------------------
.PHONY: deps run run-built
deps:
	@.ci/deps all

run:
	@.ci/deps run
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all
	@$(MAKE) --no-print-directory run-built

run-built:
	@mkdir -p build/state
	@exec build/release/reachd --state build/state/reachd.db --demo $(RUN_ARGS)

# ---- check -----------------------------------------------------------------------------------
TSAN_PROGRAMS := $(filter $(TSAN_TESTS:%=build/tsan/tests/unit/test_%),$(tests_tsan))
E2E         := $(call SCRIPTS,e2e)
# Programs that the scripts drive.
E2E_PROGRAMS := $(foreach v,release asan,$(patsubst %.c,build/$(v)/%,$(wildcard tests/e2e/*.c)))
# Those of half a minute go first, so that no processor is left alone with one of them at the end.
longest      = $(filter %/test_structure %/test_profiles %/test_faults %/test_campaign,$(1))
others       = $(filter-out $(call longest,$(1)),$(1))
# Nothing of it is left out unless somebody says so: LINT= on the command line.
LINT        := lint-cppcheck lint-changed lint-format
CHECK_ITEMS  = $(LINT:%=make:%) \
               $(E2E:%=asan:%) $(call longest,$(tests_asan)) $(call longest,$(tests_release)) $(E2E:%=release:%) \
               $(call others,$(tests_asan)) $(call others,$(tests_release)) $(TSAN_PROGRAMS) $(fuzz_asan) \
               $(wildcard tests/layering/*.py) tests/lint/language

.PHONY: check check-programs check-gpu check-gpu-built bench bench-built
check:
	@.ci/deps check
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) check-programs
	@tests/run -j $(TEST_JOBS) $(CHECK_ITEMS)

check-programs: all $(tests_release) $(tests_asan) $(fuzz_asan) $(TSAN_PROGRAMS) $(fakelib_release) $(fakelib_asan) \
                build/asan/reachd $(if $(CTL_SRC),build/asan/reachctl) $(E2E_PROGRAMS)

# Every target for SECONDS, or the one named TARGET; what it finds is under build/fuzz/found.
SECONDS     ?= 60
TARGET      ?= $(FUZZ_NAMES)
.PHONY: fuzz
fuzz:
	@.ci/deps fuzz
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) $(TARGET:%=build/fuzz/tests/fuzz/fuzz_%)
	@tests/fuzz/run $(SECONDS) $(JOBS) $(TARGET)

# The tests that can look longer do so when REACH_LONG is set: more kills, more damage, more time. Of
# what the sanitizers see in check a part is left to here (tests/share.h, tests/run), and clang-tidy.
LONG_TESTS  := $(shell grep -ls REACH_LONG $(TEST_SRC) $(FUZZ_SRC) $(call SCRIPTS,e2e) /dev/null)
.PHONY: check-long
check-long:
	@.ci/deps long
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) check-programs
	@failed=0; REACH_LONG=1 tests/run -j 2 -t 36000 make:lint-tidy $(tests_asan) $(patsubst %.c,build/release/%,$(filter %.c,$(LONG_TESTS))) \
	    $(patsubst %,release:%,$(filter %.py,$(LONG_TESTS)) $(wildcard tests/package/test_*.py)) || failed=1; \
	    REACH_LONG=1 $(MAKE) --no-print-directory check-fleet || failed=1; exit $$failed

# Surveys, schedulers and what else runs beside real servers (PostgreSQL, Prometheus, Slurm). One after
# the other: each has the machine for itself. The programs that keep surveys are driven by a script.
FLEET       := $(call SCRIPTS,fleet)
FLEET_TESTS := $(filter build/release/tests/unit/test_fleet_% build/asan/tests/unit/test_fleet_%, \
               $(tests_release) $(tests_asan))
.PHONY: check-fleet check-fleet-programs
check-fleet:
	@.ci/deps fleet
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) check-fleet-programs
	@tests/run -j 1 $(if $(REACH_LONG),-t 36000) $(FLEET:%=release:%)

check-fleet-programs: all $(FLEET_TESTS) build/release/tests/e2e/reach_ask

TOOLS       := $(TOOL_SRC:%.c=build/release/%) $(TOOLS_CU)
GPU_TOOLS   := $(filter build/release/tests/gpu/%,$(TOOLS))
BENCH_TOOLS := $(filter build/release/tests/bench/%,$(TOOLS))

# It loads the plugin for Slurm, which finds its other side there.
build/release/tests/bench/spank_cost: private LDFLAGS += -rdynamic

# One after the other, because they share the GPU.
check-gpu:
	@.ci/deps check
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all $(GPU_TOOLS)
	@tests/run -j 1 $(filter build/release/tests/gpu/test_%,$(GPU_TOOLS)) $(call SCRIPTS,gpu)

bench:
	@.ci/deps bench
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all $(BENCH_TOOLS)
	@missed=0; for b in $(call SCRIPTS,bench); do \
	    REACH_TEST_BUILD=$(CURDIR)/build/release REACH_BENCH_WRITE=$(CURDIR)/docs/measurements/service.md \
	    $$b || missed=1; done; exit $$missed

# REQUESTS over one daemon, whose memory must stay as it is; the rows go into the page of results.
REQUESTS    ?= 10000000
.PHONY: soak
soak:
	@.ci/deps bench
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all $(BENCH_TOOLS)
	@REACH_TEST_BUILD=$(CURDIR)/build/release tests/bench/bench_service.py --soak $(REQUESTS) \
	    --write docs/measurements/service.md

# ---- lint and format -------------------------------------------------------------------------
# Linters differ from release to release in what they find and how they lay out. One release of each
# is the judge, that of Debian 12; without it nothing is known, so the step fails and says what to do.
LLVM_JUDGE  := 14
CPPCHECK_JUDGE := 2.10
CLANG_FORMAT ?= clang-format
CLANG_TIDY  ?= clang-tidy
CPPCHECK    ?= cppcheck
# version, command, the variable that names it
judge        = $($(3)) --version 2>/dev/null | grep -q 'version $(1)\.\|^Cppcheck $(1)' || { \
                   echo "lint needs $(2) $(1), and '$($(3))' is missing or of another version."; \
                   echo "Debian 12 has it (.ci/deps check). Elsewhere install it beside yours and name it:"; \
                   echo "    $(3)=$(2)-$(1) make check"; \
                   echo "or leave lint to another machine, knowingly: make check LINT="; exit 1; }
# In a file's stamp is what clang-tidy said; it is as old as the file and the headers that it includes.
TIDY_SRC    ?= $(LINT_SRC)
TIDY_FLAGS   = $(CPPFLAGS) $(PKG_CFLAGS) $(if $(filter $(PQ_SRC),$<),$(PQ_DEFINES)) -std=gnu11 -DREACHD_VERSION='"lint"'

.PHONY: lint lint-format lint-tidy lint-changed lint-stamps lint-cppcheck format
lint: lint-format lint-tidy lint-cppcheck

lint-format:
	$(Q)$(call judge,$(LLVM_JUDGE),clang-format,CLANG_FORMAT); $(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

lint-tidy:
	@$(call judge,$(LLVM_JUDGE),clang-tidy,CLANG_TIDY); $(MAKE) --no-print-directory -k -j$(JOBS) lint-stamps

# What has changed, see .ci/changed.
lint-changed:
	@$(call judge,$(LLVM_JUDGE),clang-tidy,CLANG_TIDY); changed=$$(.ci/changed $(LINT_SRC)) && \
	    $(MAKE) --no-print-directory -k -j$(JOBS) lint-stamps TIDY_SRC="$$(echo $$changed)"

lint-stamps: $(TIDY_SRC:%=build/lint/%.tidy)
	@:

build/lint/%.tidy: % .clang-tidy
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TIDY_FLAGS) -MM -MP -MT $@ -MF $@.d $<
	$(Q)$(CLANG_TIDY) --quiet $< -- $(TIDY_FLAGS) >$@.log 2>&1 || { cat $@.log; exit 1; }
	@mv $@.log $@

lint-cppcheck:
	@mkdir -p build/lint/cppcheck
	$(Q)$(call judge,$(CPPCHECK_JUDGE),cppcheck,CPPCHECK); \
	    $(CPPCHECK) --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 \
	    --inline-suppr --suppress=missingIncludeSystem --cppcheck-build-dir=build/lint/cppcheck \
	    -j $(JOBS) -I. -Idaemon -D_GNU_SOURCE -DREACHD_VERSION='"lint"' $(LINT_SRC)

format:
	$(CLANG_FORMAT) -i $(C_FILES)

# ---- portable, install, clean ----------------------------------------------------------------
.PHONY: portable install install-built clean deb
portable: all $(TOOLS)
	@.ci/portable build/portable build/reachd-$(VERSION)-$(shell uname -m).tar.gz $(GLIBC_MAX) \
	    $(PROGRAMS) -- $(TOOLS) $(call SCRIPT_FILES,gpu) $(wildcard tests/gpu/*.txt) $(call SCRIPT_FILES,bench)

BINDIR      := $(PREFIX)/bin
LIBDIR      := $(PREFIX)/lib
INCLUDEDIR  := $(PREFIX)/include
MANDIR      := $(PREFIX)/share/man
# Of no one release of Python: put it on PYTHONPATH, or say PYTHONDIR=.
PYTHONDIR   ?= $(PREFIX)/share/reachd/python
UNITDIR     := $(PREFIX)/lib/systemd/system
BASHDIR     := $(PREFIX)/share/bash-completion/completions
ZSHDIR      := $(PREFIX)/share/zsh/vendor-completions
install: all
	@$(MAKE) --no-print-directory install-built

install-built:
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(UNITDIR) $(DESTDIR)/etc/default
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(PYTHONDIR)
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man5 \
	    $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)/etc/reachd $(DESTDIR)$(PREFIX)/lib/sysusers.d \
	    $(DESTDIR)$(PREFIX)/lib/tmpfiles.d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR)
	install -m 644 $(filter-out %/libreach.so,$(LIBREACH)) $(DESTDIR)$(LIBDIR)
	ln -sfn libreach.so.$(ABI) $(DESTDIR)$(LIBDIR)/libreach.so
	install -m 644 clients/c/reach.h $(DESTDIR)$(INCLUDEDIR)
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@VERSION@|$(VERSION)|g' clients/c/reach.pc.in \
	    >$(DESTDIR)$(LIBDIR)/pkgconfig/reach.pc
	install -m 644 clients/python/*.py $(DESTDIR)$(PYTHONDIR)
	install -d $(DESTDIR)$(PREFIX)/share/reachd/prometheus $(DESTDIR)$(PREFIX)/share/reachd/kubernetes
	install -m 644 packaging/kubernetes/*.yaml packaging/container/Containerfile $(DESTDIR)$(PREFIX)/share/reachd/kubernetes
	install -m 644 packaging/prometheus/* $(DESTDIR)$(PREFIX)/share/reachd/prometheus
	install -m 644 docs/man/*.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 docs/man/*.3 $(DESTDIR)$(MANDIR)/man3
	install -m 644 docs/man/*.5 $(DESTDIR)$(MANDIR)/man5
	install -m 644 docs/man/*.8 $(DESTDIR)$(MANDIR)/man8
	install -m 644 systemd/reachd.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/reachd.conf
	install -m 644 systemd/reachd.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/reachd.conf
	install -m 644 packaging/completion/reachd.bash $(DESTDIR)$(BASHDIR)/reachd
	install -m 644 packaging/completion/reachctl.bash $(DESTDIR)$(BASHDIR)/reachctl
	install -m 644 packaging/completion/reachd.zsh $(DESTDIR)$(ZSHDIR)/_reachd
	install -m 644 packaging/completion/reachctl.zsh $(DESTDIR)$(ZSHDIR)/_reachctl
	install -d $(DESTDIR)$(PREFIX)/share/reachd/slurm
	install -m 755 clients/slurm/taskprolog.sh clients/slurm/prolog.sh $(DESTDIR)$(PREFIX)/share/reachd/slurm
	sed 's|/usr/local/lib|$(LIBDIR)|' clients/slurm/plugstack.conf >$(DESTDIR)$(PREFIX)/share/reachd/slurm/plugstack.conf
	$(if $(SPANK),install -d $(DESTDIR)$(LIBDIR)/reachd)
	$(if $(SPANK),install -m 755 $(SPANK) $(DESTDIR)$(LIBDIR)/reachd)
	install -m 755 build/release/reachd $(if $(CTL_SRC),build/release/reachctl) $(DESTDIR)$(BINDIR)
	sed 's|@BINDIR@|$(BINDIR)|g' systemd/reachd.service >$(DESTDIR)$(UNITDIR)/reachd.service
	sed 's|@BINDIR@|$(BINDIR)|g' systemd/reachd-archive.service >$(DESTDIR)$(UNITDIR)/reachd-archive.service
	test -e $(DESTDIR)/etc/reachd/reachd.conf || install -m 644 systemd/reachd.conf $(DESTDIR)/etc/reachd
	install -m 644 systemd/reachd.socket systemd/reachd-health.socket $(DESTDIR)$(UNITDIR)
	test -e $(DESTDIR)/etc/default/reachd || install -m 644 systemd/reachd.default $(DESTDIR)/etc/default/reachd

# Debian packages of what was built, under build/deb.
deb:
	@.ci/deps deb
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all
	@SOURCE_DATE_EPOCH=$(shell git log -1 --format=%ct 2>/dev/null) .ci/deb build/deb $(VERSION)

clean:
	rm -rf build
