// What of a bucket goes over to a learner, to the disk, and comes back from there.

#include <algorithm>
#include <utility>

#include "tests/simulation/replication/hosted_bucket.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kSendPartAgain = milliseconds(500);

}  // namespace

// --- Copies

void HostedBucket::StartCopy(BucketId bucket,
                             const ps::Holder& learner,
                             std::uint64_t copy,
                             ps::Lsn base) {
  last_copy_ = copy;
  RepeatStaleAck(learner);
  if (world_.tracer != nullptr) {
    world_.tracer->Copies(place_.holder.slot, learner.slot, replica_->configuration().epoch, base);
  }
  Send(learner,
       {.bucket = bucket,
        .epoch = replica_->configuration().epoch,
        .kind = ps::CopyBegin{.copy = copy,
                              .base = base,
                              .generation = replica_->configuration().generation,
                              .parts = world_.setup.shards}});
  sending_ = {.copy = copy, .learner = learner, .next = 0, .again_at = place_.now()};
  if (world_.Has(Mutation::kEarlyAdd)) {
    world_.scheduler.After(milliseconds(1), place_.life, [this, copy] {
      replica_->Copied(copy, place_.now());
      Settle();
    });
  }
}

void HostedBucket::StopCopy(BucketId /*bucket*/) {
  sending_.reset();
  if (world_.tracer != nullptr) {
    world_.tracer->GivesUp(place_.holder.slot);
  }
}

void HostedBucket::SendPart() {
  sending_->again_at = place_.now() + kSendPartAgain;
  Send(sending_->learner,
       {.bucket = place_.bucket,
        .epoch = replica_->configuration().epoch,
        .kind = ps::CopyPart{
            .copy = sending_->copy,
            .index = sending_->next,
            .content = ps::CopiedShard{.shard = sending_->next,
                                       .stored = Encode(content_->shards[sending_->next])}}});
}

void HostedBucket::OnCopyAck(const ps::Holder& from, const ps::CopyAck& ack) {
  if (!sending_.has_value() || ack.copy != sending_->copy || from != sending_->learner ||
      ack.index != sending_->next) {
    return;
  }
  if (++sending_->next < world_.setup.shards) {
    return SendPart();
  }
  const std::uint64_t copy = std::exchange(sending_, std::nullopt)->copy;
  if (world_.tracer != nullptr) {
    world_.tracer->TurnsJoint(place_.holder.slot);
  }
  replica_->Copied(copy, place_.now());
}

void HostedBucket::Learn(BucketId /*bucket*/, const ps::CopyBegin& begin) {
  if (content_.has_value()) {
    return;  // CutLog: it is there
  }
  receiving_ = {.copy = begin.copy, .generation = begin.generation, .shards = {}};
  receiving_->shards.resize(begin.parts);
  disk_.Do(
      place_.life,
      place_.bucket,
      true,
      [](StoredBucket& stored) {
        stored.complete = false;
        stored.log.clear();
      },
      [] {});
}

// The last part is acknowledged when all of it is on disk.
void HostedBucket::OnCopyPart(const ps::Holder& from, const ps::CopyPart& part) {
  if (!receiving_.has_value() || receiving_->copy != part.copy ||
      replica_->configuration().primary != from) {
    return;
  }
  const bool more = part.index + 1 < receiving_->shards.size();
  if (!receiving_->shards[part.index].has_value()) {
    receiving_->shards[part.index] = Decode(*std::get<ps::CopiedShard>(part.content).stored);
    if (!more) {
      InstallCopy(from, part.index);
    }
  }
  if (more) {
    Send(from,
         {.bucket = place_.bucket,
          .epoch = replica_->configuration().epoch,
          .kind = ps::CopyAck{.copy = part.copy, .index = part.index}});
  }
}

void HostedBucket::InstallCopy(const ps::Holder& from, std::uint32_t last) {
  Content content{.generation = receiving_->generation, .shards = {}};
  for (const std::optional<ShardState>& shard : receiving_->shards) {
    content.shards.push_back(*shard);
  }
  Store(content, true, [this, content, from, last, copy = receiving_->copy, ticket = ticket_] {
    if (ticket == ticket_) {
      content_ = content;
      const std::uint64_t epoch = replica_->configuration().epoch;
      replica_->Installed(copy, place_.now());
      Send(from,
           {.bucket = place_.bucket,
            .epoch = epoch,
            .kind = ps::CopyAck{.copy = copy, .index = last}});
      Settle();
    }
  });
}

// --- The disk

// All of it, in place of whatever is stored.
void HostedBucket::Store(const Content& content, bool keep_log, std::function<void()> done) {
  world_.checker.Persisted(place_.bucket, content);
  disk_.Do(
      place_.life,
      place_.bucket,
      true,
      [content, keep_log](StoredBucket& stored) {
        stored.complete = true;
        stored.generation = content.generation;
        stored.shards = content.shards;
        if (!keep_log) {
          stored.log.clear();
        }
      },
      std::move(done));
}

void HostedBucket::Persist(BucketId /*bucket*/, const ps::EntryPtr& entry, std::uint64_t number) {
  const auto persisted = [this, number, ticket = ticket_] {
    if (ticket == ticket_) {
      replica_->Persisted(number, place_.now());
      Settle();
    }
  };
  const bool early = world_.Has(Mutation::kAckBeforePersisted);
  if (early) {
    world_.scheduler.After(Clock::Duration(0), place_.life, persisted);
  }
  disk_.Do(
      place_.life,
      place_.bucket,
      world_.setup.persistence == Persistence::kWalSync,
      [entry](StoredBucket& stored) {
        stored.log.erase(stored.log.lower_bound(entry->lsn), stored.log.end());
        stored.log.emplace(entry->lsn, entry);
      },
      early ? std::function<void()>([] {}) : persisted);
}

void HostedBucket::Flush() {
  if (!content_.has_value() || !dirty_ || world_.Has(Mutation::kNeverFlushes)) {
    return;
  }
  dirty_ = false;
  Content content = *content_;
  if (world_.Has(Mutation::kPersistsUncommitted)) {
    for (const ps::EntryPtr& entry : replica_->log()) {
      for (const ps::LoggedUpdate& update : entry->updates) {
        Apply(update, content.shards[update.shard]);
      }
    }
  }
  world_.checker.Persisted(place_.bucket, content);
  disk_.Do(
      place_.life,
      place_.bucket,
      true,
      [content = std::move(content)](StoredBucket& stored) {
        stored.shards = content.shards;
        ps::Lsn flushed = content.shards[0].lsn;
        for (const ShardState& shard : content.shards) {
          flushed = std::min(flushed, shard.lsn);
        }
        stored.log.erase(stored.log.begin(), stored.log.upper_bound(flushed));
      },
      [this, committed = replica_->committed(), ticket = ticket_] {
        if (ticket == ticket_) {
          replica_->Flushed(committed);
          Settle();
        }
      });
}

void HostedBucket::Load(BucketId /*bucket*/, bool create) {
  ++ticket_;
  const auto wait = world_.scheduler.Random(milliseconds(1), milliseconds(200));
  world_.scheduler.After(wait, place_.life, [this, create, ticket = ticket_] {
    if (ticket == ticket_) {
      create ? Create(ticket) : Restore(ticket);
    }
  });
}

void HostedBucket::Create(std::uint64_t ticket) {
  Content content{.generation = replica_->configuration().generation, .shards = {}};
  content.shards.resize(world_.setup.shards);
  StoreAndServe(content, ticket);
}

// What is stored, and what has been logged since; then numbered anew, from 1.
void HostedBucket::Restore(std::uint64_t ticket) {
  const StoredBucket& stored = disk_.Read(place_.bucket);
  if (!stored.complete) {
    return owner_.ReportServing(place_.bucket, true);
  }
  Content content{.generation = replica_->configuration().generation, .shards = stored.shards};
  const Clock::TimePoint safe = owner_.SafeBefore(place_.bucket);
  world_.checker.Restores(place_.bucket, content);
  for (const auto& [lsn, entry] : stored.log) {
    Advance(content, *entry, [&](const ps::LoggedUpdate& update, const ShardState& shard) {
      world_.checker.Replayed(place_.bucket, update.shard, update, shard, safe);
    });
  }
  world_.checker.Restored(place_.bucket, content, safe);
  for (ShardState& shard : content.shards) {
    shard.lsn = 0;
  }
  StoreAndServe(content, ticket);
}

void HostedBucket::StoreAndServe(const Content& content, std::uint64_t ticket) {
  Store(content, false, [this, content, ticket] {
    if (ticket == ticket_) {
      content_ = content;
      replica_->Loaded(place_.now());
      Settle();
    }
  });
}

}  // namespace adamant::replication_simulation
