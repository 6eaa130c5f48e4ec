/* gate.h: holds back launches while a module is patched. Running code must not change, so a thread
 * that patches first closes the gate, waits until no other thread is inside a launch call, and then
 * waits until the GPU has finished all launches of the context. Each wait has a limit, because a
 * kernel may wait for a launch that the gate holds back; then nothing is patched. */
#pragma once

#include "clients/profile/inject/sanitizer_api.h"

#include <stdbool.h>

/* A thread calls these when it enters and leaves a launch call of the driver, or a call that
 * destroys a stream. gate_enter waits while another thread has closed the gate. gate_leave returns
 * whether the thread is in no such call any more. */
void gate_enter(void);
bool gate_leave(void);

/* Forgets the threads that are inside launch calls, because the ends of their calls are not
 * reported. Launch calls must not be reported when this function is called. */
void gate_reset(void);

/* Reports the stream of a launch, and that the program destroys a stream. */
void gate_saw_stream(san_context context, san_stream stream, void *user_stream);
void gate_destroys_stream(void *user_stream);

/* Forgets the streams of a context that is destroyed. */
void gate_forget_streams(san_context context);

/* Counts stream captures. The gate cannot be closed during a capture. */
void gate_capture_begins(void);
void gate_capture_ends(void);
bool gate_is_capturing(void);

/* Closes the gate and waits for the GPU. It must be called where the thread holds no lock of the
 * driver. Returns false, with the gate open, if the launches did not end in time. A program whose
 * launches never end would wait at each attempt, so attempts that fail become rare. */
bool gate_close(san_context context);
void gate_open(void);
