/* duty.h: bounds what the callbacks of launches cost a long program. After the first seconds, while
 * the program launches thousands of kernels per second, a thread enables these callbacks for a
 * second in ten only. */
#pragma once

#include "clients/profile/inject/sanitizer_api.h"

/* Enables all callbacks that the recorder needs, and starts the thread. `full_ns` is the time in
 * which launch callbacks stay enabled. Returns the result of the Sanitizer API, 0 for success.
 * Without a thread, the callbacks stay enabled. */
int duty_start(const struct sanitizer_api *api, san_subscriber subscriber, uint64_t full_ns);
