#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/cli/kubectl/output/fetch_output.h"
#include "operator/cli/kubectl/output/output_index.h"
#include "operator/cli/kubectl/output/output_pod.h"
#include "operator/cli/kubectl/output/output_server.h"
#include "services/common/base/system/files.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

namespace adamant::kubectl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const OutputFile kFile{.name = "model.onnx", .size = 3, .pieces = {0xfedcba9876543210}};

TEST(OutputIndexTest, ComesBackAsItWas) {
  const auto files = DecodeIndex(EncodeIndex({kFile}));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(kFile));
}

TEST(OutputIndexTest, WhatCannotBeIsRefused) {
  for (const char* text :
       {"",
        "[]",
        "{}",
        R"({"files": 1})",
        R"({"files": [{}]})",
        R"({"files": [{"name": "../etc", "size": 0, "pieces": []}]})",
        R"({"files": [{"name": ".hidden", "size": 0, "pieces": []}]})",
        R"({"files": [{"name": "a", "size": -1, "pieces": []}]})",
        R"({"files": [{"name": "a", "size": 9223372036854775807, "pieces": []}]})",
        R"({"files": [{"name": "a", "size": 3, "pieces": []}]})",
        R"({"files": [{"name": "a", "size": 3, "pieces": ["xyz"]}]})",
        R"({"files": [{"name": "a", "size": 3, "pieces": ["0", "0"]}]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeIndex(text).status())) << text;
  }
}

TEST(OutputIndexTest, PiecesCoverAFile) {
  EXPECT_EQ(PiecesOf(0), 0u);
  EXPECT_EQ(PiecesOf(1), 1u);
  EXPECT_EQ(PiecesOf(kPieceBytes), 1u);
  EXPECT_EQ(PiecesOf(kPieceBytes + 1), 2u);
}

/// A folder with the output of a job: a model of two pieces.
class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "metrics.csv") << "epoch\n1\n";
    std::ofstream(folder_ / "secret") << "not to be served";
    model_.resize(kPieceBytes + 1000);
    for (std::size_t i = 0; i < model_.size(); ++i) {
      model_[i] = static_cast<char>(i * 7 + i / 4096);
    }
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << model_;
    auto server = OutputServer::Start({.listen = "127.0.0.1:0",
                                       .key = "k3y",
                                       .folder = folder_,
                                       .names = {"metrics.csv", "model.onnx", "not-there"}});
    server_ = *std::move(server);
  }
  ~OutputTest() override { std::filesystem::remove_all(folder_.parent_path()); }

  static std::filesystem::path NewFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "output_XXXXXX").string();
    return std::filesystem::path(mkdtemp(name.data())) / "served";
  }

  const std::filesystem::path folder_ = NewFolder();
  std::string model_;
  std::unique_ptr<OutputServer> server_;
};

http::Request RequestOf(std::string_view target) {
  constexpr std::string_view kPiece = "?piece=";
  const std::size_t end = target.find(kPiece);
  http::Request request{.path = target.substr(0, end)};
  if (end != std::string_view::npos) {
    request.arguments.emplace("piece", target.substr(end + kPiece.size()));
  }
  return request;
}

TEST_F(OutputTest, OnlyWhoKnowsTheKeyGetsOnlyWhatIsServed) {
  for (const char* target : {"/",
                             "/index",
                             "/k3/index",
                             "/k3yy/index",
                             "/k3y",
                             "/k3y/",
                             "/k3y/secret?piece=0",
                             "/k3y/../secret?piece=0",
                             "/k3y/not-there?piece=0",
                             "/k3y/model.onnx",
                             "/k3y/model.onnx?piece=",
                             "/k3y/model.onnx?piece=2",
                             "/k3y/model.onnx?piece=-1",
                             "/k3y/model.onnx?piece=99999999999999999999",
                             ""}) {
    EXPECT_EQ(server_->Respond(RequestOf(target)).code, 404) << target;
  }
  EXPECT_THAT(server_->Respond({.path = "/k3y/index"}).body, HasSubstr("\"model.onnx\""));
  EXPECT_EQ(server_->Respond(RequestOf("/k3y/metrics.csv?piece=0")).body, "epoch\n1\n");
}

TEST_F(OutputTest, EndsWhenNobodyWhoKnowsTheKeyAsks) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kIdle{200};
  const auto begin = Clock::now();
  const std::jthread others([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      server_->Respond({.path = "/index"});
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  server_->Respond({.path = "/k3y/index"});
  server_->ServeUntilIdle(kIdle);
  EXPECT_GE(Clock::now() - begin, kIdle);
}

TEST_F(OutputTest, AnAddressThatIsNoneIsRefused) {
  for (const char* address : {"", "here", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x"}) {
    EXPECT_FALSE(
        OutputServer::Start({.listen = address, .key = "k", .folder = folder_, .names = {}}).ok())
        << address;
  }
}

/// A cluster in memory whose pods serve: requests to the proxy go to an OutputServer.
class ServingApi final : public kube::Transport {
 public:
  explicit ServingApi(kube::MemoryApiServer& api) : api_(api) {}

  absl::StatusOr<kube::HttpResponse> Send(const kube::HttpRequest& request,
                                          const kube::Cancellation& cancellation) override {
    const std::size_t proxy = request.target.find("/proxy/");
    if (proxy == std::string::npos) {
      auto response = api_.Send(request, cancellation);
      if (request.method == "POST" && response.ok()) {
        StartPod(Json::parse(request.body));
      }
      return response;
    }
    http::Response said =
        server->Respond(RequestOf(std::string_view(request.target).substr(proxy + 6)));
    kube::HttpResponse response{.status = said.code, .headers = {}, .body = std::move(said.body)};
    if (damaged > 0 && request.target.ends_with("piece=1")) {
      --damaged;
      response.body[0] ^= 1;
    }
    return response;
  }
  absl::StatusOr<kube::HttpResponse> Stream(
      const kube::HttpRequest& request,
      std::chrono::milliseconds idle,
      const std::function<bool(std::string_view line)>& on_line,
      const kube::Cancellation& cancellation) override {
    return api_.Stream(request, idle, on_line, cancellation);
  }

  std::filesystem::path folder;  // of the volume
  Json pod;                      // as it was asked for
  Json status = ThePod("worker", 0)["status"];
  int damaged = 0;  // pieces to come
  std::unique_ptr<OutputServer> server;

 private:
  // What the kubelet does.
  void StartPod(const Json& wanted) {
    pod = wanted;
    OutputServerOptions options{.listen = "127.0.0.1:0", .key = {}, .folder = folder, .names = {}};
    for (const std::string argument : pod["spec"]["containers"][0]["args"]) {
      if (argument.starts_with("--key=")) {
        options.key = argument.substr(6);
      } else if (argument.starts_with("--file=")) {
        options.names.push_back(argument.substr(7));
      }
    }
    server = *OutputServer::Start(options);
    Json running = wanted;
    running["status"] = status;
    const std::string path =
        "/api/v1/namespaces/training/pods/" + wanted["metadata"]["name"].get<std::string>();
    api_.Send({.method = "PUT",
               .target = path + "/status",
               .headers = {{"content-type", "application/json"}},
               .body = running.dump()},
              {})
        .IgnoreError();
  }

  kube::MemoryApiServer& api_;
};

class ExportTest : public OutputTest {
 protected:
  ExportTest() : api_(rig_.api) {
    api_.folder = folder_;
    session_.client = kube::Client(api_, rig_.clock, rig_.sleeper);
    flags_.target.job = "mnist";
    flags_.out = (folder_.parent_path() / "out").string();
    Json job = TheJob("Succeeded");
    job["status"]["outputClaim"] = "mnist-output";
    rig_.job = rig_.Put(kube::kTrainingJobs, job);
    rig_.PutOwned(
        kube::kConfigMaps,
        {{"metadata",
          {{"name", "mnist-export-7"},
           {"namespace", "training"},
           {"annotations",
            kube::ImageAnnotations({.name = "adamant:1", .pull_secrets = {"registry"}})}}}});
  }

  std::vector<Json> Pods() { return *rig_.client.List(kube::kPods, {.ns = "training"}); }
  [[nodiscard]] std::string Fetched(const std::string& name) const {
    return *ReadFile(std::filesystem::path(flags_.out) / name, 100 << 20);
  }

  Rig rig_;
  ServingApi api_;
  Session session_ = rig_.NewSession();
  ExportFlags flags_;
};

TEST_F(ExportTest, BringsTheFilesAndLeavesNoPod) {
  const auto exported = ExportOutput(session_, flags_);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(Fetched("model.onnx"), model_);
  EXPECT_EQ(Fetched("metrics.csv"), "epoch\n1\n");
  EXPECT_EQ(rig_.printed, flags_.out + "/metrics.csv\n" + flags_.out + "/model.onnx\n");
  EXPECT_TRUE(Pods().empty());
  const Json& spec = api_.pod["spec"];
  EXPECT_EQ(spec["containers"][0]["image"], "adamant:1");
  EXPECT_EQ(spec["imagePullSecrets"], Json::array({{{"name", "registry"}}}));
  EXPECT_EQ(spec["volumes"][0]["persistentVolumeClaim"],
            Json({{"claimName", "mnist-output"}, {"readOnly", true}}));
  EXPECT_EQ(spec["containers"][0]["args"][1], "--listen=$(POD_IP):8080") << "of either family";
  EXPECT_EQ(spec["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(api_.pod["metadata"]["ownerReferences"][0]["uid"], kube::UidOf(rig_.job));
}

TEST_F(ExportTest, ADamagedPieceIsFetchedAgain) {
  api_.damaged = 2;
  ASSERT_TRUE(ExportOutput(session_, flags_).ok());
  EXPECT_EQ(Fetched("model.onnx"), model_);
}

TEST_F(ExportTest, APieceThatStaysDamagedLeavesNoFileAndNoPod) {
  api_.damaged = 1000;
  const auto exported = ExportOutput(session_, flags_);
  EXPECT_TRUE(absl::IsDataLoss(exported.status())) << exported.status();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(flags_.out) / "model.onnx"));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(flags_.out) / ".model.onnx.partial"));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(ExportTest, LinksStayAndWhatTheyNameIsWritten) {
  const std::filesystem::path elsewhere = folder_.parent_path() / "elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::create_directories(flags_.out);
  std::ofstream(elsewhere / "old.onnx") << "old";
  const std::filesystem::path out = flags_.out;
  std::filesystem::create_symlink("../elsewhere/old.onnx", out / "model.onnx");
  std::filesystem::create_symlink(elsewhere / "new.csv", out / "metrics.csv");
  ASSERT_TRUE(ExportOutput(session_, flags_).ok());
  for (const auto& [link, file] :
       {std::pair{"model.onnx", "old.onnx"}, {"metrics.csv", "new.csv"}}) {
    EXPECT_TRUE(std::filesystem::is_symlink(out / link));
    EXPECT_TRUE(std::filesystem::is_regular_file(elsewhere / file));
  }
  EXPECT_EQ(Fetched("model.onnx"), model_);
  EXPECT_EQ(Fetched("metrics.csv"), "epoch\n1\n");
}

TEST_F(ExportTest, WhatIsNoRegularFileIsNotReplaced) {
  const std::filesystem::path out = flags_.out;
  std::filesystem::create_directories(out);
  ASSERT_EQ(mkfifo((out / "metrics.csv").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", out / "model.onnx");
  for (const char* name : {"metrics.csv", "model.onnx"}) {
    const absl::Status status = ExportOutput(session_, flags_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr((out / name).string() + " is no regular file"));
    EXPECT_FALSE(std::filesystem::is_regular_file(out / name));
    std::filesystem::remove(out / name);
  }
  EXPECT_TRUE(ExportOutput(session_, flags_).ok());
}

TEST_F(ExportTest, ASingleFormatIsAskedFor) {
  flags_.format = "safetensors";
  ASSERT_TRUE(ExportOutput(session_, flags_).ok());
  EXPECT_THAT(api_.pod["spec"]["containers"][0]["args"].dump(),
              testing::Not(HasSubstr("model.onnx")));
}

TEST_F(ExportTest, APodThatDoesNotStartIsExplainedAndRemoved) {
  api_.status = Waiting(ThePod("worker", 0), "ErrImagePull", "no such manifest")["status"];
  const auto exported = ExportOutput(session_, flags_);
  EXPECT_THAT(std::string(exported.status().message()),
              HasSubstr("does not get its image adamant:1 (ErrImagePull): no such manifest; bring "
                        "the image"));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(ExportTest, TheUserMayStopIt) {
  api_.status["phase"] = "Pending";
  session_.cancellation.Cancel();
  EXPECT_TRUE(absl::IsCancelled(ExportOutput(session_, flags_).status()));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(ExportTest, AnEmptyVolumeIsSaidToBeEmpty) {
  std::filesystem::remove(folder_ / "metrics.csv");
  std::filesystem::remove(folder_ / "model.onnx");
  EXPECT_THAT(std::string(ExportOutput(session_, flags_).status().message()),
              HasSubstr("claim mnist-output, holds none of the job's files"));
}

TEST(ExportOfARunningJobTest, IsRefusedWithWhatToWaitFor) {
  Rig rig;
  rig.PutJob("Running");
  Session session = rig.NewSession();
  ExportFlags flags;
  flags.target.job = "mnist";
  const auto exported = ExportOutput(session, flags);
  EXPECT_EQ(std::string(exported.status().message()),
            "mnist is Running: a job writes its model when it succeeds; `kubectl adamant status "
            "--watch mnist` waits for that");
}

}  // namespace
}  // namespace adamant::kubectl
