# mk/lint.mk: the rules of make lint and make format.

# ---- lint and format -------------------------------------------------------------------------
# The findings and the layout of a linter differ from release to release. Only the release of Debian 12 counts. Without
# it the step fails and prints the remedy.
LLVM_JUDGE  := 14
CPPCHECK_JUDGE := 2.10
MYPY_JUDGE  := 1.0
CLANG_FORMAT ?= clang-format
CLANG_TIDY  ?= clang-tidy
CPPCHECK    ?= cppcheck
MYPY        ?= mypy
# Fails unless a linter has the required version: $(1) the version, $(2) the command, $(3) the variable that names it.
judge        = $($(3)) --version 2>/dev/null | grep -q 'version $(1)\.\|^Cppcheck $(1)\|^mypy $(1)\.' || { \
                   echo "lint needs $(2) $(1), and '$($(3))' is missing or of another version."; \
                   echo "Debian 12 has it (.ci/deps check). Elsewhere install it beside yours and name it:"; \
                   echo "    $(3)=$(2)-$(1) make check"; \
                   echo "or leave lint to another machine, knowingly: make check LINT="; exit 1; }
# The stamp of a file contains the output of clang-tidy. It is stale if the file or an included header is newer.
TIDY_SRC    ?= $(LINT_SRC)
TIDY_FLAGS   = $(CPPFLAGS) $(PKG_CFLAGS) $(if $(filter $(PQ_SRC),$<),$(PQ_DEFINES)) -std=gnu11 -DREACHD_VERSION='"lint"'

.PHONY: lint lint-format lint-tidy lint-changed lint-stamps lint-cppcheck lint-types format
lint: lint-format lint-tidy lint-cppcheck lint-types

lint-format:
	$(Q)$(call judge,$(LLVM_JUDGE),clang-format,CLANG_FORMAT); $(CLANG_FORMAT) --dry-run -Werror $(C_FILES)

lint-tidy:
	@$(call judge,$(LLVM_JUDGE),clang-tidy,CLANG_TIDY); $(MAKE) --no-print-directory -k -j$(JOBS) lint-stamps

# Runs clang-tidy on the files that .ci/changed lists.
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

# Checks the Python package with the settings of clients/python/pyproject.toml. PyTorch and Triton may be missing.
lint-types:
	$(Q)$(call judge,$(MYPY_JUDGE),mypy,MYPY); cd clients/python && $(MYPY) --cache-dir $(CURDIR)/build/lint/mypy \
	    --no-error-summary

format:
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)
