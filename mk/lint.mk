# mk/lint.mk: make lint and format.

# ---- lint and format -------------------------------------------------------------------------
# Linters differ from release to release in what they find and how they lay out. One release of each
# is the judge, in Debian 12's version; without it nothing is known, so the step fails and says what to do.
LLVM_JUDGE  := 14
CPPCHECK_JUDGE := 2.10
MYPY_JUDGE  := 1.0
CLANG_FORMAT ?= clang-format
CLANG_TIDY  ?= clang-tidy
CPPCHECK    ?= cppcheck
MYPY        ?= mypy
# version, command, the variable that names it
judge        = $($(3)) --version 2>/dev/null | grep -q 'version $(1)\.\|^Cppcheck $(1)\|^mypy $(1)\.' || { \
                   echo "lint needs $(2) $(1), and '$($(3))' is missing or of another version."; \
                   echo "Debian 12 has it (.ci/deps check). Elsewhere install it beside yours and name it:"; \
                   echo "    $(3)=$(2)-$(1) make check"; \
                   echo "or leave lint to another machine, knowingly: make check LINT="; exit 1; }
# In a file's stamp is what clang-tidy said; it is as old as the file and the headers that it includes.
TIDY_SRC    ?= $(LINT_SRC)
TIDY_FLAGS   = $(CPPFLAGS) $(PKG_CFLAGS) $(if $(filter $(PQ_SRC),$<),$(PQ_DEFINES)) -std=gnu11 -DREACHD_VERSION='"lint"'

.PHONY: lint lint-format lint-tidy lint-changed lint-stamps lint-cppcheck lint-types format
lint: lint-format lint-tidy lint-cppcheck lint-types

lint-format:
	$(Q)$(call judge,$(LLVM_JUDGE),clang-format,CLANG_FORMAT); $(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

lint-tidy:
	@$(call judge,$(LLVM_JUDGE),clang-tidy,CLANG_TIDY); $(MAKE) --no-print-directory -k -j$(JOBS) lint-stamps

# What has changed, see .ci/changed.
lint-changed:
	@$(call judge,$(LLVM_JUDGE),clang-tidy,CLANG_TIDY); changed=$$(.ci/changed $(LINT_SRC)) && \
	    $(MAKE) --no-print-directory -k -j$(JOBS) lint-stamps TIDY_SRC="$$(echo $$changed)"

lint-stamps: $(TIDY_SRC:%=build/lint/%.tidy)
	@:

$(patsubst %,build/lint/%.tidy,$(wildcard clients/fleet/*.c)): | build/gen/fleet_sql.h build/gen/fleet_page.h
build/lint/%.tidy: % .clang-tidy
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TIDY_FLAGS) -MM -MP -MT $@ -MF $@.d $<
	$(Q)$(CLANG_TIDY) --quiet $< -- $(TIDY_FLAGS) >$@.log 2>&1 || { cat $@.log; exit 1; }
	@mv $@.log $@

lint-cppcheck:
	@mkdir -p build/lint/cppcheck
	$(Q)$(call judge,$(CPPCHECK_JUDGE),cppcheck,CPPCHECK); \
	    $(CPPCHECK) --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c11 \
	    --inline-suppr --suppress=missingIncludeSystem --cppcheck-build-dir=build/lint/cppcheck \
	    -j $(JOBS) -I. -Idaemon -D_GNU_SOURCE -DREACHD_VERSION='"lint"' $(LINT_SRC)

# The Python package, as clients/python/pyproject.toml says; PyTorch and Triton need not be there.
lint-types:
	$(Q)$(call judge,$(MYPY_JUDGE),mypy,MYPY); cd clients/python && $(MYPY) --cache-dir $(CURDIR)/build/lint/mypy \
	    --no-error-summary

format:
	$(CLANG_FORMAT) -i $(C_FILES)
