#include "services/data_server/rpc/serve_work.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/protocol/format_versions.h"
#include "services/data_server/rpc/message_codec.h"
#include "services/data_server/rpc/work_stream.h"

namespace adamant::data_server {
namespace {

absl::StatusOr<v1::WorkRequest> ReadRequest(rpc::FrameStream& stream) {
  ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, stream.Read());
  v1::WorkRequest request;
  if (!request.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InvalidArgumentError("the header of a frame is no WorkRequest");
  }
  return request;
}

// Why the Hello is refused whatever the scheduler says; "" if it is not.
std::string Refusal(const v1::WorkHello& hello, const JobAttempt& job) {
  if (hello.format_version() != protocol::kWorkFormatVersion) {
    return "this server speaks format version " + std::to_string(protocol::kWorkFormatVersion) +
           ", the worker version " + std::to_string(hello.format_version());
  }
  return WhyRefused(job, {.job_uid = hello.job_uid(), .attempt = AttemptOf(hello.attempt())});
}

// Posts what the worker sends, until the stream ends.
absl::Status Receive(rpc::FrameStream& stream,
                     WorkerId worker,
                     const std::shared_ptr<WorkStream>& work,
                     SchedulerLoop& loop) {
  while (true) {
    const absl::StatusOr<v1::WorkRequest> request = ReadRequest(stream);
    if (absl::IsOutOfRange(request.status())) {
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(request.status());
    switch (request->kind_case()) {
      case v1::WorkRequest::kAcknowledge:
        loop.Post(FromProto(worker, request->acknowledge()), work);
        break;
      case v1::WorkRequest::kHandBack:
        loop.Post(FromProto(worker, request->hand_back()), work);
        break;
      case v1::WorkRequest::kKeepAlive:
        loop.Post(KeepAlive{.worker = worker,
                            .controller_heard = request->keep_alive().controller_heard()},
                  work);
        break;
      default:
        return absl::InvalidArgumentError("a request of an unknown kind, or a second WorkHello");
    }
  }
}

}  // namespace

std::string JobOfWork(std::string_view header) {
  v1::WorkRequest request;
  request.ParseFromArray(header.data(), static_cast<int>(header.size()));
  return std::to_string(request.hello().job_uid());
}

absl::Status ServeWork(rpc::FrameStream& stream,
                       const JobAttempt& job,
                       const service::MemberGenerations& members,
                       SchedulerLoop& loop,
                       BatchPipeline& pipeline,
                       const DataMetrics& metrics) {
  ADAMANT_ASSIGN_OR_RETURN(const v1::WorkRequest first, ReadRequest(stream));
  if (!first.has_hello()) {
    return absl::InvalidArgumentError("a stream begins with a WorkHello");
  }
  const v1::WorkHello& hello = first.hello();
  const WorkerId worker{.slot = hello.worker_slot(), .incarnation = hello.worker_incarnation()};
  ADAMANT_RETURN_IF_ERROR(members.CheckHello(stream.peer(), worker.slot, worker.incarnation));
  const auto work = std::make_shared<WorkStream>(stream, pipeline, metrics);
  if (const std::string refusal = Refusal(hello, job); !refusal.empty()) {
    work->AnswerHello(refusal, {});
    work->Close();
    return work->Run();
  }
  std::thread writer([&work] {
    // A stream that cannot be written ends for its reader too.
    if (!work->Run().ok()) {
      work->Cancel();
    }
  });
  loop.Post(Hello{.worker = worker, .window = hello.window()}, work);
  absl::Status status;
  if (work->AwaitAdmission()) {
    status = Receive(stream, worker, work, loop);
  }
  loop.Post(WorkerDisconnected{.worker = worker}, work);
  work->Close();
  writer.join();
  work->Detach();  // the loop may hold it for a moment longer
  return status;
}

}  // namespace adamant::data_server
