# mk/cross.mk: a build for another architecture than that of this machine, such as make ARCH=aarch64 portable.
#
# The compiler is Debian's cross compiler, and the libraries are Debian's, in a folder of their own (.ci/sysroot), so
# the packages of this machine do not change. All output is under build/ARCH. Generated sources and device code are the
# same for each architecture, so they stay in build/gen and build/kernels. qemu-user runs the programs (.ci/emulated).

MACHINE     := $(shell uname -m)
ARCH        ?= $(MACHINE)
OUT         := build
ifneq ($(ARCH),$(MACHINE))
CROSS       := $(ARCH)-linux-gnu-
OUT         := build/$(ARCH)
SYSROOT     := $(CURDIR)/$(OUT)/sysroot
EMULATED    := .ci/emulated $(ARCH) $(SYSROOT)
PKG_CONFIG  := PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) \
               PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(ARCH)-linux-gnu/pkgconfig:$(SYSROOT)/usr/share/pkgconfig pkg-config
# make reads this file again when the rule has made it, so the rest of the makefiles finds the headers of the folder.
ifneq ($(MAKECMDGOALS),clean)
include $(OUT)/sysroot.mk
endif
$(OUT)/sysroot.mk: .ci/sysroot
	@.ci/deps cross
	@.ci/sysroot $(ARCH) $(SYSROOT)
	@echo '# The folder sysroot is complete.' >$@
else
CROSS       :=
SYSROOT     :=
EMULATED    :=
PKG_CONFIG  := pkg-config
endif
# `cc` is the default of make, and a bare machine may lack it; `make deps` installs gcc.
ifeq ($(origin CC),default)
CC          := $(CROSS)gcc
endif
# A program written in CUDA contains the CUDA runtime, and a toolkit has the runtime of its machine. A cross build leaves
# these programs out.
NVCC_HOST   := $(if $(CROSS),,$(NVCC))
