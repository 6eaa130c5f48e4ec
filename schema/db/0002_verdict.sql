-- Whether something else had a hand in an observation: clean, disturbed, unusable. Observations of
-- before were not judged; 'clean' says that nobody has complained about them. The reason stands in
-- the document. A verdict other than clean is covered by row_hash, so that none can be lost.

ALTER TABLE observation ADD COLUMN verdict TEXT NOT NULL DEFAULT 'clean'
    CHECK (verdict IN ('clean', 'disturbed', 'unusable'));
