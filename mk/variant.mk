# mk/variant.mk: the rules for the objects, archives, programs and tests of one variant, $(v). mk/variants.mk includes
# it once for each variant. make expands recipes after it has read all rules, so a recipe takes its variant from the
# target: $(variant).

# Each object depends on this file, so the folders of the objects exist before them.
$(OUT)/$(v)/flags: FORCE
	@mkdir -p $(addprefix $(@D)/obj/,build/gen $(sort $(dir $(C_FILES))))
	$(call write_if_changed,'$(compile)')

$(OUT)/$(v)/obj/%.o: %.c $(OUT)/$(v)/flags
	$(call say,CC,$@)
	$(Q)$(compile) $(DEFINES) -MMD -MP -c $< -o $@

$(OUT)/$(v)/obj/fatbin.o: build/kernels/reach_kernels.fatbin
$(OUT)/$(v)/obj/profile_patch.o: build/kernels/profile_patch.fatbin
$(OUT)/$(v)/obj/fatbin.o $(OUT)/$(v)/obj/profile_patch.o: $(OUT)/$(v)/obj/%.o: build/gen/%.S
	$(call say,AS,$@)
	@mkdir -p $(@D)
	$(Q)$(cc_$(variant)) -c $< -o $@

$(VERSION_SRC:%.c=$(OUT)/$(v)/obj/%.o): private DEFINES := -DREACHD_VERSION='"$(FULL_VERSION)"'
$(VERSION_SRC:%.c=$(OUT)/$(v)/obj/%.o): build/gen/version
$(PQ_SRC:%.c=$(OUT)/$(v)/obj/%.o): private DEFINES = $(PQ_DEFINES)
$(PQ_SRC:%.c=$(OUT)/$(v)/obj/%.o): build/gen/libpq

# Test sources, the code that they share and the programs of test scripts are not optimized, because compiling them with
# optimization takes longer than it saves.
$(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(TEST_SRC) $(PAPERS_TEST_SRC) $(SUPPORT_SRC) $(SCRIPT_C)): private CFLAGS += -O0 -U_FORTIFY_SOURCE

# These tests include a header for kernels, which includes reach.h without a folder, like a job.
$(addprefix $(OUT)/$(v)/obj/tests/unit/clients/cuda/test_,ranges.o keys.o side_lists.o): private DEFINES += -Iclients/c

# A sanitizer replaces malloc itself, so a test of failing allocations wraps the calls (tests/unit/support/alloc_fail.h).
$(ALLOC_FAIL_SRC:%.c=$(OUT)/$(v)/%): private LDFLAGS += \
    $(if $(filter asan tsan,$(variant)),$(WRAP_MALLOC))

# Most of the time of a simulated measurement and of what-if is spent in the inner loops of the model. Sanitizers make
# these loops four times as slow, so they are sanitized only in check-long.
$(MODEL_SRC:%.c=$(OUT)/$(v)/obj/%.o): private CFLAGS += $(if $(REACH_LONG),,$(plain_$(variant)))
$(MODEL_SRC:%.c=$(OUT)/$(v)/obj/%.o): build/gen/long

objects_$(v) := $(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(filter-out $(without_$(v)),$(DAEMON_SRC))) $(OUT)/$(v)/obj/fatbin.o
answer_$(v)  := $(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(filter-out $(without_$(v)),$(ANSWER_SRC)))
libs_$(v)    := $(OUT)/$(v)/libreachd.a $(OUT)/$(v)/libanswer.a
support_$(v) := $(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(filter-out %/main.c $(without_$(v)),$(SUPPORT_SRC) $(LAB_SRC) $(PROFILE_SRC) $(INJECT_SRC)))
helpers_$(v) := $(OUT)/$(v)/tests/libhelpers.a $(libs_$(v))
fake_$(v)    := $(FAKE_SRC:%.c=$(OUT)/$(v)/obj/%.o)
tests_$(v)   := $(TEST_SRC:%.c=$(OUT)/$(v)/%)
papers_$(v)  := $(PAPERS_TEST_SRC:%.c=$(OUT)/$(v)/%)
fuzz_$(v)    := $(FUZZ_SRC:%.c=$(OUT)/$(v)/%)
fuzzer_$(v)  := $(if $(filter fuzz,$(v)),,$(OUT)/$(v)/obj/tests/fuzz/replay.o)
fakelib_$(v) := $(if $(FAKE_SRC),$(OUT)/$(v)/tests/fakecuda/libcuda.so.1 $(OUT)/$(v)/tests/fakesanitizer/libsanitizer-public.so)

$(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(wildcard clients/fleet/*.c)): | build/gen/fleet_sql.h build/gen/fleet_page.h

# The list of objects is a file, so that the archive is rebuilt when a source has been removed.
$(OUT)/$(v)/objects: FORCE
	$(call write_if_changed,$(objects_$(variant)) $(answer_$(variant)))

$(OUT)/$(v)/libreachd.a: $(objects_$(v)) $(OUT)/$(v)/objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(objects_$(variant))

$(OUT)/$(v)/libanswer.a: $(answer_$(v)) $(OUT)/$(v)/objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(answer_$(variant))

# The shared test code is an archive, so that a test program contains only the parts that it uses.
$(OUT)/$(v)/tests/libhelpers.a: $(support_$(v)) $(OUT)/$(v)/objects
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(support_$(variant))

$(OUT)/$(v)/reachd: $(OUT)/$(v)/obj/daemon/main.o $(libs_$(v))
	$(call say,LINK,$@)
	$(Q)$(call link) $(DAEMON_LIBS)

$(OUT)/$(v)/reachctl: $(CTL_SRC:%.c=$(OUT)/$(v)/obj/%.o) $(libs_$(v))
	$(call say,LINK,$@)
	$(Q)$(call link) $(CTL_LIBS)

$(OUT)/$(v)/liblab.a: $(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(filter-out %/main.c,$(LAB_SRC))) $(OUT)/$(v)/objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(filter %.o,$^)

$(OUT)/$(v)/reach-lab: $(OUT)/$(v)/obj/clients/lab/main.o $(OUT)/$(v)/liblab.a $(libs_$(v))
	$(call say,LINK,$@)
	$(Q)$(call link) $(DAEMON_LIBS)

$(OUT)/$(v)/reach-profile: $(PROFILE_SRC:%.c=$(OUT)/$(v)/obj/%.o) $(OUT)/$(v)/liblab.a $(libs_$(v))
	$(call say,LINK,$@)
	$(Q)$(call link) $(CTL_LIBS) -ldl

$(OUT)/$(v)/reach-lab-papers: $(PAPERS_SRC:%.c=$(OUT)/$(v)/obj/%.o) $(OUT)/$(v)/liblab.a $(libs_$(v))
	$(call say,LINK,$@)
	$(Q)$(call link) $(DAEMON_LIBS)

# The papers have a separate archive, because they are not part of the default build.
$(OUT)/$(v)/tests/libpapers.a: $(patsubst %.c,$(OUT)/$(v)/obj/%.o,$(filter-out %/main.c,$(PAPERS_SRC))) $(OUT)/$(v)/objects
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(filter %.o,$^)

$(papers_$(v)): $(OUT)/$(v)/%: $(OUT)/$(v)/obj/%.o $(OUT)/$(v)/tests/libpapers.a $(helpers_$(v))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call link,$(test_ld)) $(TEST_LIBS)

$(OUT)/$(v)/tests/%: $(OUT)/$(v)/obj/tests/%.o $(helpers_$(v))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call link,$(test_ld)) $(TEST_LIBS)

# The clang build links the main function of libFuzzer, the other builds link replay.c.
$(OUT)/$(v)/tests/fuzz/fuzz_%: $(OUT)/$(v)/obj/tests/fuzz/fuzz_%.o $(fuzzer_$(v)) $(helpers_$(v))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call link,$(if $(fuzzer_$(variant)),$(TEST_LD),-fsanitize=fuzzer)) $(TEST_LIBS)

$(filter $(OUT)/$(v)/tests/fakecuda/%,$(tests_$(v))): | $(fakelib_$(v))

# The stand-in driver uses its own copy of the model, even if the program that loads it contains one.
$(OUT)/$(v)/tests/fakecuda/libcuda.so.1: $(fake_$(v)) $(libs_$(v))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(cc_$(variant)) -shared -pthread -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--exclude-libs,ALL \
	    -Wl,--as-needed $(link_$(variant)) $(LDFLAGS) -o $@ $^ $(DAEMON_LIBS)
	$(Q)ln -sfn $(@F) $(@D)/libnvidia-ml.so.1

$(OUT)/$(v)/tests/fakesanitizer/libsanitizer-public.so: $(FAKE_SAN_SRC:%.c=$(OUT)/$(v)/obj/%.o)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(cc_$(variant)) -shared $(link_$(variant)) $(LDFLAGS) -o $@ $^ -ldl
