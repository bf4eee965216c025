#include "operator/local/control_server.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "operator/local/event_queue.h"
#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/rpc/channel.h"

namespace adamant::local {
namespace {

using controller::Event;
using Stream = grpc::ClientReaderWriter<v1::MemberMessage, v1::ControllerMessage>;

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    v1::TrainingJob job;
    job.mutable_metadata()->set_name("served");
    server_ = *StartControlServer("127.0.0.1:0", job, "/data", events_);
    stub_ = v1::Controller::NewStub(rpc::NewChannel(server_->address(), 1 << 20));
  }

  std::unique_ptr<Stream> Join(grpc::ClientContext& context) {
    std::unique_ptr<Stream> stream = stub_->Attend(&context);
    v1::MemberMessage join;
    join.mutable_join()->set_role(v1::WORKER);
    join.mutable_join()->set_uid("me");
    stream->Write(join);
    return stream;
  }

  // The next event, as the main loop gets it.
  Event NextEvent() {
    while (waiting_.empty()) {
      pollfd descriptor{.fd = events_.descriptor(), .events = POLLIN, .revents = 0};
      poll(&descriptor, 1, 10'000);
      waiting_ = events_.TakeAll();
    }
    Event event = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return event;
  }

  EventQueue events_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<v1::Controller::Stub> stub_;
  std::vector<Event> waiting_;
};

TEST_F(ControlServerTest, MessagesBecomeEventsAndAnswersReachTheirStream) {
  grpc::ClientContext context;
  const auto stream = Join(context);
  const auto received = std::get<controller::Received>(NextEvent());
  EXPECT_EQ(std::get<controller::Join>(received.message).uid, "me");
  server_->Send({.connection = received.connection,
                 .message = controller::Welcome{.term = 3, .incarnation = 2, .job_uid = 7}});
  v1::ControllerMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().term(), 3u);
  EXPECT_EQ(answer.welcome().job().metadata().name(), "served");
  EXPECT_EQ(answer.welcome().data_root(), "/data");
}

TEST_F(ControlServerTest, ABrokenStreamIsTold) {
  grpc::ClientContext context;
  const auto stream = Join(context);
  const auto received = std::get<controller::Received>(NextEvent());
  context.TryCancel();
  EXPECT_EQ(std::get<controller::Disconnected>(NextEvent()).connection, received.connection);
  server_->Send({.connection = received.connection, .message = controller::Stop{""}});  // no effect
}

TEST_F(ControlServerTest, AClosedStreamEndsAfterWhatWasSent) {
  grpc::ClientContext context;
  const auto stream = Join(context);
  const auto received = std::get<controller::Received>(NextEvent());
  server_->Send({.connection = received.connection, .message = controller::Refused{"no"}});
  server_->Close(received.connection);
  v1::ControllerMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.refused().reason(), "no");
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(std::holds_alternative<controller::Disconnected>(NextEvent()));
}

TEST_F(ControlServerTest, StatusIsTheLatestReport) {
  controller::JobReport report;
  report.name = "served";
  report.phase = controller::Phase::kRunning;
  server_->SetReport(report);
  grpc::ClientContext context;
  v1::JobStatus status;
  ASSERT_TRUE(stub_->GetStatus(&context, {}, &status).ok());
  EXPECT_EQ(status.name(), "served");
  EXPECT_EQ(status.phase(), "Running");
}

TEST_F(ControlServerTest, StopEndsStreamsThatAreOpen) {
  grpc::ClientContext context;
  const auto stream = Join(context);
  NextEvent();
  server_->Stop();
  v1::ControllerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
}

}  // namespace
}  // namespace adamant::local
