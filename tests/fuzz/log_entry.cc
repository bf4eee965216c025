// An entry of a bucket's log as a disk holds it, behind its checksum.

#include "services/common/base/check.h"
#include "services/parameter_server/core/shards/outer_product.h"
#include "services/parameter_server/core/storage/entry_record.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

using parameter_server::Entry;
using parameter_server::LoggedUpdate;
using parameter_server::Operands;
using parameter_server::SharedOperands;
using parameter_server::UpdateKind;

const ShardLayout& Layout() {
  static const ShardLayout layout(SmallLayer(), 2);
  return layout;
}

std::string Stored(const Entry& entry) { return Unsealed(StoreEntry(0, 1, entry).value); }

// What a server does with an update when it has read it.
void Use(const LoggedUpdate& update) {
  const Shard& shard = Layout().shards()[update.shard];
  if (update.kind == UpdateKind::kOuterProduct) {
    std::vector<float> gradient(shard.size());
    parameter_server::OuterProduct(update.operands->operands, shard.begin, gradient);
  } else {
    ADAMANT_CHECK(update.values.size() == shard.size(), "an update of another size");
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  static const std::vector<float> numbers(12, 0.25F);
  const std::span<const float> values(numbers);
  const Operands operands{.tensor = 0,
                          .rows = 2,
                          .inputs = 3,
                          .outputs = 4,
                          .activations = values.first(6),
                          .errors = values.first(8)};
  Entry dense{.lsn = 3,
              .origin = 1,
              .puts = {{.key = "training/epoch/0", .version = 2, .value = "ledger"}}};
  dense.updates = {{.shard = 0,
                    .writer = {.slot = 1, .incarnation = 1},
                    .sequence = 5,
                    .kind = UpdateKind::kGradient},
                   {.shard = 1, .writer = {.slot = 1, .incarnation = 1}, .sequence = 5}};
  dense.updates[0].values = values;
  dense.updates[1].values = values.first(4);
  Entry product{.lsn = 4, .origin = 1};
  product.updates = {{.shard = 0,
                      .writer = {.slot = 0, .incarnation = 1},
                      .sequence = 1,
                      .kind = UpdateKind::kOuterProduct}};
  product.updates[0].operands = std::make_shared<const SharedOperands>(SharedOperands{operands});
  return {Stored(dense), Stored(product)};
}

bool Try(std::string_view input) {
  const auto stored = parameter_server::DecodeEntry(Sealed(input), Layout());
  if (!stored.ok()) {
    return false;
  }
  for (const LoggedUpdate& update : stored->entry->updates) {
    Use(update);
  }
  return true;
}

}  // namespace adamant::fuzz
