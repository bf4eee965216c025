#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "tests/conformance/frame_stream_suite.h"
#include "tests/fakes/in_memory_frame_stream.h"

namespace adamant::conformance {
namespace {

class InMemoryTransport final : public FrameTransport {
 public:
  ~InMemoryTransport() override { InMemoryTransport::StopServer(); }

  void Serve(rpc::FrameHandler handler, std::uint64_t max_message_bytes) override {
    handler_ = std::move(handler);
    options_.max_message_bytes = max_message_bytes;
  }

  std::unique_ptr<rpc::FrameStream> Connect() override { return Open()->TakeClient(); }

  void SendRaw(const std::string& message) override { Open()->SendRaw(message); }

  void StopServer() override {
    std::vector<Stream> streams;
    {
      MutexLock lock(mutex_);
      streams = std::exchange(streams_, {});
    }
    for (Stream& stream : streams) {
      stream.end->Cancel();
    }
  }

 private:
  struct Stream {
    std::shared_ptr<fakes::InMemoryLink> link;
    std::shared_ptr<rpc::FrameStream> end;
    std::jthread thread;
  };

  std::shared_ptr<fakes::InMemoryLink> Open() {
    auto link = std::make_shared<fakes::InMemoryLink>(options_);
    std::shared_ptr<rpc::FrameStream> end = link->TakeServer();
    std::jthread thread([this, link, end] { link->Finish(handler_(*end)); });
    MutexLock lock(mutex_);
    streams_.push_back({link, std::move(end), std::move(thread)});
    return link;
  }

  rpc::FrameHandler handler_;
  fakes::InMemoryLinkOptions options_;
  Mutex mutex_;
  std::vector<Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

INSTANTIATE_TEST_SUITE_P(InMemory,
                         FrameStreamSuite,
                         testing::Values(FrameTransportFactory{
                             "in memory", [] { return std::make_unique<InMemoryTransport>(); }}));

}  // namespace
}  // namespace adamant::conformance
