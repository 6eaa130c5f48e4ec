-- From version 4: the quartiles are named what they are.

ALTER TABLE fleet_spread RENAME TO fleet_quartiles;

ALTER TABLE fleet_survey RENAME COLUMN spread TO quartiles;

UPDATE fleet_schema SET version = 5;
