# mk/check.mk: the rules of make deps, run, check, test, generated, beside, papers, check-long, check-fleet, check-gpu,
# fuzz, bench and soak.

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
	@exec $(OUT)/release/reachd --state build/state/reachd.db --reference reference --demo $(RUN_ARGS)

# ---- check -----------------------------------------------------------------------------------
# test_end kills processes that hold locks, and test_writer has one thread.
TSAN_PROGRAMS := $(foreach t,$(TSAN_TESTS),$(filter %/test_$(t),$(tests_tsan))) \
                 $(filter-out %/test_end %/test_writer,$(filter $(OUT)/tsan/tests/unit/clients/profile/inject/%,$(tests_tsan)))
E2E         := $(call SCRIPTS,e2e)
# Scripts that check-long runs in the release build. Under the sanitizers, which check runs, all their cases execute the
# same lines.
E2E_LONG    := $(foreach t,domains driver profile_report which_gpu,tests/e2e/test_$(t).py)
# The tests of the pages in a browser run in the release build only, because a sanitizer does not check pages.
BROWSER     := $(call SCRIPTS,browser)
# The C programs that the test scripts start.
E2E_PROGRAMS := $(foreach v,release asan,$(patsubst %.c,$(OUT)/$(v)/%,$(wildcard tests/e2e/*.c))) \
               $(patsubst %.c,$(OUT)/release/%,$(wildcard tests/browser/*.c))
# Tests that take half a minute start first, so that none of them runs alone at the end.
longest      = $(filter %/test_structure %/test_profiles %/test_faults %/test_campaign %/test_report %/test_whatif \
                 %/test_cache_cases %/test_other_memory,$(1))
others       = $(filter-out $(call longest,$(1)),$(1))
# The linters that check runs. LINT= on the command line skips them.
LINT        := lint-cppcheck lint-changed lint-format lint-types
ifdef CROSS
# Sanitizers do not run under qemu-user, and pages in a browser do not depend on the architecture.
CHECK_ITEMS  = $(call longest,$(tests_release)) $(call others,$(tests_release)) $(E2E:%=release:%)
else
CHECK_ITEMS  = $(LINT:%=make:%) \
               $(E2E:%=asan:%) $(call longest,$(tests_asan)) $(call longest,$(tests_release)) \
               $(patsubst %,release:%,$(filter-out $(E2E_LONG),$(E2E)) $(BROWSER)) \
               $(TSAN_PROGRAMS) $(call others,$(tests_asan)) $(call others,$(tests_release)) $(fuzz_asan) \
               $(patsubst %,release:%,$(wildcard tests/python/test_*.py)) \
               $(wildcard tests/layering/*.py) tests/lint/language
endif
RUN_TESTS    = $(if $(CROSS),env -u CC) REACH_BUILD=$(OUT) $(EMULATED) tests/run

.PHONY: check check-programs check-gpu check-gpu-built bench bench-built
check:
	@.ci/deps check
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) check-programs
	@$(RUN_TESTS) -j $(TEST_JOBS) $(CHECK_ITEMS)

ifdef CROSS
# Python runs on the processor of this machine, and loads libraries for it.
check-programs: all $(tests_release) $(fakelib_release) $(filter $(OUT)/release/%,$(E2E_PROGRAMS))
	@$(MAKE) --no-print-directory ARCH=$(MACHINE) CC=gcc $(addprefix build/release/,libreach.so.$(ABI) libreach-cuda.so.$(ABI) tests/fakecuda/libcuda.so.1)
else
check-programs: all $(tests_release) $(tests_asan) $(fuzz_asan) $(TSAN_PROGRAMS) $(fakelib_release) $(fakelib_asan) \
                $(OUT)/asan/reachd $(if $(CTL_SRC),$(OUT)/asan/reachctl) $(OUT)/asan/reach-lab $(OUT)/asan/reach-profile $(OUT)/asan/libreach.so.$(ABI) $(E2E_PROGRAMS)
endif

# Builds the programs of the release build and runs the tests named in TEST, which are scripts or sources:
#   make test TEST="tests/e2e/test_plan.py tests/unit/daemon/base/test_units.c"
.PHONY: test
test: all $(filter $(OUT)/release/%,$(E2E_PROGRAMS)) $(fakelib_release) $(patsubst %.c,$(OUT)/release/%,$(filter %.c,$(TEST)))
	@env -u CC $(RUN_TESTS) -j $(TEST_JOBS) $(patsubst %.c,$(OUT)/release/%,$(filter %.c,$(TEST))) $(patsubst %,release:%,$(filter-out %.c,$(TEST)))

# ---- generated -------------------------------------------------------------------------------
# Writes all files and parts of files that are generated from the tables of the C code and from openapi.yaml.
.PHONY: generated
generated: all $(filter $(OUT)/release/%,$(E2E_PROGRAMS))
	@for t in generated python_types python abi promises; do \
	    env -u CC REACH_TEST_BUILD=$(CURDIR)/$(OUT)/release REACH_API_WRITE=1 REACH_ABI_WRITE=1 python3 tests/e2e/test_$$t.py || exit; done

# Runs every fuzz target, or only TARGET, for SECONDS. Inputs that break a target are left in build/fuzz/found.
SECONDS     ?= 60
TARGET      ?= $(FUZZ_NAMES)
.PHONY: fuzz
fuzz:
	@.ci/deps fuzz
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) $(TARGET:%=$(OUT)/fuzz/tests/fuzz/fuzz_%)
	@tests/fuzz/run $(SECONDS) $(JOBS) $(TARGET)

# Runs COUNT simulated measurements beside other processes, on all cores. It fails if a measurement is wrong.
COUNT       ?= 100000
.PHONY: beside
beside: $(OUT)/release/tests/sim/test_beside
	@$(OUT)/release/tests/sim/test_beside $(COUNT) $$(nproc)

# Tests that name REACH_LONG run more cases when it is set: more kills, more damage, more time. `make check` leaves
# some tests under sanitizers (tests/share.h, tests/run) and clang-tidy of unchanged files to check-long. check-long also
# runs `make check` for the other architectures, without REACH_LONG.
FOREIGN     := $(filter-out $(MACHINE),aarch64)
LONG_TESTS  := $(shell grep -ls REACH_LONG $(TEST_SRC) $(FUZZ_SRC) $(call SCRIPTS,e2e) /dev/null)
.PHONY: check-long
check-long:
	@.ci/deps long
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) REACH_LONG=1 check-programs papers-programs
	@failed=0; REACH_LONG=1 tests/run -j 2 -t 36000 make:lint-tidy $(tests_asan) $(patsubst %.c,$(OUT)/release/%,$(filter %.c,$(LONG_TESTS))) \
	    asan:tests/e2e/test_schemathesis.py $(papers_release) $(papers_asan) $(PAPERS:%=release:%) $(PAPERS:%=asan:%) \
	    $(patsubst %,release:%,$(sort $(E2E_LONG) $(filter %.py,$(LONG_TESTS))) $(wildcard tests/package/test_*.py)) || failed=1; \
	    REACH_LONG=1 $(MAKE) --no-print-directory check-fleet || failed=1; \
	    $(foreach a,$(FOREIGN),$(MAKE) --no-print-directory ARCH=$(a) CC=$(a)-linux-gnu-gcc check || failed=1;) exit $$failed

# The machines of published papers (clients/lab/papers), and their tests.
PAPERS      := $(call SCRIPTS,papers)
.PHONY: papers papers-programs
papers: $(OUT)/release/reach-lab-papers

papers-programs: $(foreach v,release asan,$(OUT)/$(v)/reach-lab-papers $(papers_$(v)))

# The tests of surveys and schedulers beside real servers (PostgreSQL, Prometheus, Slurm). They run one after the other,
# so each has the whole machine. A script starts the test programs that store surveys.
FLEET       := $(call SCRIPTS,fleet)
FLEET_TESTS := $(foreach t,$(tests_release) $(tests_asan),$(if $(findstring /test_fleet_,$(t)),$(t)))
.PHONY: check-fleet check-fleet-programs
check-fleet:
	@.ci/deps fleet
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) check-fleet-programs
	@tests/run -j 1 $(if $(REACH_LONG),-t 36000) $(FLEET:%=release:%)

check-fleet-programs: all $(FLEET_TESTS) $(OUT)/release/tests/e2e/reach_ask

TOOLS       := $(TOOL_SRC:%.c=$(OUT)/release/%) $(TOOLS_CU)
GPU_TOOLS   := $(filter $(OUT)/release/tests/gpu/%,$(TOOLS))
BENCH_TOOLS := $(filter $(OUT)/release/tests/bench/% %/plain_curve,$(TOOLS))

# spank_cost loads the plugin for Slurm, which calls functions that spank_cost exports.
$(OUT)/release/tests/bench/spank_cost: private LDFLAGS += -rdynamic

# The tests run one after the other, because they share the GPU.
check-gpu:
	@.ci/deps check
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all $(GPU_TOOLS)
	@tests/run -j 1 $(filter $(OUT)/release/tests/gpu/test_%,$(GPU_TOOLS)) $(call SCRIPTS,gpu)

bench:
	@.ci/deps bench
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all $(BENCH_TOOLS)
	@missed=0; for b in $(call SCRIPTS,bench); do \
	    REACH_TEST_BUILD=$(CURDIR)/$(OUT)/release REACH_BENCH_WRITE=$(CURDIR)/docs/measurements/service.md \
	    $$b || missed=1; done; exit $$missed

# Sends REQUESTS requests to one daemon, whose memory must not grow. The rows go into the page of results.
REQUESTS    ?= 10000000
.PHONY: soak
soak:
	@.ci/deps bench
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all $(BENCH_TOOLS)
	@REACH_TEST_BUILD=$(CURDIR)/$(OUT)/release tests/bench/bench_service.py --soak $(REQUESTS) \
	    --write docs/measurements/service.md
