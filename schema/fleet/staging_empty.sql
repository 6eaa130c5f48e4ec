-- Before the next survey of a connection: the temporary tables of staging.sql, without rows.
DELETE FROM fleet_new_host;
DELETE FROM fleet_new_gpu;
DELETE FROM fleet_new_fingerprint;
DELETE FROM fleet_new_structure;
DELETE FROM fleet_new_line;
DELETE FROM fleet_new_series;
DELETE FROM fleet_new_metric;
DELETE FROM fleet_new_base;
DELETE FROM fleet_new_fleet;
DELETE FROM fleet_new_pair;
