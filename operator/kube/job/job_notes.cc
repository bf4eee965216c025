#include "operator/kube/job/job_notes.h"

#include <cctype>
#include <chrono>

#include "services/common/base/log.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::minutes kEpochEvents{1};  // between two of a kind that come with epochs
constexpr std::size_t kMostWarnings = 64;        // of the API that a job's user is told

bool IsWarning(controller::Note::Kind kind) {
  using Kind = controller::Note::Kind;
  return kind == Kind::kLost || kind == Kind::kAlarm || kind == Kind::kFailure ||
         kind == Kind::kFailover || kind == Kind::kDiverged || kind == Kind::kReleased;
}

// Of an Event: "EpochOpened" of "epoch_opened".
std::string ReasonOf(controller::Note::Kind kind) {
  std::string reason;
  bool begins = true;  // a word
  for (const char c : controller::NoteName(kind)) {
    if (c == '_' || c == '-') {
      begins = true;
      continue;
    }
    reason += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = false;
  }
  return reason;
}

// What comes with every epoch, and would be all that is heard of a job of short ones.
bool ComesWithEpochs(const controller::Note& note) {
  using Kind = controller::Note::Kind;
  return note.kind == Kind::kEpochOpened || note.kind == Kind::kEpochClosing;
}

}  // namespace

void JobNotes::Tell(const controller::Note& note) {
  if (ComesWithEpochs(note)) {
    const Clock::TimePoint now = writer_.clock().Now();
    const auto [last, first] = epochs_.try_emplace(note.kind, now);
    if (!first && now - last->second < kEpochEvents) {
      return;
    }
    last->second = now;
  }
  if (note.kind == controller::Note::Kind::kRestarting && note.member) {
    restarts_.OnRestart(note.member->role, note.reason);
  }
  if (note.kind == controller::Note::Kind::kLost && note.member) {
    const std::string text = note.text + nodes_.WhereItRan(*note.member);
    const bool disrupted = controller::IsDisruption(note.reason);
    return writer_.Record(!disrupted, disrupted ? "Disrupted" : ReasonOf(note.kind), text);
  }
  writer_.Record(IsWarning(note.kind), ReasonOf(note.kind), note.text);
}

void JobNotes::OnWarning(const std::string& text) {
  if (warnings_.size() < kMostWarnings && warnings_.insert(text).second) {
    LogWarning("the API warns", {{"job", ToString(writer_.job().key)}, {"warning", text}});
    writer_.Record(true, "ApiWarning", "the API warns: " + text);
  }
}

}  // namespace adamant::kube
