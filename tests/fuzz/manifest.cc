// A job's manifest.

#include <filesystem>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/check.h"
#include "services/common/base/system/files.h"
#include "services/common/job/job.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20;

job::ParseResult Parse(std::string_view text) {
  return job::ParseJob(text, "/folder/job.yaml", job::DataReading::kNone);
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& entry :
       std::filesystem::directory_iterator(ADAMANT_SOURCE_DIR "/tests/manifests/good")) {
    auto text = ReadFile(entry.path(), kMaxBytes);
    if (text.ok() && Parse(*text).job != nullptr) {
      seeds.push_back(*std::move(text));
    }
  }
  return seeds;
}

bool Try(std::string_view input) {
  const job::ParseResult result = Parse(input);
  ADAMANT_CHECK((result.job == nullptr) != result.problems.empty(), "a job or problems");
  if (result.job == nullptr) {
    return false;
  }
  job::NetOf(*result.job);
  const std::string written = job::ToYaml(*result.job);
  const job::ParseResult again = Parse(written);
  ADAMANT_CHECK(again.job != nullptr && job::ToYaml(*again.job) == written,
                "a job is written otherwise than it was read");
  return true;
}

}  // namespace adamant::fuzz
