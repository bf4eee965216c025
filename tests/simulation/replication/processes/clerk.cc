#include "tests/simulation/replication/processes/clerk.h"

#include <utility>

#include "tests/simulation/replication/processes/cluster.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kSayAgain = milliseconds(400);

LifePtr NewClerkLife(std::uint32_t number) {
  auto life = std::make_shared<Life>();
  life->name = "clerk-" + std::to_string(number);
  return life;
}

}  // namespace

Clerk::Clerk(World& world, Cluster& cluster, std::uint32_t number)
    : life(NewClerkLife(number)),
      world_(world),
      cluster_(cluster),
      number_(number),
      bucket_(number % world.setup.buckets) {
  PlanWrite();
}

void Clerk::PlanWrite() {
  world_.scheduler.After(world_.scheduler.Random(milliseconds(1), 4 * world_.setup.think_time),
                         life,
                         [this] { Begin(true); });
}

void Clerk::Begin(bool put) {
  if (stopped_ && put) {
    return;
  }
  if (paused_ && put) {
    return PlanWrite();
  }
  request_ = {.id = cluster_.NextRequest(),
              .attempt = cluster_.attempt(),
              .from = number_,
              .key = world_.setup.record_of[bucket_],
              .put = put,
              .expected = version_,
              .value = {}};
  if (put) {
    request_.value = std::to_string(number_) + "/" + std::to_string(++written_);
  }
  Ask(request_.id);
}

void Clerk::Ask(std::uint64_t id) {
  cluster_.SendRecord(target_, request_);
  world_.scheduler.After(kSayAgain, life, [this, id] {
    if (request_.id != id) {
      return;
    }
    target_ = cluster_.GuessPrimary(bucket_);
    if (request_.put && world_.scheduler.Chance(0.2)) {
      return Begin(false);  // as another process would, in its place
    }
    Ask(id);
  });
}

void Clerk::BeginAnew() {
  if (request_.id != 0) {
    Begin(false);
  }
}

void Clerk::OnAnswer(const RecordAnswer& answer) {
  if (answer.id != request_.id || answer.answer.access != ps::Access::kReady) {
    return;  // is asked again
  }
  request_.id = 0;
  const bool conflict = request_.put && !answer.answer.stored;
  version_ = answer.answer.record.version;
  if (conflict) {
    return Begin(false);  // perhaps it was its own
  }
  PlanWrite();
}

}  // namespace adamant::replication_simulation
