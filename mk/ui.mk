# mk/ui.mk: The pages: the modules of clients/ui, bundled, compressed, and made constants of a program.

# clients/ui/NAME.entry.js and all that it imports (of d3 what it uses) become build/gen/ui/NAME.js, and
# clients/ui/NAME.css with what it imports build/gen/ui/NAME.css. Names of Debian's node-* packages are
# looked up where they install; nothing is fetched.
UI_SRC      := $(wildcard clients/ui/*.js clients/ui/*.css clients/ui/*.html)
ESBUILD     ?= esbuild
UI_FLAGS    := --bundle --minify --charset=ascii --target=es2020 --log-level=warning --legal-comments=inline
UI_MODULES  := /usr/share/nodejs

build/gen/ui/%.js: clients/ui/%.entry.js $(UI_SRC) mk/ui.mk
	$(call say,ESBUILD,$@)
	@mkdir -p $(@D)
	$(Q)NODE_PATH=$(UI_MODULES) $(ESBUILD) $(UI_FLAGS) --format=iife --outfile=$@ $<

build/gen/ui/%.css: clients/ui/%.css $(UI_SRC) mk/ui.mk
	$(call say,ESBUILD,$@)
	@mkdir -p $(@D)
	$(Q)$(ESBUILD) $(UI_FLAGS) --outfile=$@ $<

build/gen/ui/%.html: clients/ui/%.html mk/ui.mk
	@mkdir -p $(@D)
	$(Q)cp $< $@

# The same bytes from the same sources: neither a name nor a time is in it.
build/gen/ui/%.gz: build/gen/ui/%
	$(Q)gzip -9nc $< >$@

# In a shell: a file as an array of bytes, `static const unsigned char NAME[] = {...};`.
c_bytes      = echo "static const unsigned char $(1)[] = {"; od -An -v -tu1 $(2) | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo '};'

# The files of /ui/: name, type, file. Compressed they have to stay below UI_MAX_BYTES together.
UI_FILES    := page.html page.js page.css
UI_MAX_BYTES := 153600

build/gen/ui_files.c: $(UI_FILES:%=build/gen/ui/%) $(UI_FILES:%=build/gen/ui/%.gz) mk/ui.mk
	$(call say,GEN,$@)
	$(Q)test $$(cat $(filter %.gz,$^) | wc -c) -lt $(UI_MAX_BYTES) || { \
	    echo "the page has more than $(UI_MAX_BYTES) bytes compressed" >&2; exit 1; }
	$(Q){ \
	    echo '/* Generated from clients/ui. */'; \
	    echo '#include "api/handlers/ui_file.h"'; \
	    for f in html js css; do \
	        $(call c_bytes,page_$$f,build/gen/ui/page.$$f); \
	        $(call c_bytes,page_$${f}_gz,build/gen/ui/page.$$f.gz); \
	    done; \
	    row='    {"%s", "%s; charset=utf-8", page_%s, sizeof(page_%s), page_%s_gz, sizeof(page_%s_gz)},\n'; \
	    echo 'const struct ui_file ui_files[] = {'; \
	    printf "$$row" '' text/html html html html html; \
	    printf "$$row" page.js text/javascript js js js js; \
	    printf "$$row" page.css text/css css css css css; \
	    echo '    {0, 0, 0, 0, 0, 0}};'; \
	} >$@
