# Makefile: lists the targets, sets the defaults and includes mk/*.mk. One make process reads all of them. All output
# is under build/.
#
#   make run        install what is missing, build, start the daemon in the foreground
#   make check      install what is missing, build, run every test that needs no GPU
#   make            build reachd, reachctl and, if nvcc is found, the examples
#   make check-long run the tests that take too long for check; it takes up to an hour
#   make papers     reach-lab-papers, the machines of published papers; check-long builds and tests it
#   make check-fleet the tests of surveys and schedulers beside real servers; check-long includes them
#   make fuzz       SECONDS=60 TARGET=name: searches for inputs that break a fuzz target
#   make check-gpu  the tests that need a GPU          make bench     the benchmarks
#   make soak       REQUESTS=10000000 of all kinds to one daemon, whose memory must not grow
#   make portable   a folder that runs elsewhere       make install   DESTDIR= PREFIX=
#   make deb        Debian packages, under build/deb   make wheel     the Python package, under build/wheel
#   make ARCH=aarch64 portable   for another architecture, also deb, wheel and test, under build/aarch64
#   make dist       the files of a release and their checksums, under build/dist
#   make reference  make the reference set again from docs/measurements
#   make format     format the C files                 make lint      check the format; clang-tidy, cppcheck, mypy
#   make deps       only install what is missing       make clean
#   make test TEST="tests/e2e/test_plan.py tests/unit/daemon/base/test_units.c"   some tests (release build)
#
# V=1 shows the commands. Sources are found by their directory, so no list changes for a new .c file.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# ---- settings: override on the command line -------------------------------------------------
VERSION     := 0.1.0
# The version in the names of the shared libraries libreach and libreach-cuda. A new number breaks every program
# that is linked with one of them.
ABI         := 0
PREFIX      ?= /usr/local
DESTDIR     ?=
NVCC        ?= $(firstword $(wildcard $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc))
CFLAGS      ?=
LDFLAGS     ?=
TSAN_TESTS  := api_reader snapshot pipeline pipeline_trouble store_maintenance store store_upkeep store_queue libreach_threads
# The newest version of glibc that a portable build may require.
GLIBC_MAX   := 2.36
JOBS        := $(shell nproc 2>/dev/null || echo 2)
# There are two tests for each processor, because scripts wait more than they compute.
TEST_JOBS   := $(shell expr 2 \* $(JOBS))

include mk/cross.mk
include mk/sources.mk
include mk/flags.mk

# ---- how a command is shown ----------------------------------------------------------------
Q           := $(if $(V),,@)
silent      := $(findstring s,$(filter-out --%,$(firstword $(MAKEFLAGS))))
say          = $(if $(V)$(silent),,$(info $()  $(1)	$(2)))
# Rewrites $@ only if its text has changed, so that its dependents are rebuilt only then.
define write_if_changed
	@mkdir -p $(@D)
	@printf '%s\n' $(1) | cmp -s - $@ || printf '%s\n' $(1) >$@
endef
FORCE:
.PHONY: FORCE

# ---- all -----------------------------------------------------------------------------------
EXAMPLES    := $(if $(NVCC_HOST),$(patsubst clients/examples/%.cu,$(OUT)/release/examples/%,$(filter-out %/gups.cu,$(EXAMPLE_SRC))))
# reach-gups is the only example that is installed.
GUPS        := $(if $(NVCC_HOST),$(OUT)/release/reach-gups)
# The Python examples need the Python package and the compiled kernels in the same build folder.
EXAMPLE_PY  := $(patsubst clients/%,$(OUT)/release/%,$(wildcard clients/examples/*.py) $(PYTHON_SRC))
EXAMPLE_FAT := $(if $(NVCC),$(OUT)/release/examples/gather.fatbin)
INJECTED    := $(OUT)/release/libreach-profile.so
PROGRAMS    := $(OUT)/release/reachd $(if $(CTL_SRC),$(OUT)/release/reachctl) $(OUT)/release/reach-lab $(OUT)/release/reach-profile \
               $(INJECTED) $(EXAMPLES) $(GUPS) $(EXAMPLE_FAT) $(EXAMPLE_PY)
SPANK       := $(if $(SPANK_H),$(OUT)/release/reach_spank.so)
LIBREACH    := $(foreach l,libreach libreach-cuda,$(addprefix $(OUT)/release/$(l).,so.$(ABI) so a))

.PHONY: all
all: $(PROGRAMS) $(LIBREACH) $(SPANK)
	$(if $(SPANK_H),,@echo '  no slurm/spank.h (libslurm-dev): without the plugin for Slurm')

include mk/variants.mk
include mk/generated.mk
include mk/ui.mk
include mk/kernels.mk
include mk/check.mk
include mk/lint.mk
include mk/install.mk
