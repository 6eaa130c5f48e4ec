# mk/kernels.mk: compiles the device code and the programs written in CUDA.

# ---- device code ---------------------------------------------------------------------------
# Machine code is compiled for the GPUs of this machine, or for RELEASE_ARCHS if the result is installed elsewhere
# (portable, install, deb). All other GPUs use one PTX, of the lowest architecture. A driver compiles PTX for any chip at
# or above its level, so the lowest level also serves the chips between the named ones (8.7, 11.0). The compiled code
# is equally fast: the level limits the instructions of the PTX, and the kernels use none above 7.5.
RELEASE_ARCHS := 75 80 86 89 90 100 120
LOCAL_ARCHS  = $(call once,LOCAL_ARCHS,$(sort 75 $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d .)))
CUDA_ARCHS   = $(LOCAL_ARCHS)
portable install deb: CUDA_ARCHS = $(RELEASE_ARCHS)
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
build/kernels/reach_kernels.fatbin: build/gen/reach_kernels.cu $(KERNELS) $(wildcard kernels/*.h kernels/*.cuh)
	$(call say,NVCC,$@)
	@$(if $(filter-out $(known_archs),$(CUDA_ARCHS)),echo '  this nvcc does not know: $(filter-out $(known_archs),$(CUDA_ARCHS)) (left to PTX)',:)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) -fatbin -o $@ $<
else
build/kernels/reach_kernels.fatbin: build/kernels/flags
	@echo '  no nvcc: the device code is left out, so this build measures simulated GPUs only'
	@: >$@
endif

# The functions that reach-profile adds to the kernels of a program.
PROFILE_PATCH := clients/profile/inject/patch.cu
ifneq ($(NVCC),)
build/kernels/profile_patch.fatbin: $(PROFILE_PATCH) clients/profile/inject/abi.h build/kernels/flags
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) --compile-as-tools-patch -fatbin -o $@ $<
else
build/kernels/profile_patch.fatbin: build/kernels/flags
	@: >$@
endif

# Writes device code as bytes; NAME_start and NAME_end are equal in a build without nvcc. $(1) NAME, $(2) the file.
define EMBED_FATBIN
	@mkdir -p $(@D)
	@printf '%s\n' '.section .rodata' '.balign 16' '.globl $(1)_start' '.globl $(1)_end' '$(1)_start:' \
	    '.incbin "$(2)"' '$(1)_end:' '.byte 0' '.section .note.GNU-stack,"",@progbits' >$@
endef

build/gen/fatbin.S: mk/kernels.mk
	$(call EMBED_FATBIN,reach_fatbin,build/kernels/reach_kernels.fatbin)

build/gen/profile_patch.S: mk/kernels.mk
	$(call EMBED_FATBIN,reach_profile_patch,build/kernels/profile_patch.fatbin)

# Links an example, a test or a benchmark written in CUDA. The program contains the CUDA runtime.
define LINK_CU
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) -Iclients/c -Iclients/cuda -cudart static -MD -MP -MF $@.d \
	    -Xcompiler -fPIE -Xlinker -pie -Xlinker --as-needed -Xlinker --disable-new-dtags \
	    -Xlinker -rpath,'$$ORIGIN/lib:$$ORIGIN/../lib:$$ORIGIN/../../lib:$$ORIGIN/../../../lib' \
	    -o $@ $< $(filter %.o,$^) $(libs_release) $(EXAMPLE_LIBS)
endef

$(EXAMPLES): $(OUT)/release/examples/%: clients/examples/%.cu $(EXAMPLE_OBJ) $(libs_release) build/kernels/flags
	$(LINK_CU)

$(GUPS): clients/examples/gups.cu $(EXAMPLE_OBJ) $(libs_release) build/kernels/flags
	$(LINK_CU)

$(EXAMPLE_FAT): $(OUT)/release/examples/%.fatbin: clients/examples/%_kernels.cuh build/kernels/flags
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(gencode) -Iclients/c -Iclients/cuda -MD -MP -MF $@.d -x cu -fatbin -o $@ $<

$(EXAMPLE_PY): $(OUT)/release/%: clients/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

TOOLS_CU    := $(TOOL_CU:%.cu=$(OUT)/release/%)
$(TOOLS_CU): $(OUT)/release/%: %.cu $(libs_release) build/kernels/flags
	$(LINK_CU)

# The headers of cuCollections use names that CCCL marks as deprecated.
CUCO_FLAGS  := --extended-lambda -DCCCL_IGNORE_DEPRECATED_API -isystem $(CUCO_DIR)/include \
               $(if $(CCCL_DIR),$(addprefix -isystem $(CCCL_DIR)/,cub thrust libcudacxx/include))
$(filter $(OUT)/release/tests/gpu/cuco%,$(TOOLS_CU)): private NVCC_FLAGS += $(CUCO_FLAGS)

# Kernels that launch kernels are linked with the runtime of the device.
$(OUT)/release/tests/gpu/profile/dynamic: private NVCC_FLAGS += -rdc=true
