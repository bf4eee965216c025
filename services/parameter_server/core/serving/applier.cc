#include "services/parameter_server/core/serving/applier.h"

namespace adamant::parameter_server {

void Applier::Run() {
  while (true) {
    const DeferredWork work = table_.TakeDeferred();
    if (work.empty()) {
      return;
    }
    for (const LiveShardPtr& shard : work.shards) {
      shard->ApplyIfFree();
    }
    for (const DuePart& part : work.parts) {
      copies_.Send(part);
    }
    if (work.flush) {
      dirty_.Hurry();
    }
  }
}

}  // namespace adamant::parameter_server
