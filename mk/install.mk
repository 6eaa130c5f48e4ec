# mk/install.mk: the rules of make portable, install, deb, wheel, dist and clean.

# ---- portable, install, clean ----------------------------------------------------------------
.PHONY: portable install install-built clean deb
PORTABLE    := $(OUT)/reachd-$(VERSION)-$(ARCH).tar.gz
# All packed files have the time of the commit. In a source archive without git, the Makefile has that time.
COMMIT_TIME  = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y Makefile))

portable: all $(TOOLS) $(OUT)/release/portable/libreach.so.$(ABI)
	@SOURCE_DATE_EPOCH=$(COMMIT_TIME) ARCH=$(ARCH) CROSS=$(CROSS) SYSROOT=$(SYSROOT) .ci/portable $(OUT) $(PORTABLE) $(GLIBC_MAX) \
	    $(PROGRAMS) $(OUT)/release/portable/libreach.so.$(ABI) $(OUT)/release/libreach-cuda.so.$(ABI) \
	    $(CLIENT_SCRIPTS) $(SCRIPT_MODULE) -- $(TOOLS) $(call SCRIPT_FILES,gpu) $(call SCRIPT_FILES,gpu/experiments) \
	    $(call SCRIPT_FILES,gpu/profile) $(wildcard tests/gpu/*.txt) $(call SCRIPT_FILES,bench)

BINDIR      := $(PREFIX)/bin
LIBDIR      := $(PREFIX)/lib
INCLUDEDIR  := $(PREFIX)/include
MANDIR      := $(PREFIX)/share/man
# The folder belongs to no release of Python. Users add it to PYTHONPATH, or set PYTHONDIR to another folder.
PYTHONDIR   ?= $(PREFIX)/share/reachd/python
SCRIPTDIR   := $(PREFIX)/share/reachd/scripts
UNITDIR     := $(PREFIX)/lib/systemd/system
BASHDIR     := $(PREFIX)/share/bash-completion/completions
# reach-profile finds the folder by its own folder.
INJECTDIR   := $(PREFIX)/lib/reachd
ZSHDIR      := $(PREFIX)/share/zsh/vendor-completions
install: all
	@$(MAKE) --no-print-directory install-built

install-built:
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(UNITDIR) $(DESTDIR)/etc/default
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(PYTHONDIR)
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man5 \
	    $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)/etc/reachd $(DESTDIR)$(PREFIX)/lib/sysusers.d \
	    $(DESTDIR)$(PREFIX)/lib/tmpfiles.d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR)
	install -m 644 $(filter-out %.so,$(LIBREACH)) $(DESTDIR)$(LIBDIR)
	for l in libreach libreach-cuda; do ln -sfn $$l.so.$(ABI) $(DESTDIR)$(LIBDIR)/$$l.so; done
	install -m 644 clients/c/reach.h $(wildcard clients/cuda/*.h clients/cuda/*.cuh) $(DESTDIR)$(INCLUDEDIR)
	for l in clients/c/reach clients/cuda/reach-cuda; do \
	    sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@VERSION@|$(VERSION)|g' $$l.pc.in \
	        >$(DESTDIR)$(LIBDIR)/pkgconfig/$${l##*/}.pc; done
	for f in $(PYTHON_SRC:clients/python/%=%); do install -D -m 644 clients/python/$$f $(DESTDIR)$(PYTHONDIR)/$$f; done
	install -d $(DESTDIR)$(PREFIX)/share/reachd/prometheus $(DESTDIR)$(PREFIX)/share/reachd/kubernetes
	install -m 644 packaging/kubernetes/*.yaml packaging/kubernetes/*.json packaging/container/Containerfile $(DESTDIR)$(PREFIX)/share/reachd/kubernetes
	for f in $$(cd packaging/helm && find reachd -type f); do \
	    install -D -m 644 packaging/helm/$$f $(DESTDIR)$(PREFIX)/share/reachd/helm/$$f; done
	install -m 644 packaging/prometheus/* $(DESTDIR)$(PREFIX)/share/reachd/prometheus
	install -d $(DESTDIR)$(PREFIX)/share/reachd/reference
	install -m 644 reference/*.json $(DESTDIR)$(PREFIX)/share/reachd/reference
	install -m 644 docs/man/*.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 docs/man/*.3 $(DESTDIR)$(MANDIR)/man3
	install -m 644 docs/man/*.5 $(DESTDIR)$(MANDIR)/man5
	install -m 644 docs/man/*.8 $(DESTDIR)$(MANDIR)/man8
	install -m 644 systemd/reachd.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/reachd.conf
	install -m 644 systemd/reachd.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/reachd.conf
	install -m 644 packaging/completion/reachd.bash $(DESTDIR)$(BASHDIR)/reachd
	install -m 644 packaging/completion/reachctl.bash $(DESTDIR)$(BASHDIR)/reachctl
	install -m 644 packaging/completion/reach-profile.bash $(DESTDIR)$(BASHDIR)/reach-profile
	install -m 644 packaging/completion/reach-profile.zsh $(DESTDIR)$(ZSHDIR)/_reach-profile
	for s in $(notdir $(CLIENT_SCRIPTS)); do ln -sfn reachctl $(DESTDIR)$(BASHDIR)/$$s; done
	install -m 644 packaging/completion/reachd.zsh $(DESTDIR)$(ZSHDIR)/_reachd
	install -m 644 packaging/completion/reachctl.zsh $(DESTDIR)$(ZSHDIR)/_reachctl
	install -d $(DESTDIR)$(SCRIPTDIR) $(DESTDIR)$(PREFIX)/share/reachd/slurm
	install -m 755 $(CLIENT_SCRIPTS) $(DESTDIR)$(SCRIPTDIR)
	install -m 644 $(SCRIPT_MODULE) $(DESTDIR)$(SCRIPTDIR)
	ln -sfnr $(addprefix $(DESTDIR)$(SCRIPTDIR)/,$(notdir $(CLIENT_SCRIPTS))) $(DESTDIR)$(BINDIR)
	install -m 755 $(wildcard clients/slurm/*.sh) $(DESTDIR)$(PREFIX)/share/reachd/slurm
	sed 's|/usr/local/lib|$(LIBDIR)|' clients/slurm/plugstack.conf >$(DESTDIR)$(PREFIX)/share/reachd/slurm/plugstack.conf
	$(if $(SPANK),install -d $(DESTDIR)$(LIBDIR)/reachd)
	$(if $(SPANK),install -m 755 $(SPANK) $(DESTDIR)$(LIBDIR)/reachd)
	install -m 755 $(OUT)/release/reachd $(if $(CTL_SRC),$(OUT)/release/reachctl) $(OUT)/release/reach-lab \
	    $(OUT)/release/reach-profile $(GUPS) $(DESTDIR)$(BINDIR)
	install -D -m 644 -t $(DESTDIR)$(INJECTDIR) $(INJECTED)
	sed 's|@BINDIR@|$(BINDIR)|g' systemd/reachd.service >$(DESTDIR)$(UNITDIR)/reachd.service
	sed 's|@BINDIR@|$(BINDIR)|g' systemd/reachd-archive.service >$(DESTDIR)$(UNITDIR)/reachd-archive.service
	test -e $(DESTDIR)/etc/reachd/reachd.conf || install -m 644 systemd/reachd.conf $(DESTDIR)/etc/reachd
	install -m 644 systemd/reachd.socket systemd/reachd-health.socket $(DESTDIR)$(UNITDIR)
	test -e $(DESTDIR)/etc/default/reachd || install -m 644 systemd/reachd.default $(DESTDIR)/etc/default/reachd

# Makes Debian packages of the built programs, under build/deb.
deb:
	@.ci/deps deb
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) all CUDA_ARCHS="$(RELEASE_ARCHS)"
	@SOURCE_DATE_EPOCH=$(COMMIT_TIME) ARCH=$(ARCH) SYSROOT=$(SYSROOT) .ci/deb $(OUT)/deb $(VERSION)

# Makes the wheel of the Python package, which contains both libraries and reach-profile, under build/wheel.
WHEEL_LIBS  := $(addprefix $(OUT)/wheel/,libreach.so.$(ABI) libreach-cuda.so.$(ABI) reach-profile $(notdir $(INJECTED)))
.PHONY: wheel wheel-built
wheel:
	@.ci/deps wheel
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) $(WHEEL_LIBS) CUDA_ARCHS="$(RELEASE_ARCHS)"
	@$(MAKE) --no-print-directory wheel-built

wheel-built:
	@SOURCE_DATE_EPOCH=$(COMMIT_TIME) ARCH=$(ARCH) SYSROOT=$(SYSROOT) .ci/wheel $(OUT)/wheel $(GLIBC_MAX) $(WHEEL_LIBS)

# Puts all files of a release into one folder. The checkout must be clean.
.PHONY: dist dist-built
dist:
	@for t in portable deb wheel dist-built; do $(MAKE) --no-print-directory $$t || exit 1; done

dist-built:
	@.ci/dist $(OUT)/dist reachd-$(VERSION) $(PORTABLE) \
	    $(foreach d,$(wildcard $(OUT)/deb/*.deb),$(if $(findstring -dbgsym_,$(d)),,$(d))) $(wildcard $(OUT)/wheel/reachd-*.whl)

clean:
	rm -rf build
