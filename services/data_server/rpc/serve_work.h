#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/base/system/job_attempt.h"
#include "services/common/rpc/frame.h"
#include "services/common/service/member_generations.h"
#include "services/data_server/rpc/batch_pipeline.h"
#include "services/data_server/rpc/data_metrics.h"
#include "services/data_server/rpc/scheduler_loop.h"

namespace adamant::data_server {

/// The job that a stream's first header is for; "0" of what is no hello.
std::string JobOfWork(std::string_view header);

/// Serves one stream of "/adamant.v1.DataServer/Work" until it ends.
/// Threads: any; blocks, and starts one that writes.
/// Errors: InvalidArgument for a worker that breaks the protocol; PermissionDenied for one whose
/// hello is not that of its certificate; Unavailable where `members` has yet to hear of it (it
/// comes again); those of the stream.
absl::Status ServeWork(rpc::FrameStream& stream,
                       const JobAttempt& job,
                       const service::MemberGenerations& members,
                       SchedulerLoop& loop,
                       BatchPipeline& pipeline,
                       const DataMetrics& metrics);

}  // namespace adamant::data_server
