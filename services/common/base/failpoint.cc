#include "services/common/base/failpoint.h"

#ifdef ADAMANT_FAILPOINTS

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/check.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"

namespace adamant::failpoint {
namespace {

enum class Kind : std::uint8_t { kCount, kCrash, kPause, kError };

struct Action {
  Kind kind = Kind::kCount;
  std::chrono::milliseconds pause{};
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::uint64_t skip = 0;
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
};

struct Plan {
  Action action;
  std::uint64_t passes = 0;
};

using Plans = std::map<std::string, Plan, std::less<>>;

thread_local ScopedHandler* innermost = nullptr;

absl::Status Bad(std::string_view entry, const std::string& why) {
  return absl::InvalidArgumentError("failpoint \"" + std::string(entry) + "\": " + why);
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// Takes what follows the last `mark` off `text`, as a number; `value` stays when there is no mark.
// Returns whether it was a number.
bool TakeNumber(std::string_view& text, char mark, std::uint64_t& value) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) {
    return true;
  }
  const auto number = ParseNumber(text.substr(at + 1));
  text = text.substr(0, at);
  value = number.value_or(0);
  return number.has_value();
}

// Fills in the kind and what stands in its parentheses. Returns whether `text` is an action.
bool ParseKind(std::string_view text, Action& action) {
  const std::size_t open = text.find('(');
  std::string_view argument;
  if (open != std::string_view::npos) {
    if (text.back() != ')') {
      return false;
    }
    argument = text.substr(open + 1, text.size() - open - 2);
    text = text.substr(0, open);
  }
  if (text == "pause") {
    const auto milliseconds = ParseNumber(argument);
    constexpr std::uint64_t kLongest = 3'600'000;
    action.kind = Kind::kPause;
    action.pause = std::chrono::milliseconds(milliseconds.value_or(0));
    return milliseconds.has_value() && *milliseconds <= kLongest;
  }
  if (text == "error") {
    action.kind = Kind::kError;
    if (argument == "data_loss") {
      action.code = absl::StatusCode::kDataLoss;
    } else if (argument == "resource_exhausted") {
      action.code = absl::StatusCode::kResourceExhausted;
    }
    return argument == "unavailable" || action.code != absl::StatusCode::kUnavailable ||
           open == std::string_view::npos;
  }
  action.kind = text == "crash" ? Kind::kCrash : Kind::kCount;
  return open == std::string_view::npos && (text == "crash" || text == "count");
}

absl::StatusOr<Plans> Parse(std::string_view text) {
  Plans plans;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return Bad(entry, "expected name=action");
    }
    std::string_view rest = entry.substr(equals + 1);
    Action action;
    if (!TakeNumber(rest, '@', action.skip) || !TakeNumber(rest, '*', action.count)) {
      return Bad(entry, "expected a number after * and @, the count before the skip");
    }
    if (!ParseKind(rest, action)) {
      return Bad(entry, "the actions are crash, pause(ms), error, error(code) and count");
    }
    if (!plans.emplace(entry.substr(0, equals), Plan{.action = action}).second) {
      return Bad(entry, "the name has an action already");
    }
  }
  return plans;
}

absl::Status Perform(const Action& action, std::string_view name) {
  switch (action.kind) {
    case Kind::kCrash:
      std::raise(SIGKILL);  // does not return
      break;
    case Kind::kPause:
      std::this_thread::sleep_for(action.pause);
      break;
    case Kind::kError:
      return {action.code, "failpoint " + std::string(name)};
    case Kind::kCount:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

// What this process knows of its failpoints. The one object of its kind, as a failpoint stands
// where nobody could hand it one.
class Registry {
 public:
  static Registry& Get() {
    static Registry& registry = *new Registry;  // never destroyed: threads may outlive main
    return registry;
  }

  // Passing a watched site; returns the action that is due now, if any.
  std::optional<Action> Pass(Site& site) {
    std::optional<Action> due;
    bool first = false;
    {
      MutexLock lock(mutex_);
      if (!std::exchange(site.registered_, true)) {
        sites_.push_back(&site);
      }
      site.watched_.store(IsWatched(site), std::memory_order_relaxed);
      const auto plan = plans_.find(std::string_view(site.name_));
      if (plan != plans_.end()) {
        const std::uint64_t past = plan->second.passes++;
        const Action& action = plan->second.action;
        if (past >= action.skip && past - action.skip < action.count) {
          due = action;
          first = past == action.skip;
        }
      }
    }
    if (first) {
      LogWarning("failpoint", {{"name", site.name_}});
    }
    return due;
  }

  // Registers a site that a handler deals with.
  void Note(Site& site) {
    MutexLock lock(mutex_);
    if (!std::exchange(site.registered_, true)) {
      sites_.push_back(&site);
    }
  }

  void Replace(Plans plans) {
    MutexLock lock(mutex_);
    plans_ = std::move(plans);
    WatchAll();
  }

  void AddHandlers(int change) {
    MutexLock lock(mutex_);
    handlers_ += change;
    WatchAll();
  }

  std::uint64_t Passes(std::string_view name) const {
    MutexLock lock(mutex_);
    const auto plan = plans_.find(name);
    return plan == plans_.end() ? 0 : plan->second.passes;
  }

  std::vector<std::string> Reached() const {
    std::set<std::string> names;
    MutexLock lock(mutex_);
    for (const Site* site : sites_) {
      names.insert(site->name_);
    }
    return {names.begin(), names.end()};
  }

  static absl::Status Hit(Site& site) {
    if (innermost != nullptr) {
      Get().Note(site);
      return innermost->handler_(site.name_);
    }
    const auto due = Get().Pass(site);
    return due.has_value() ? Perform(*due, site.name_) : absl::OkStatus();
  }

 private:
  Registry() {
    const char* text = std::getenv("ADAMANT_FAILPOINTS");
    absl::StatusOr<Plans> plans = Parse(text == nullptr ? "" : text);
    ADAMANT_CHECK(plans.ok(), plans.status().ToString());
    plans_ = *std::move(plans);
  }

  [[nodiscard]] bool IsWatched(const Site& site) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return handlers_ > 0 || plans_.contains(std::string_view(site.name_));
  }

  void WatchAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Site* site : sites_) {
      site->watched_.store(IsWatched(*site), std::memory_order_relaxed);
    }
  }

  mutable Mutex mutex_;
  std::vector<Site*> sites_ ABSL_GUARDED_BY(mutex_);
  Plans plans_ ABSL_GUARDED_BY(mutex_);
  int handlers_ ABSL_GUARDED_BY(mutex_) = 0;
};

void Site::PassWatched() {
  const absl::Status status = PassWatchedWithStatus();
  ADAMANT_CHECK(status.ok(), std::string(name_) + " is a failpoint that cannot return an error");
}

absl::Status Site::PassWatchedWithStatus() { return Registry::Hit(*this); }

absl::Status SetActions(std::string_view actions) {
  ADAMANT_ASSIGN_OR_RETURN(Plans plans, Parse(actions));
  Registry::Get().Replace(std::move(plans));
  return absl::OkStatus();
}

std::uint64_t Passes(std::string_view name) { return Registry::Get().Passes(name); }

std::vector<std::string> Reached() { return Registry::Get().Reached(); }

ScopedHandler::ScopedHandler(Handler handler) : handler_(std::move(handler)), outer_(innermost) {
  innermost = this;
  Registry::Get().AddHandlers(1);
}

ScopedHandler::~ScopedHandler() {
  Registry::Get().AddHandlers(-1);
  innermost = outer_;
}

}  // namespace adamant::failpoint

#endif
