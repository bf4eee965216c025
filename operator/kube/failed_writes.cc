#include "operator/kube/failed_writes.h"

#include <algorithm>
#include <cctype>

#include "operator/kube/client/api_status.h"

namespace adamant::kube {
namespace {

constexpr std::size_t kMostTold = 64;  // of a job whose objects are refused in ever new words

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string FailedWrites::Failure::Reason() const {
  std::string verb = what.substr(0, what.find(' '));
  if (!verb.empty()) {
    verb.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(verb.front())));
  }
  return "Failed" + verb;
}

void FailedWrites::Note(const std::string& what, const absl::Status& status, Clock::TimePoint now) {
  noted_.insert(what);
  if (status.ok()) {
    failing_.erase(what);
  } else if (IsAnswer(status)) {
    Record& record = failing_.try_emplace(what, Record{.why = {}, .since = now}).first->second;
    record.why = WordsOf(status);
    record.of_pass = in_pass_;
  }
}

void FailedWrites::BeginPass() {
  in_pass_ = true;
  noted_.clear();
}

void FailedWrites::EndPass(bool complete) {
  in_pass_ = false;
  if (complete) {
    std::erase_if(failing_, [this](const auto& entry) {
      return entry.second.of_pass && !noted_.contains(entry.first);
    });
  }
  if (failing_.empty()) {
    told_.clear();
  }
}

std::vector<FailedWrites::Failure> FailedWrites::Lasting(Clock::TimePoint now) const {
  std::vector<Failure> lasting;
  for (const auto& [what, record] : failing_) {
    if (now - record.since >= kPatience) {
      lasting.push_back({.what = what, .why = record.why});
    }
  }
  return lasting;
}

bool FailedWrites::IsNews(const Failure& failure) {
  std::string text = failure.Text();
  std::erase_if(text, IsDigit);
  return told_.size() < kMostTold && told_.insert(std::move(text)).second;
}

}  // namespace adamant::kube
