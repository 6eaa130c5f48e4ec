/* report_write.c: see report_write.h. */
#include "clients/profile/report_write.h"

#include "clients/profile/recording.h"

enum status report_write(const struct report_request *request, struct err *err)
{
    (void)request;
    return err_set(err, STATUS_NOT_SUPPORTED, "reports are not written yet");
}
