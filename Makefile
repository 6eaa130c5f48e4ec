# The front: what can be made, the settings, and the order of the parts in mk/*.mk. Not recursive over
# directories; everything it makes is under build/.
#
#   make run        install what is missing, build, start the daemon in the foreground
#   make check      install what is missing, build, run every test that needs no GPU
#   make            build reachd, reachctl and, where nvcc is found, the examples
#   make check-long the tests that have more to do than fits into check, up to an hour
#   make papers     reach-lab-papers, the machines of published papers; check-long builds and tests it
#   make check-fleet the tests of surveys and schedulers beside real servers; check-long has them too
#   make fuzz       SECONDS=60 TARGET=name: looks for inputs that break something
#   make check-gpu  the tests that need a GPU          make bench     timings, printed not judged
#   make soak       REQUESTS=10000000 of all kinds to one daemon: does its memory stay flat?
#   make portable   a folder that runs elsewhere       make install   DESTDIR= PREFIX=
#   make deb        Debian packages, under build/deb  make wheel     the Python package, under build/wheel
#   make dist       all that a release has, with checksums, under build/dist
#   make reference  the reference set anew, from docs/measurements
#   make format     clang-format in place              make lint      format, clang-tidy, cppcheck, mypy
#   make deps       only install what is missing       make clean
#   make test TEST="tests/e2e/test_plan.py tests/unit/daemon/base/test_units.c"   some tests (release build)
#
# V=1 shows the commands. A new .c file is found by its directory; nothing is listed by hand.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# ---- settings: override on the command line -------------------------------------------------
VERSION     := 0.1.0
# Of libreach and libreach-cuda: in the names of the shared libraries. A new number breaks every program
# that links one.
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
TSAN_TESTS  := api_reader snapshot pipeline pipeline_trouble store_maintenance store store_upkeep store_queue libreach_threads
# The newest glibc that a portable build may ask for.
GLIBC_MAX   := 2.36
JOBS        := $(shell nproc 2>/dev/null || echo 2)
# Scripts wait more than they compute.
TEST_JOBS   := $(shell expr 2 \* $(JOBS))

include mk/sources.mk
include mk/flags.mk

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
EXAMPLES    := $(if $(NVCC),$(patsubst clients/examples/%.cu,build/release/examples/%,$(filter-out %/gups.cu,$(EXAMPLE_SRC))))
# The one example that is a program for users, and installed.
GUPS        := $(if $(NVCC),build/release/reach-gups)
# What the examples in Python need beside them: the clients, and kernels that they load.
EXAMPLE_PY  := $(patsubst clients/%,build/release/%,$(wildcard clients/examples/*.py) $(PYTHON_SRC))
EXAMPLE_FAT := $(if $(NVCC),build/release/examples/gather.fatbin)
PROGRAMS    := build/release/reachd $(if $(CTL_SRC),build/release/reachctl) build/release/reach-lab $(EXAMPLES) $(GUPS) $(EXAMPLE_FAT) \
               $(EXAMPLE_PY)
SPANK       := $(if $(SPANK_H),build/release/reach_spank.so)
LIBREACH    := $(foreach l,libreach libreach-cuda,$(addprefix build/release/$(l).,so.$(ABI) so a))

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
