/* round.h: numbers as they are stored and shown. */
#ifndef REACH_BASE_ROUND_H
#define REACH_BASE_ROUND_H

/* `v` to six significant digits: more than repeats of a measurement agree to, and few enough to
 * read. The double that is nearest to that decimal number. What is 0 or not finite stays. */
double round_six_digits(double v);

#endif
