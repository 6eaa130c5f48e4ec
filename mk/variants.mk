# mk/variants.mk: Objects, archives, programs and tests of each variant (release, asan, tsan, fuzz); libreach; the Slurm plugin.

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

# What a test program does itself takes less time than its optimization.
$(TEST_SRC:%.c=build/$(1)/obj/%.o): private CFLAGS += -O0 -U_FORTIFY_SOURCE

# The inner loops of the model are most of what a simulated measurement and what-if cost. Sanitizers, which make it four
# times as slow, see it in check-long.
$(MODEL_SRC:%.c=build/$(1)/obj/%.o): private CFLAGS += $(if $(REACH_LONG),,$(plain_$(1)))
$(MODEL_SRC:%.c=build/$(1)/obj/%.o): build/gen/long

objects_$(1) := $(patsubst %.c,build/$(1)/obj/%.o,$(filter-out $(without_$(1)),$(DAEMON_SRC))) build/$(1)/obj/fatbin.o
answer_$(1)  := $(patsubst %.c,build/$(1)/obj/%.o,$(filter-out $(without_$(1)),$(ANSWER_SRC)))
libs_$(1)    := build/$(1)/libreachd.a build/$(1)/libanswer.a
support_$(1) := $(SUPPORT_SRC:%.c=build/$(1)/obj/%.o) $(patsubst %.c,build/$(1)/obj/%.o,$(filter-out %/main.c,$(LAB_SRC)))
helpers_$(1) := build/$(1)/tests/libhelpers.a $$(libs_$(1))
fake_$(1)    := $(FAKE_SRC:%.c=build/$(1)/obj/%.o)
tests_$(1)   := $(TEST_SRC:%.c=build/$(1)/%)
fuzz_$(1)    := $(FUZZ_SRC:%.c=build/$(1)/%)
fakelib_$(1) := $(if $(FAKE_SRC),build/$(1)/tests/fakecuda/libcuda.so.1)

$(patsubst %.c,build/$(1)/obj/%.o,$(wildcard clients/fleet/*.c)): | build/gen/fleet_sql.h build/gen/fleet_page.h

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
	$$(Q)$$(cc_$(1)) $$(LINK) $$(link_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(CTL_LIBS)

build/$(1)/reach-lab: $(LAB_SRC:%.c=build/$(1)/obj/%.o) $$(libs_$(1))
	$$(call say,LINK,$$@)
	$$(Q)$$(cc_$(1)) $$(LINK) $$(link_$(1)) $$(LDFLAGS) -o $$@ $$^ $$(DAEMON_LIBS)

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
	$$(Q)ln -sfn $$(@F) $$(@D)/libnvidia-ml.so.1
endef
$(foreach v,$(VARIANTS),$(eval $(call VARIANT_RULES,$(v))))

# It includes a header for kernels, which includes reach.h as a job does.
$(foreach v,$(VARIANTS),$(addprefix build/$(v)/obj/tests/unit/clients/cuda/test_,ranges.o keys.o)): private DEFINES += -Iclients/c

# ---- libreach: the client library, with the daemon's handlers inside --------------------------
# Of the archive only what it needs goes in. The functions in reach.map are all
# that a program sees, of the archive too: its objects are joined and every other name is hidden.
REACH_MAP   := clients/c/reach.map
REACH_OBJ   := $(patsubst %.c,build/release/obj/%.o,$(wildcard clients/c/*.c))

# The one of the portable folder finds there what it needs; the one of the wheel needs no
# libcurl, and auditwheel puts libjansson beside it.
REACH_SHARED := $(addsuffix /libreach.so.$(ABI),build/release build/release/portable build/wheel)
build/release/portable/libreach.so.$(ABI): private LDFLAGS += $(RPATH)
build/wheel/libreach.so.$(ABI): private LDFLAGS += -s -Wl,--exclude-libs,ALL
build/wheel/libreach.so.$(ABI): private CTL_LIBS = build/wheel/curl/libcurl.a $(call pkg_config,--libs jansson) -lm
build/wheel/libreach.so.$(ABI): | build/wheel/curl/libcurl.a
$(REACH_SHARED): $(REACH_OBJ) build/release/libanswer.a $(REACH_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -pthread -Wl,-soname,$(@F) -Wl,--version-script=$(REACH_MAP) -Wl,-Bsymbolic \
	    -Wl,--no-undefined -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(REACH_OBJ) \
	    build/release/libanswer.a $(CTL_LIBS)

# For tests/e2e/test_python_fuzz.py.
build/asan/libreach.so.$(ABI): $(patsubst %.c,build/asan/obj/%.o,$(wildcard clients/c/*.c)) build/asan/libanswer.a $(REACH_MAP)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -pthread $(link_asan) -Wl,--version-script=$(REACH_MAP) -Wl,-Bsymbolic -Wl,--no-undefined \
	    $(LDFLAGS) -o $@ $(filter %.o,$^) build/asan/libanswer.a $(CTL_LIBS)

build/wheel/curl/libcurl.a:
	$(call say,BUILD,$@)
	$(Q).ci/libcurl $(@D)

build/release/libreach.so: build/release/libreach.so.$(ABI)
	$(Q)ln -sfn $(<F) $@

build/release/libreach.a: $(REACH_OBJ) build/release/libanswer.a $(REACH_MAP)
	$(call say,AR,$@)
	$(Q)ld -r -o build/release/libreach.o $(REACH_OBJ) build/release/libanswer.a
	$(Q)sed -n 's/^ *\(reach_[a-z0-9_]*\);.*/\1/p' $(REACH_MAP) >build/release/libreach.names
	$(Q)objcopy --keep-global-symbols=build/release/libreach.names build/release/libreach.o
	$(Q)rm -f $@ && ar rcs $@ build/release/libreach.o

# ---- libreach-cuda: allocators and diagnosis for jobs; libc only, and the driver at run time ---------
ALLOC_MAP   := clients/cuda/reach_alloc.map
ALLOC_OBJ   := $(patsubst %.c,build/release/obj/%.o,$(wildcard clients/cuda/*/*.c)) build/release/obj/fatbin.o

build/wheel/libreach-cuda.so.$(ABI): private LDFLAGS += -s
$(addsuffix /libreach-cuda.so.$(ABI),build/release build/wheel): $(ALLOC_OBJ) $(ALLOC_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -pthread -Wl,-soname,$(@F) -Wl,--version-script=$(ALLOC_MAP) -Wl,-Bsymbolic \
	    -Wl,--no-undefined -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(ALLOC_OBJ) -ldl

build/release/libreach-cuda.so: build/release/libreach-cuda.so.$(ABI)
	$(Q)ln -sfn $(<F) $@

build/release/libreach-cuda.a: $(ALLOC_OBJ) $(ALLOC_MAP)
	$(call say,AR,$@)
	$(Q)ld -r -o build/release/libreach-cuda.o $(ALLOC_OBJ)
	$(Q)sed -n 's/^ *\(reach_[a-z0-9_]*\);.*/\1/p' $(ALLOC_MAP) >build/release/libreach-cuda.names
	$(Q)objcopy --keep-global-symbols=build/release/libreach-cuda.names build/release/libreach-cuda.o
	$(Q)rm -f $@ && ar rcs $@ build/release/libreach-cuda.o

# ---- the plugin for Slurm: libc and what slurmstepd brings, nothing else ----------------------
build/release/reach_spank.so: $(SLURM_SRC:%.c=build/release/obj/%.o) clients/slurm/reach_spank.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,--version-script=clients/slurm/reach_spank.map -Wl,-z,relro $(LDFLAGS) \
	    -o $@ $(filter %.o,$^)

# Short names for the release build of a test program.
build/tests/%: build/release/tests/%
	@mkdir -p $(@D) && ln -sfn $(abspath $<) $@

-include $(shell find build -path build/wheel -prune -o -name '*.d' -type f -print 2>/dev/null)
