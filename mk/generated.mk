# mk/generated.mk: makes the reference set, and the C sources with the texts that programs contain.

# ---- the reference set: one anonymous file for each chip of docs/measurements --------------------
.PHONY: reference
reference: $(OUT)/release/reachctl
	@rm -f reference/*.json
	@.ci/reference $< reference

# ---- generated sources: texts inside the programs --------------------------------------------
c_string     = sed -e 's/\\/\\\\/g' -e 's/?/\\?/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$$/\\n"/'

build/gen/version: FORCE
	$(call write_if_changed,'$(FULL_VERSION)')

build/gen/long: FORCE
	$(call write_if_changed,'$(REACH_LONG)')

build/gen/libpq: FORCE
	$(call write_if_changed,'$(PQ_DEFINES)')

build/gen/sql-files: FORCE
	$(call write_if_changed,'$(SQL) $(FLEET_SQL)')

# Writes each file of schema/fleet as a separate text: report_maps.sql becomes fleet_sql_report_maps.
# schema/db/tables.sql becomes store_sql_tables.
build/gen/fleet_sql.c build/gen/store_sql.c: build/gen/%_sql.c: $(SQL) $(FLEET_SQL) build/gen/sql-files mk/generated.mk
	$(call say,GEN,$@)
	$(Q){ \
	    echo '/* Generated from schema. */'; \
	    for f in $(if $(filter fleet,$*),$(FLEET_SQL),$(SQL)); do \
	        name=$*_sql_$$(basename $$f .sql); \
	        echo "extern const char $$name[];"; \
	        echo "const char $$name[] ="; $(c_string) $$f; echo '    ;'; \
	    done; \
	} >$@

# Declares these texts.
build/gen/fleet_sql.h: build/gen/sql-files
	$(call say,GEN,$@)
	$(Q){ \
	    echo '/* Generated from schema/fleet. */'; \
	    for f in $(FLEET_SQL); do echo "extern const char fleet_sql_$$(basename $$f .sql)[];"; done; \
	} >$@

build/gen/openapi.c: api/openapi.yaml mk/generated.mk
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ \
	    echo '/* Generated from api/openapi.yaml. */'; \
	    echo 'extern const char api_openapi_yaml[];'; \
	    echo 'extern const unsigned long api_openapi_yaml_size;'; \
	    echo 'const char api_openapi_yaml[] = ""'; \
	    $(c_string) $<; \
	    echo '    ;'; \
	    echo 'const unsigned long api_openapi_yaml_size = sizeof(api_openapi_yaml) - 1;'; \
	} >$@
