# mk/sources.mk: finds the sources by their directories, so no list changes for a new file.

# ---- sources, by directory -----------------------------------------------------------------
find_files   = $(sort $(foreach d,$(wildcard $(1)),$(shell find $(d) -name '$(2)' -type f)))
SQL         := schema/db/tables.sql
FLEET_SQL   := $(sort $(wildcard schema/fleet/*.sql))
GEN_SRC     := build/gen/store_sql.c $(if $(FLEET_SQL),build/gen/fleet_sql.c) $(if $(wildcard api/openapi.yaml),build/gen/openapi.c) $(if $(wildcard clients/ui/page.html),build/gen/ui_files.c build/gen/fleet_page.c)
# The plugin for Slurm needs the header spank.h (libslurm-dev). Without the header, the plugin is not built.
SPANK_H     := $(wildcard $(SYSROOT)/usr/include/slurm/spank.h)
SLURM_SRC   := $(filter-out $(if $(SPANK_H),,%/reach_spank.c),$(wildcard clients/slurm/*.c))
# The sources that answer a request from a snapshot, without a daemon. They have a separate archive, because libreach
# links them too.
ANSWER_SRC  := $(call find_files,$(addprefix daemon/,base types fingerprint planner snapshot),*.c) \
               $(wildcard api/handlers/*.c api/encode/*.c api/decode/*.c) $(filter %/openapi.c,$(GEN_SRC))
DAEMON_SRC  := $(filter-out daemon/main.c $(ANSWER_SRC),$(call find_files,daemon,*.c)) \
               $(wildcard api/server/*.c clients/c/*.c clients/cuda/*/*.c clients/fleet/*.c clients/examples/*.c) $(SLURM_SRC) \
               $(filter-out $(ANSWER_SRC),$(GEN_SRC))
LIB_SRC     := $(DAEMON_SRC) $(ANSWER_SRC)
MODEL_SRC   := $(wildcard daemon/gpu/sim/sim_tlb.c daemon/gpu/sim/sim_mmu.c daemon/gpu/sim/sim_machine.c daemon/gpu/sim/sim_read.c clients/lab/whatif/miss_queue.c)
CTL_SRC     := $(wildcard clients/reachctl/*.c)
# The machines of published papers are a separate program, which `make papers` builds.
PAPERS_SRC  := $(call find_files,clients/lab/papers,*.c)
LAB_SRC     := $(filter-out $(PAPERS_SRC),$(call find_files,clients/lab,*.c))
# The launcher and the report. The injected library in clients/profile/inject is a separate target.
PROFILE_SRC := $(wildcard clients/profile/*.c)
INJECT_SRC  := $(wildcard clients/profile/inject/*.c)
KERNELS     := $(wildcard kernels/*.cu)
# Scripts that run reachctl. They are installed in one folder, with the module that two of them import.
CLIENT_SCRIPTS := clients/kubernetes/reach-nfd clients/kubernetes/reach-dra clients/hwloc/reach-hwloc
SCRIPT_MODULE := clients/kubernetes/reach_node.py
# The Python package, with the file py.typed that marks it as typed.
PYTHON_SRC  := $(sort $(call find_files,clients/python/reach,*.py) $(call find_files,clients/python/reach,py.typed))
EXAMPLE_SRC := $(wildcard clients/examples/*.cu)
# Host code that the examples share.
EXAMPLE_OBJ := $(patsubst %.c,$(OUT)/release/obj/%.o,$(wildcard clients/examples/*.c))
TEST_DIRS   := unit sim replay fakecuda
PAPERS_TEST_SRC := $(call find_files,tests/unit/clients/lab/papers,test_*.c)
TEST_SRC    := $(filter-out $(PAPERS_TEST_SRC),$(foreach d,$(TEST_DIRS),$(call find_files,tests/$(d),test_*.c)))
ALLOC_FAIL_SRC := $(shell grep -ls support/alloc_fail.h $(TEST_SRC) /dev/null)
# Each fuzz target is a program. The clang build links it with libFuzzer, the other builds with a main that replays
# the inputs of its corpus.
FUZZ_SRC    := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_NAMES  := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
# The C programs that test scripts start.
SCRIPT_C    := $(wildcard tests/e2e/*.c tests/browser/*.c)
# Sources that test programs share, and the sources of the stand-in driver.
SUPPORT_SRC := $(wildcard tests/unit/support/*.c) $(filter-out $(TEST_SRC),$(wildcard tests/sim/*.c tests/replay/*.c))
FAKE_SRC    := $(filter-out $(TEST_SRC),$(wildcard tests/fakecuda/*.c))
# The stand-in for the Sanitizer library, over the stand-in driver.
FAKE_SAN_SRC := $(wildcard tests/fakesanitizer/*.c)
TOOL_SRC    := $(wildcard tests/gpu/*.c tests/bench/*.c)
# Headers of cuCollections and of its CCCL, which .ci/cuco fetches. An empty CCCL_DIR selects the CCCL of the CUDA
# toolkit. If the headers are missing, the tests of cuCollections are not built.
CUCO_DIR    ?= build/cuco
CCCL_DIR    ?= build/cccl
CUCO_H      := $(and $(wildcard $(CUCO_DIR)/include/cuco/static_set_ref.cuh),$(or $(if $(CCCL_DIR),,y),$(wildcard $(CCCL_DIR)/thrust/thrust/version.h)))
TOOL_CU     := $(if $(NVCC_HOST),$(filter-out $(if $(CUCO_H),,tests/gpu/cuco%.cu),$(wildcard tests/gpu/*.cu tests/gpu/profile/*.cu tests/gpu/experiments/*.cu tests/bench/*.cu)))
# The test scripts of a folder. Scripts named lib* or common* are imported by others, and scripts named survey* are
# started by hand.
SCRIPT_FILES = $(wildcard tests/$(1)/*.sh tests/$(1)/*.py)
SCRIPTS      = $(filter-out tests/$(1)/lib% tests/$(1)/common% tests/$(1)/survey%,$(call SCRIPT_FILES,$(1)))
C_FILES     := $(call find_files,daemon api clients tests kernels,*.[ch])
LINT_SRC    := $(filter-out build/%,$(LIB_SRC)) $(wildcard daemon/main.c) $(CTL_SRC) $(LAB_SRC) $(PROFILE_SRC) $(INJECT_SRC) \
               $(PAPERS_SRC)
