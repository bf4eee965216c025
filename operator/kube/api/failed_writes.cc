#include "operator/kube/api/failed_writes.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/time.h"

namespace adamant::kube {
namespace {

constexpr char kNoAnswer[] = "no answer from the API server since ";
constexpr char kWhoHangs[] = ", though it answers other requests: an admission webhook may hang";
constexpr std::size_t kMostTold = 64;  // of a job whose objects are refused in ever new words

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string FailedWrites::Failure::Reason() const {
  std::string verb = what.substr(0, what.find(' '));
  if (!verb.empty()) {
    verb.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(verb.front())));
  }
  return (unanswered ? "Unanswered" : "Failed") + verb;
}

void FailedWrites::Note(const std::string& what, const absl::Status& status, const Clock& clock) {
  const Clock::TimePoint now = clock.Now();
  noted_.insert(what);
  if (status.ok() || (IsAnswer(status) && !absl::IsFailedPrecondition(status))) {
    NoteAnswer(now);  // a failed precondition is one that this operator has found
  }
  if (status.ok()) {
    failing_.erase(what);
    return;
  }
  if (absl::IsCancelled(status)) {
    return;
  }
  Record& record = failing_.try_emplace(what, Record{.since = now}).first->second;
  record.of_pass = in_pass_;
  if (IsAnswer(status)) {
    record.why = WordsOf(status);
    record.silence.reset();
  } else if (record.silence) {
    record.silence->last = now;
  } else {
    record.silence = {.since = now, .last = now, .begin = FormatTime(clock.WallNow())};
  }
}

// Of what had no answer while the API was away nothing is known: from now on it counts.
void FailedWrites::NoteAnswer(Clock::TimePoint now) {
  for (auto& [what, record] : failing_) {
    if (record.silence && record.silence->since > last_answer_) {
      record.silence->since = now;
    }
  }
  last_answer_ = now;
}

bool FailedWrites::NeedsAnswer() const {
  return std::ranges::any_of(failing_, [this](const auto& entry) {
    return entry.second.silence && entry.second.silence->since > last_answer_;
  });
}

Clock::TimePoint FailedWrites::LastSilence(const std::string& what) const {
  const auto found = failing_.find(what);
  return found != failing_.end() && found->second.silence ? found->second.silence->last
                                                          : Clock::TimePoint::min();
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
  std::vector<Failure> unanswered;
  for (const auto& [what, record] : failing_) {
    const auto& silence = record.silence;
    if (silence && silence->since <= last_answer_ && now - silence->since >= kTimeout) {
      unanswered.push_back(
          {.what = what, .why = kNoAnswer + silence->begin + kWhoHangs, .unanswered = true});
    } else if (!record.why.empty() && now - record.since >= kTimeout) {
      lasting.push_back({.what = what, .why = record.why});
    }
  }
  std::ranges::move(unanswered, std::back_inserter(lasting));
  return lasting;
}

bool FailedWrites::IsNews(const Failure& failure) {
  std::string text = failure.Text();
  std::erase_if(text, IsDigit);
  return told_.size() < kMostTold && told_.insert(std::move(text)).second;
}

}  // namespace adamant::kube
