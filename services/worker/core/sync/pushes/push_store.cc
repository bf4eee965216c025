#include "services/worker/core/sync/pushes/push_store.h"

#include <algorithm>

#include "services/common/base/check.h"

namespace adamant::worker {

PushStore::PushStore(Learner& learner, std::uint64_t retain_bytes)
    : learner_(learner),
      accumulator_bytes_(Accumulator::BytesOf(learner.plan())),
      retain_bytes_(retain_bytes),
      any_activations_(std::ranges::any_of(
          learner.plan().tensors, [](const TensorPlan& tensor) { return tensor.activations; })) {}

void PushStore::Add(Sequence sequence, ContentPtr content) {
  in_flight_[sequence] = std::move(content);
}

void PushStore::Retire(Sequence sequence, bool refused) {
  auto node = in_flight_.extract(sequence);
  ADAMANT_CHECK(!node.empty(), "a push ends once");
  PushContent& content = *node.mapped();
  content.refused = refused;
  if (sequence <= released_) {
    leaving_.push_back(std::move(node.mapped()));
    return;
  }
  if (!any_activations_) {
    // The first has the sum; nothing else of the others is sent.
    std::for_each(content.parts.begin() + 1,
                  content.parts.end(),
                  [this](const PushContent::Part& part) { Recycle(part); });
    content.parts.resize(1);
  }
  retained_accumulators_ += content.parts.size();
  retained_.insert(std::move(node));
  moving_in_.push_back(sequence);
}

void PushStore::Release(Sequence sequence) {
  released_ = std::max(released_, sequence);
  while (!retained_.empty() && retained_.begin()->first <= released_) {
    ContentPtr& content = retained_.begin()->second;
    retained_accumulators_ -= content->parts.size();
    leaving_.push_back(std::move(content));
    retained_.erase(retained_.begin());
  }
}

void PushStore::Tidy() {
  RecycleUnpinned();
  for (; !moving_in_.empty(); moving_in_.pop_front()) {
    const auto content = retained_.find(moving_in_.front());
    if (content != retained_.end() && !MoveIn(*content->second)) {
      return;
    }
  }
}

// Exchanges the accumulators of threads for spare ones; false when there are not enough.
bool PushStore::MoveIn(PushContent& content) {
  for (PushContent::Part& part : content.parts) {
    if (part.thread == PushContent::kNoThread) {
      continue;
    }
    Accumulator* const spare = TakeSpare();
    if (spare == nullptr) {
      return false;
    }
    spare->SwapContent(*part.accumulator);
    Recycle(part);
    part = {.accumulator = spare, .thread = PushContent::kNoThread};
  }
  return true;
}

Accumulator* PushStore::TakeSpare() {
  if (spares_.empty()) {
    if ((memory_.size() + 1) * accumulator_bytes_ > retain_bytes_) {
      return nullptr;
    }
    memory_.push_back(std::make_unique<Accumulator>(
        learner_.plan(), learner_.layout().shards().size(), learner_.options().push_every));
    spares_.push_back(memory_.back().get());
  }
  Accumulator* const spare = spares_.back();
  spares_.pop_back();
  return spare;
}

void PushStore::Recycle(const PushContent::Part& part) {
  part.accumulator->Clear();
  if (part.thread == PushContent::kNoThread) {
    spares_.push_back(part.accumulator);
    return;
  }
  learner_.channel(part.thread).Recycle(part.accumulator);
  recycled_ = true;
}

void PushStore::RecycleUnpinned() {
  std::erase_if(leaving_, [&](const ContentPtr& content) {
    if (content->pins.load(std::memory_order_acquire) > 0) {
      return false;
    }
    for (const PushContent::Part& part : content->parts) {
      Recycle(part);
    }
    return true;
  });
}

bool PushStore::NearlyFull() const {
  return !retained_.empty() && retained_bytes() >= retain_bytes_ / 4 * 3;
}

PushPayload PushStore::PayloadOf(const PushMessage& message) {
  Contents& contents = in_flight_.contains(message.sequence()) ? in_flight_ : retained_;
  const auto found = contents.find(message.sequence());
  ADAMANT_CHECK(found != contents.end(), "messages are sent as they come");
  PushContent& content = *found->second;
  PushPayload payload = MakePayload(learner_.plan(), learner_.layout(), content, message);
  content.pins.fetch_add(1, std::memory_order_relaxed);
  payload.owner = std::shared_ptr<const void>(
      &content, [&pins = content.pins, &learner = learner_](const void* /*content*/) {
        pins.fetch_sub(1, std::memory_order_release);  // the content may be gone from here on
        learner.WakeLoop();
      });
  return payload;
}

bool PushStore::Pinned() const {
  const auto pinned = [](const ContentPtr& content) {
    return content->pins.load(std::memory_order_acquire) > 0;
  };
  const auto any = [&](const Contents& contents) {
    return std::ranges::any_of(contents, [&](const auto& entry) { return pinned(entry.second); });
  };
  return any(in_flight_) || any(retained_) || std::ranges::any_of(leaving_, pinned);
}

}  // namespace adamant::worker
