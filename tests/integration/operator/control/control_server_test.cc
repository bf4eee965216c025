#include "operator/control/control_server.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/door.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::control {
namespace {

using controller::Event;
using Stream = grpc::ClientReaderWriter<v1::MemberMessage, v1::ControllerMessage>;

// What a job's controller hears.
class Heard {
 public:
  ControlServer::Sink Sink() {
    return [this](Event event) {
      const MutexLock lock(mutex_);
      events_.push_back(std::move(event));
      changed_.NotifyAll();
    };
  }

  Event Next() {
    const MutexLock lock(mutex_);
    while (events_.empty()) {
      changed_.Wait(mutex_);
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  bool empty() {
    const MutexLock lock(mutex_);
    return events_.empty();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
};

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    server_ = *StartControlServer("127.0.0.1:0");
    Add("", "served", heard_);
    stub_ = NewStub();
  }

  std::unique_ptr<v1::Controller::Stub> NewStub() {
    return v1::Controller::NewStub(rpc::NewChannel(server_->address(), 1 << 20));
  }

  void Add(const std::string& job, const std::string& name, Heard& heard) {
    v1::TrainingJob spec;
    spec.mutable_metadata()->set_name(name);
    server_->AddJob(job, StreamSecurity::kPlain, spec, "/data", heard.Sink());
  }

  std::unique_ptr<Stream> Join(grpc::ClientContext& context, const std::string& job = "") {
    return Join(context, job, *stub_);
  }
  static std::unique_ptr<Stream> Join(grpc::ClientContext& context,
                                      const std::string& job,
                                      v1::Controller::Stub& stub) {
    context.AddMetadata(rpc::kJobKey, job);
    std::unique_ptr<Stream> stream = stub.Attend(&context);
    v1::MemberMessage join;
    join.mutable_join()->set_role(v1::WORKER);
    join.mutable_join()->set_uid("me");
    join.mutable_join()->set_job(job);
    stream->Write(join);
    return stream;
  }

  Event NextEvent() { return heard_.Next(); }

  Heard heard_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<v1::Controller::Stub> stub_;
};

TEST_F(ControlServerTest, MessagesBecomeEventsAndAnswersReachTheirStream) {
  grpc::ClientContext context;
  const auto stream = Join(context);
  const auto received = std::get<controller::Received>(NextEvent());
  EXPECT_EQ(std::get<controller::Join>(received.message).uid, "me");
  EXPECT_EQ(std::get<controller::Join>(received.message).peer, "127.0.0.1");
  server_->Send({.connection = received.connection,
                 .message = controller::Welcome{.term = 3, .incarnation = 2, .job_uid = 7}});
  v1::ControllerMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().term(), 3u);
  EXPECT_EQ(answer.welcome().job().metadata().name(), "served");
  EXPECT_EQ(answer.welcome().data_root(), "/data");
}

TEST_F(ControlServerTest, AWelcomeCountsTheScheduleInExamplesOnceTheirNumberIsKnown) {
  v1::TrainingJob spec;
  spec.mutable_spec()->mutable_optimiser()->mutable_schedule()->mutable_warm_up()->set_epochs(0.5);
  server_->AddJob("epochs", StreamSecurity::kPlain, spec, "/data", heard_.Sink());
  grpc::ClientContext context;
  const auto stream = Join(context, "epochs");
  const auto received = std::get<controller::Received>(NextEvent());
  v1::ControllerMessage answer;
  server_->Send({.connection = received.connection, .message = controller::Welcome{}});
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.welcome().job().spec().optimiser().schedule().warm_up().has_epochs());
  server_->Send({.connection = received.connection,
                 .message = controller::Welcome{.training_examples = 60000}});
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().job().spec().optimiser().schedule().warm_up().examples(), 30000);
}

TEST_F(ControlServerTest, AScheduleGoesOverTheEpochsThatTheWelcomeNames) {
  v1::TrainingJob spec;
  spec.mutable_spec()->mutable_run_policy()->set_epochs(20);
  spec.mutable_spec()->mutable_optimiser()->mutable_schedule()->set_kind(v1::Schedule::KIND_LINEAR);
  server_->AddJob("longer", StreamSecurity::kPlain, spec, "/data", heard_.Sink());
  grpc::ClientContext context;
  const auto stream = Join(context, "longer");
  const auto received = std::get<controller::Received>(NextEvent());
  v1::ControllerMessage answer;
  server_->Send({.connection = received.connection,
                 .message = controller::Welcome{.training_examples = 1000, .schedule_epochs = 10}});
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().job().spec().optimiser().schedule().over().examples(), 10'000);
  EXPECT_EQ(answer.welcome().job().spec().run_policy().epochs(), 20);
}

TEST_F(ControlServerTest, AWelcomeHasTheRatesOfTheAttempt) {
  v1::TrainingJob spec;
  spec.mutable_spec()->mutable_optimiser()->set_rate(0.08);
  v1::LayerOptimiser& own = *spec.mutable_spec()->mutable_optimiser()->add_layers();
  own.set_layer("conv1");
  own.set_rate(0.04);
  server_->AddJob("rates", StreamSecurity::kPlain, spec, "/data", heard_.Sink());
  grpc::ClientContext context;
  const auto stream = Join(context, "rates");
  const auto received = std::get<controller::Received>(NextEvent());
  v1::ControllerMessage answer;
  server_->Send({.connection = received.connection,
                 .message = controller::Welcome{
                     .rate_factor = 0.25, .layer_factors = {{"conv1", 0.5}}, .attempt = 3}});
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().attempt(), 3u);
  EXPECT_DOUBLE_EQ(answer.welcome().job().spec().optimiser().rate(), 0.02);
  EXPECT_DOUBLE_EQ(answer.welcome().job().spec().optimiser().layers(0).rate(), 0.02);
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
  server_->SetReport("", report);
  grpc::ClientContext context;
  v1::JobStatus status;
  ASSERT_TRUE(stub_->GetStatus(&context, {}, &status).ok());
  EXPECT_EQ(status.name(), "served");
  EXPECT_EQ(status.phase(), "Running");
}

TEST_F(ControlServerTest, EachJobHearsItsOwnMembers) {
  Heard other;
  Add("uid-2", "other", other);
  grpc::ClientContext context;
  const auto stream = Join(context, "uid-2");
  const auto received = std::get<controller::Received>(other.Next());
  server_->Send({.connection = received.connection, .message = controller::Welcome{.term = 1}});
  v1::ControllerMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.welcome().job().metadata().name(), "other");
  EXPECT_TRUE(heard_.empty());
  server_->RemoveJob("uid-2");
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(std::holds_alternative<controller::Disconnected>(other.Next()));
}

TEST_F(ControlServerTest, MembersOfUnknownJobsAreToldToTryAgain) {
  grpc::ClientContext context;
  const auto stream = Join(context, "uid-3");
  v1::ControllerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "this controller does not lead job \"uid-3\"");
  grpc::ClientContext asking;
  v1::GetStatusRequest request;
  request.set_job("uid-3");
  v1::JobStatus reply;
  EXPECT_EQ(stub_->GetStatus(&asking, request, &reply).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(ControlServerTest, WhoDoesNotJoinFirstIsRefused) {
  grpc::ClientContext context;
  const auto stream = stub_->Attend(&context);
  v1::MemberMessage message;
  message.mutable_leaving();
  stream->Write(message);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlServerTest, ManyStreamsAtOnceKeepTheirOrder) {
  constexpr int kStreams = 50;
  constexpr int kMessages = 20;
  std::vector<std::jthread> members;
  for (int i = 0; i < kStreams; ++i) {
    members.emplace_back([this] {
      const auto stub = NewStub();
      grpc::ClientContext context;
      const auto stream = Join(context, "", *stub);
      for (int epoch = 1; epoch <= kMessages; ++epoch) {
        v1::MemberMessage message;
        message.mutable_epoch_ended()->set_epoch(static_cast<std::uint64_t>(epoch));
        stream->Write(message);
      }
      stream->WritesDone();
      EXPECT_TRUE(stream->Finish().ok());
    });
  }
  std::map<controller::ConnectionId, std::uint64_t> last;
  for (int ended = 0; ended < kStreams;) {
    const Event event = NextEvent();
    if (const auto* gone = std::get_if<controller::Disconnected>(&event)) {
      EXPECT_EQ(last[gone->connection], kMessages);
      ++ended;
    } else {
      const auto& received = std::get<controller::Received>(event);
      if (const auto* epoch = std::get_if<controller::EpochEnded>(&received.message)) {
        EXPECT_EQ(epoch->epoch, ++last[received.connection]);
      }
    }
  }
}

TEST_F(ControlServerTest, AHelloOfMoreThanItNeedsEndsTheStream) {
  grpc::ClientContext context;
  context.AddMetadata(rpc::kJobKey, "");
  const auto stream = stub_->Attend(&context);
  v1::MemberMessage message;
  message.mutable_join()->set_uid(std::string(2000, 'x'));
  stream->Write(message);
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "join of 2006 bytes; it has at most 1024");
  EXPECT_TRUE(heard_.empty());
}

TEST_F(ControlServerTest, AMessageOfMoreThanItsKindNeedsEndsTheStream) {
  grpc::ClientContext context;
  const auto stream = Join(context);
  NextEvent();
  v1::MemberMessage message;
  message.mutable_failure()->set_message(std::string(2 << 20, 'x'));
  stream->Write(message);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(std::holds_alternative<controller::Disconnected>(NextEvent()));
}

TEST_F(ControlServerTest, WhoSaysNoHelloIsSentAway) {
  grpc::ClientContext context;
  context.AddMetadata(rpc::kJobKey, "");
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stream = stub_->Attend(&context);
  v1::ControllerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ControlServerTest, ProgramsThatNameNoJobBeforehandAreLetInOneAtATime) {
  const std::string job = "welcoming";
  server_->AddJob(job, StreamSecurity::kPlain, {}, "/data", [this](const Event& event) {
    if (const auto* received = std::get_if<controller::Received>(&event)) {
      server_->Send({.connection = received->connection, .message = controller::Welcome{}});
    }
  });
  const auto is_welcomed = [&](Stream& stream) {
    v1::MemberMessage join;
    join.mutable_join()->set_role(v1::WORKER);
    join.mutable_join()->set_job(job);
    v1::ControllerMessage answer;
    return stream.Write(join) && stream.Read(&answer) && answer.has_welcome();
  };
  // Which of several the server sees first is not known, nor when it sees that one has gone: who
  // is sent away tries again.
  std::deque<grpc::ClientContext> contexts;
  const auto come = [&] { return stub_->Attend(&contexts.emplace_back()); };
  for (std::unique_ptr<Stream> silent = come();; silent = come()) {
    grpc::Status second;
    while (second.error_code() != grpc::StatusCode::UNAVAILABLE) {
      grpc::ClientContext other;
      other.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
      second = stub_->Attend(&other)->Finish();
    }
    EXPECT_EQ(second.error_message(), "too many streams have not said hello; try again");
    if (is_welcomed(*silent)) {
      break;
    }
  }
  while (!is_welcomed(*come())) {  // the first has given its place back
  }
}

// Whether `stream` still takes what its job's controller sends.
bool Hears(ControlServer& server, controller::ConnectionId connection, Stream& stream) {
  server.Send({.connection = connection, .message = controller::Welcome{}});
  v1::ControllerMessage answer;
  return stream.Read(&answer) && answer.has_welcome();
}

TEST_F(ControlServerTest,
       MembersOutliveTheTimeOfStrangersWhetherTheyNameTheirJobBeforeOrInTheirHello) {
  grpc::ClientContext context;
  const auto named = Join(context);
  const auto first = std::get<controller::Received>(NextEvent());
  const auto stub = NewStub();  // a connection of its own
  grpc::ClientContext nameless;
  const auto unnamed = stub->Attend(&nameless);
  v1::MemberMessage join;
  join.mutable_join()->set_role(v1::WORKER);
  join.mutable_join()->set_uid("of an earlier state");
  unnamed->Write(join);
  const auto second = std::get<controller::Received>(NextEvent());
  std::this_thread::sleep_for(rpc::Door::Limits().most_time + std::chrono::seconds(1));
  EXPECT_TRUE(Hears(*server_, first.connection, *named));
  EXPECT_TRUE(Hears(*server_, second.connection, *unnamed));
}

TEST_F(ControlServerTest, ConnectionsThatNameNoJobOfItsAreCut) {
  const auto stub = NewStub();
  for (const auto begin = std::chrono::steady_clock::now();;) {
    grpc::ClientContext context;
    v1::GetTermRequest request;
    request.set_job("of another");
    v1::Term reply;
    const grpc::Status status = stub->GetTerm(&context, request, &reply);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    if (status.error_message().find("does not lead") == std::string::npos) {
      break;  // the connection was closed
    }
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  }
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
}  // namespace adamant::control
