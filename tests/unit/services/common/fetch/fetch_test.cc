#include "services/common/fetch/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "services/common/base/sha256.h"
#include "services/common/base/system/files.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/scripted_api_server.h"

namespace adamant::fetch {
namespace {

using fakes::ReceivedRequest;
using fakes::Reply;
using fakes::ScriptedApiServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const std::string kContent = std::string(50'000, 'a') + std::string(50'000, 'b');

// Waits without waiting.
class Observer final : public FetchObserver {
 public:
  bool OnProgress(const DownloadProgress& progress) override {
    last = progress;
    return !progress_stops;
  }
  bool WaitToRetry(const absl::Status& why, std::chrono::milliseconds time) override {
    reasons.emplace_back(why.message());
    waits.push_back(time);
    before_retry();
    return true;
  }

  DownloadProgress last;
  bool progress_stops = false;
  std::vector<std::string> reasons;
  std::vector<std::chrono::milliseconds> waits;
  std::function<void()> before_retry = [] {};
};

class FetchTest : public testing::Test {
 protected:
  explicit FetchTest(bool tls = false) : server_({.tls = tls}) {
    std::filesystem::create_directories(folder_);
  }
  ~FetchTest() override { std::filesystem::remove_all(folder_); }

  absl::Status Fetch(const std::string& path = "/images") {
    return FetchFile({.url = server_.url() + path, .sha256 = Sha256(kContent)},
                     target_,
                     options_,
                     clock_,
                     observer_);
  }

  void ExpectFetched() {
    EXPECT_EQ(ReadFile(target_, 1 << 20).value_or("nothing"), kContent);
    EXPECT_FALSE(std::filesystem::exists(Part()));
  }

  [[nodiscard]] std::filesystem::path Part() const { return target_.string() + ".part"; }

  // What a server with ranges answers.
  static Reply Serve(const ReceivedRequest& request) {
    const auto range = request.headers.find("range");
    if (range == request.headers.end()) {
      return Reply::Json(200, kContent);
    }
    const std::size_t first = std::stoul(range->second.substr(6));
    const std::string size = std::to_string(kContent.size());
    return Reply::Json(206,
                       kContent.substr(first),
                       {{"Content-Range",
                         "bytes " + std::to_string(first) + "-" +
                             std::to_string(kContent.size() - 1) + "/" + size}});
  }

  // The first `bytes` of the file, and then the connection ends.
  static Reply CutAfter(std::size_t bytes) {
    return Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kContent.size()) +
                      "\r\n\r\n" + kContent.substr(0, bytes))
        .Cut();
  }

  ScriptedApiServer server_;
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("adamant_fetch_" + std::to_string(getpid()));
  const std::filesystem::path target_ = folder_ / "images";
  FetchOptions options_{.max_bytes = 1'000'000};
  FakeClock clock_;
  Observer observer_;
};

TEST_F(FetchTest, AFileAppearsWholeAndIsNotFetchedAgain) {
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
  EXPECT_EQ(observer_.last.total, kContent.size());
  EXPECT_TRUE(Fetch().ok());
  EXPECT_THAT(server_.requests(), SizeIs(1));
  EXPECT_FALSE(server_.requests()[0].headers.contains("accept-encoding")) << "bytes as served";
  EXPECT_FALSE(server_.requests()[0].headers.contains("authorization"));
}

TEST_F(FetchTest, AFileOfAnotherContentIsFetchedAgain) {
  std::ofstream(target_) << "older";
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
}

TEST_F(FetchTest, ABodyThatWasCutIsResumed) {
  server_.Once("GET /images", CutAfter(60'000));
  server_.Always("GET /images", Serve);
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
  ASSERT_THAT(server_.requests(), SizeIs(2));
  EXPECT_EQ(server_.requests()[1].headers.at("range"), "bytes=60000-");
  EXPECT_THAT(observer_.reasons, ElementsAre(StartsWith(server_.url() + "/images: ")));
}

TEST_F(FetchTest, WhatAnEarlierProcessHasLeftIsResumed) {
  std::ofstream(Part()) << kContent.substr(0, 70'000);
  server_.Always("GET /images", Serve);
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
  EXPECT_EQ(server_.requests()[0].headers.at("range"), "bytes=70000-");
}

TEST_F(FetchTest, AServerWithoutRangesSendsAllAgain) {
  std::ofstream(Part()) << kContent.substr(0, 70'000);
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
}

TEST_F(FetchTest, PiecesOfTwoFilesAreFetchedAgainAsOne) {
  std::ofstream(Part()) << std::string(70'000, 'z');
  server_.Always("GET /images", Serve);
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
  EXPECT_THAT(server_.requests(), SizeIs(2));
}

TEST_F(FetchTest, MoreThanTheFileHasIsThrownAway) {
  std::ofstream(Part()) << std::string(200'000, 'z');
  server_.Once("GET /images", Reply::Json(416, ""));
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
}

TEST_F(FetchTest, AnotherSumIsRefusedWithBothSums) {
  server_.Once("GET /images", Reply::Json(200, "something else"));
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("expected SHA-256 " + Sha256(kContent)));
  EXPECT_THAT(status.message(), HasSubstr("found " + Sha256("something else") + " (14 bytes)"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_THAT(server_.requests(), SizeIs(1));
}

TEST_F(FetchTest, AFileThatIsNotThereIsNotTriedAgain) {
  const absl::Status status = Fetch("/nowhere");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), server_.url() + "/nowhere: the server answers with HTTP status 404");
  EXPECT_THAT(observer_.waits, IsEmpty());
}

TEST_F(FetchTest, AServerThatIsNotWellIsAskedAgainWhenItSaysSo) {
  server_.Once("GET /images", Reply::Json(503, "", {{"Retry-After", "120"}}));
  server_.Once("GET /images", Reply::Json(429, "", {{"Retry-After", "9223372036854775"}}));
  server_.Once("GET /images", Reply::Json(500, ""));
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ASSERT_THAT(observer_.waits, SizeIs(3));
  EXPECT_EQ(observer_.waits[0], std::chrono::seconds(120));
  EXPECT_EQ(observer_.waits[1], std::chrono::minutes(5)) << "there is a limit to patience";
  EXPECT_LE(observer_.waits[2], options_.backoff.max);
}

TEST_F(FetchTest, AServerThatStaysAwayIsGivenUp) {
  server_.Refuse(true);
  options_.tries = 3;
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(observer_.waits, SizeIs(2));
}

TEST_F(FetchTest, TriesThatBringSomethingDoNotCount) {
  options_.tries = 2;
  for (std::size_t bytes = 10'000; bytes < 60'000; bytes += 10'000) {
    server_.Once("GET /images", CutAfter(bytes));  // of a server without ranges
  }
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
}

TEST_F(FetchTest, ALargerFileThanThereIsRoomForIsRefusedBeforeItIsFetched) {
  options_.max_bytes = 1000;
  server_.Once("GET /images", Reply::Json(200, kContent));
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the file has 100000 bytes, and there is room for 1000"));
}

TEST_F(FetchTest, AFileOfUnknownSizeIsCutWhereThereIsNoRoom) {
  options_.max_bytes = 1000;
  server_.Once("GET /images", Reply::Stream(200).Text(kContent));
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("more than"));
  EXPECT_LE(std::filesystem::file_size(Part()), 1000u);
}

TEST_F(FetchTest, ABodyShorterThanAnnouncedIsNotTheFile) {
  options_.tries = 1;
  server_.Once("GET /images",
               Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + kContent).Cut());
  EXPECT_TRUE(absl::IsUnavailable(Fetch()));
  EXPECT_FALSE(std::filesystem::exists(target_));
}

TEST_F(FetchTest, RedirectionsAreFollowedUpToALimit) {
  server_.Once("GET /images", Reply::Json(302, "", {{"Location", "/other"}}));
  server_.Once("GET /other", Reply::Json(307, "", {{"Location", server_.url() + "/third"}}));
  server_.Once("GET /third", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
  server_.Always("GET /round", Reply::Json(302, "", {{"Location", "/round"}}));
  std::filesystem::remove(target_);
  const absl::Status status = Fetch("/round");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("more than 5 redirections"));
}

TEST_F(FetchTest, ARedirectionToAnythingButTheWebIsRefused) {
  server_.Once("GET /images", Reply::Json(302, "", {{"Location", "file:///etc/passwd"}}));
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST_F(FetchTest, AFetchEndsWhenItIsToldTo) {
  observer_.progress_stops = true;
  server_.Once("GET /images", Reply::Stream(200).Text(kContent).Silence());
  EXPECT_TRUE(absl::IsCancelled(Fetch()));
  EXPECT_FALSE(std::filesystem::exists(target_));
}

TEST_F(FetchTest, AServerThatFallsSilentIsAskedAgain) {
  options_.stall_timeout = std::chrono::seconds(1);
  server_.Once("GET /images",
               Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc").Silence());
  server_.Always("GET /images", Serve);
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
}

class TlsFetchTest : public FetchTest {
 protected:
  TlsFetchTest() : FetchTest(/*tls=*/true) {
    std::ofstream(folder_ / "ca.pem") << server_.authority().certificate();
  }
  void Trust() { options_.authorities = folder_ / "ca.pem"; }
};

TEST_F(TlsFetchTest, AServerOfATrustedAuthorityIsUsed) {
  Trust();
  server_.Once("GET /images", Reply::Json(200, kContent));
  ASSERT_TRUE(Fetch().ok());
  ExpectFetched();
}

TEST_F(TlsFetchTest, AnyOtherServerIsRefused) {
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the server's certificate is not trusted"));
}

TEST_F(TlsFetchTest, ACertificateOfAnotherHostIsRefused) {
  Trust();
  server_.UseCertificate(server_.authority().Issue({.names = {"example.org"}}));
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST_F(TlsFetchTest, ARedirectionThatGivesUpEncryptionIsRefused) {
  Trust();
  ScriptedApiServer clear({.tls = false});
  clear.Always("GET ", Reply::Json(200, kContent));
  server_.Once("GET /images", Reply::Json(302, "", {{"Location", clear.url() + "/images"}}));
  const absl::Status status = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(clear.requests(), IsEmpty());
}

TEST(FetchProgressTest, IsToldInWords) {
  EXPECT_EQ(ToString({.bytes = 4'500'000,
                      .total = 9'912'422,
                      .bytes_per_second = 3.1e6,
                      .left = std::chrono::seconds(2)}),
            "45 % of 9.9 MB, 3.1 MB/s, 2 s left");
  EXPECT_EQ(ToString({.bytes = 20'000'000'000, .bytes_per_second = 150e6}), "20 GB, 150 MB/s");
}

}  // namespace
}  // namespace adamant::fetch
