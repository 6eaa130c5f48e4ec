/* any_fingerprint.h: random fingerprints that hold every invariant. Each number is known, unknown
 * or not observable, with evidence if it is known. In lists, the evidence of one number is drawn
 * for all elements together. So each form of a column of evidence occurs (evidence_json.h). */
#pragma once

#include "base/rng.h"
#include "fingerprint/fingerprint.h"

void any_fingerprint(struct rng *r, struct fingerprint *fp);
