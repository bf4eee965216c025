// The ledger of an epoch, behind its checksum.

#include "services/data_server/core/ledger.h"

#include "services/common/base/check.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {

using data_server::Ledger;

std::vector<std::string> Seeds() {
  const Ledger first;
  const Ledger open{.epoch = 3,
                    .closed = false,
                    .counted = {true, false, true, true, false, false, true, true, true},
                    .counted_examples = 192,
                    .earlier_examples = 1000,
                    .unattended = {{.epoch = 2, .counted = 500, .left = 12, .retrained = 3}},
                    .writer_slot = 1,
                    .writer_incarnation = 4};
  return {Unsealed(SerializeLedger(first)), Unsealed(SerializeLedger(open))};
}

bool Try(std::string_view input) {
  const auto ledger = data_server::ParseLedger(Sealed(input));
  if (!ledger.ok()) {
    return false;
  }
  const auto again = data_server::ParseLedger(SerializeLedger(*ledger));
  ADAMANT_CHECK(again.ok() && *again == *ledger, "a ledger is written otherwise than it was read");
  return true;
}

}  // namespace adamant::fuzz
