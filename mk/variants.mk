# mk/variants.mk: builds the objects, archives, programs and tests of each variant (release, asan, tsan, fuzz), and
# libreach, libreach-cuda and the plugin for Slurm.

# ---- per variant: objects, archive, programs, tests ------------------------------------------
# The variant of a target build/VARIANT/..; its compile command; its link command, with additional options in $(1).
variant      = $(firstword $(subst /, ,$(@:$(OUT)/%=%)))
compile      = $(cc_$(variant)) $(CPPFLAGS) $(PKG_CFLAGS) $(COMMON) $(flags_$(variant)) $(CFLAGS)
link         = $(cc_$(variant)) $(LINK) $(pie_$(variant)) $(link_$(variant)) $(1) $(LDFLAGS) -o $@ $^

v := release
include mk/variant.mk
v := asan
include mk/variant.mk
v := tsan
include mk/variant.mk
v := fuzz
include mk/variant.mk

# ---- libreach: the client library, with the daemon's handlers inside --------------------------
# Only the needed objects of the archive are linked. reach.map lists the exported functions. The static library is one
# joined object that hides all other names.
REACH_MAP   := clients/c/reach.map
REACH_OBJ   := $(patsubst %.c,$(OUT)/release/obj/%.o,$(wildcard clients/c/*.c))

# libreach of the portable folder finds its libraries in that folder. libreach of the wheel contains libcurl, and
# auditwheel adds libjansson to the wheel.
REACH_SHARED := $(addsuffix /libreach.so.$(ABI),$(OUT)/release $(OUT)/release/portable $(OUT)/wheel)
$(OUT)/release/portable/libreach.so.$(ABI): private LDFLAGS += $(RPATH)
$(OUT)/wheel/libreach.so.$(ABI): private LDFLAGS += -s -Wl,--exclude-libs,ALL
$(OUT)/wheel/libreach.so.$(ABI): private CTL_LIBS = $(OUT)/wheel/curl/libcurl.a $(call pkg_config,--libs jansson) -lm
$(OUT)/wheel/libreach.so.$(ABI): | $(OUT)/wheel/curl/libcurl.a
$(REACH_SHARED): $(REACH_OBJ) $(OUT)/release/libanswer.a $(REACH_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(cc_release) -shared -pthread -Wl,-soname,$(@F) -Wl,--version-script=$(REACH_MAP) -Wl,-Bsymbolic \
	    -Wl,--no-undefined -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(REACH_OBJ) \
	    $(OUT)/release/libanswer.a $(CTL_LIBS)

# tests/e2e/test_python_fuzz.py loads this library.
$(OUT)/asan/libreach.so.$(ABI): $(patsubst %.c,$(OUT)/asan/obj/%.o,$(wildcard clients/c/*.c)) $(OUT)/asan/libanswer.a $(REACH_MAP)
	$(call say,LINK,$@)
	$(Q)$(cc_release) -shared -pthread $(link_asan) -Wl,--version-script=$(REACH_MAP) -Wl,-Bsymbolic -Wl,--no-undefined \
	    $(LDFLAGS) -o $@ $(filter %.o,$^) $(OUT)/asan/libanswer.a $(CTL_LIBS)

$(OUT)/wheel/curl/libcurl.a:
	$(call say,BUILD,$@)
	$(Q)CROSS=$(CROSS) SYSROOT=$(SYSROOT) .ci/libcurl $(@D)

$(OUT)/release/libreach.so: $(OUT)/release/libreach.so.$(ABI)
	$(Q)ln -sfn $(<F) $@

$(OUT)/release/libreach.a: $(REACH_OBJ) $(OUT)/release/libanswer.a $(REACH_MAP)
	$(call say,AR,$@)
	$(Q)$(CROSS)ld -r -o $(OUT)/release/libreach.o $(REACH_OBJ) $(OUT)/release/libanswer.a
	$(Q)sed -n 's/^ *\(reach_[a-z0-9_]*\);.*/\1/p' $(REACH_MAP) >$(OUT)/release/libreach.names
	$(Q)$(CROSS)objcopy --keep-global-symbols=$(OUT)/release/libreach.names $(OUT)/release/libreach.o
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(OUT)/release/libreach.o

# ---- libreach-cuda: allocators and diagnosis for jobs; it needs libc, and the driver at run time ---------
ALLOC_MAP   := clients/cuda/reach_alloc.map
ALLOC_OBJ   := $(patsubst %.c,$(OUT)/release/obj/%.o,$(wildcard clients/cuda/*/*.c)) $(OUT)/release/obj/fatbin.o

$(OUT)/wheel/libreach-cuda.so.$(ABI): private LDFLAGS += -s
$(addsuffix /libreach-cuda.so.$(ABI),$(OUT)/release $(OUT)/wheel): $(ALLOC_OBJ) $(ALLOC_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(cc_release) -shared -pthread -Wl,-soname,$(@F) -Wl,--version-script=$(ALLOC_MAP) -Wl,-Bsymbolic \
	    -Wl,--no-undefined -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(ALLOC_OBJ) -ldl

$(OUT)/release/libreach-cuda.so: $(OUT)/release/libreach-cuda.so.$(ABI)
	$(Q)ln -sfn $(<F) $@

$(OUT)/release/libreach-cuda.a: $(ALLOC_OBJ) $(ALLOC_MAP)
	$(call say,AR,$@)
	$(Q)$(CROSS)ld -r -o $(OUT)/release/libreach-cuda.o $(ALLOC_OBJ)
	$(Q)sed -n 's/^ *\(reach_[a-z0-9_]*\);.*/\1/p' $(ALLOC_MAP) >$(OUT)/release/libreach-cuda.names
	$(Q)$(CROSS)objcopy --keep-global-symbols=$(OUT)/release/libreach-cuda.names $(OUT)/release/libreach-cuda.o
	$(Q)rm -f $@ && $(CROSS)ar rcs $@ $(OUT)/release/libreach-cuda.o

# ---- libreach-profile: what reach-profile loads into programs; it needs libc, and the Sanitizer library at run time --
INJECT_MAP  := clients/profile/inject/inject.map
$(addsuffix /libreach-profile.so,$(OUT)/release $(OUT)/wheel): $(INJECT_SRC:%.c=$(OUT)/release/obj/%.o) \
        $(OUT)/release/obj/profile_patch.o $(OUT)/release/liblab.a $(libs_release) $(INJECT_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(cc_release) -shared -pthread -Wl,--version-script=$(INJECT_MAP) -Wl,-Bsymbolic -Wl,--no-undefined -Wl,--as-needed \
	    -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(filter-out %.map,$^) $(DAEMON_LIBS)

$(OUT)/wheel/libreach-profile.so: private LDFLAGS += -s

# reach-profile of the wheel contains libcurl, like libreach.
$(OUT)/wheel/reach-profile: $(PROFILE_SRC:%.c=$(OUT)/release/obj/%.o) $(OUT)/release/liblab.a $(libs_release) \
        $(OUT)/wheel/curl/libcurl.a
	$(call say,LINK,$@)
	$(Q)$(cc_release) $(LINK) -s -Wl,--exclude-libs,ALL $(LDFLAGS) -o $@ $^ $(call pkg_config,--libs jansson sqlite3) -ldl -lm

# ---- the plugin for Slurm: it needs libc and the functions of slurmstepd ----------------------
$(OUT)/release/reach_spank.so: $(SLURM_SRC:%.c=$(OUT)/release/obj/%.o) clients/slurm/reach_spank.map
	$(call say,LINK,$@)
	$(Q)$(cc_release) -shared -Wl,--version-script=clients/slurm/reach_spank.map -Wl,-z,relro $(LDFLAGS) \
	    -o $@ $(filter %.o,$^)

# build/tests/ has links to the test programs of the release build.
$(OUT)/tests/%: $(OUT)/release/tests/%
	@mkdir -p $(@D) && ln -sfn $(abspath $<) $@

-include $(shell find build '(' -name wheel -o -name sysroot ')' -prune -o -name '*.d' -type f -print 2>/dev/null)
