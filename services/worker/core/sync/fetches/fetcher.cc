#include "services/worker/core/sync/fetches/fetcher.h"

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {

Fetcher::Fetcher(Learner& learner,
                 FetchTracker& fetches,
                 PushTracker& pushes,
                 const PushStore& store,
                 Asynchrony& asynchrony)
    : learner_(learner),
      fetches_(fetches),
      pushes_(pushes),
      store_(store),
      asynchrony_(asynchrony),
      reader_(learner.layout()),
      weights_(learner, fetches),
      renewal_(learner),
      snapshot_(learner.evaluation(), fetches),
      weight_growth_(learner.plan(), learner.layout().parameters()) {}

absl::StatusOr<bool> Fetcher::OnReply(const FetchReply& reply,
                                      const ReadValues& read,
                                      Clock::TimePoint now) {
  ADAMANT_ASSIGN_OR_RETURN(const FetchProgress progress, fetches_.OnReply(reply, now));
  if (progress.fresh.empty()) {
    return false;
  }
  ADAMANT_RETURN_IF_ERROR(ReadShards(reply, progress, read));
  if (!progress.complete) {
    return false;
  }
  ++completed_;
  if (snapshot_.Is(progress.fetch)) {
    snapshot_.OnComplete();
  } else {
    OnWeights(now);
  }
  return true;
}

absl::Status Fetcher::ReadShards(const FetchReply& reply,
                                 const FetchProgress& progress,
                                 const ReadValues& read) {
  if (snapshot_.Is(progress.fetch)) {
    return reader_.Read(
        reply, progress.fresh, read, learner_.evaluation().writable(), [](const FetchedShard&) {});
  }
  const auto on_value = [&](const FetchedShard& fetched) {
    pushes_.OnValue(reply.request, fetched);
    asynchrony_.meter().OnValue(fetched);
    weights_.AddRetained(fetched, store_.retained());
  };
  return reader_.Read(reply, progress.fresh, read, learner_.fetch().values(), on_value);
}

// All values of now are there.
void Fetcher::OnWeights(Clock::TimePoint now) {
  ADAMANT_FAILPOINT("fetch/complete");
  weights_.OnComplete(store_.in_flight());
  asynchrony_.OnFetched(learner_.fetch().values(), now);
  weight_growth_.Observe(learner_.fetch().values());
  learner_.SetGuidance(asynchrony_.guidance());
  learner_.fetch().SetId(weights_.id());
  if (!renewal_.active()) {
    learner_.fetch().Complete();
  }
}

bool Fetcher::Start() {
  if (renewal_.active()) {
    return false;  // the threads are about to get the values of now
  }
  if (weights_.id() != 0) {
    Finish();
  }
  weights_.Start();
  return true;
}

void Fetcher::OnApplied(FetchId fetch) {
  if (!renewal_.active() && fetch == weights_.id()) {
    Finish();
  }
}

// What was fetched has been applied.
void Fetcher::Finish() {
  ADAMANT_FAILPOINT("fetch/applied");
  pushes_.SetFetchedVersions(weights_.Finish());
  asynchrony_.meter().OnApplied();
}

bool Fetcher::StartRenewal() {
  if (renewal_.active()) {
    return false;
  }
  renewal_.Start();
  return true;
}

void Fetcher::OnReset(std::uint64_t generation) {
  renewal_.OnReset(generation);
  if (renewal_.active() && renewal_.AllWait()) {
    weights_.Abandon();
    weights_.Start();
  }
}

bool Fetcher::FinishRenewal() {
  if (!renewal_.active() || !weights_.complete() || !renewal_.AllWait()) {
    return false;
  }
  asynchrony_.OnRenewed();
  weights_.Apply(store_.in_flight());
  Finish();
  renewal_.Finish();
  return true;
}

}  // namespace adamant::worker
