#include "services/common/storage/segment_store.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "services/common/base/rng.h"
#include "tests/unit/services/common/storage/disk_store_rig.h"

namespace adamant::conformance {
namespace {

using storage::SegmentStore;
using storage::SegmentStoreOptions;

using Rig = DiskStoreRig<SegmentStore, SegmentStoreOptions>;

constexpr std::size_t kValueBytes = SegmentStore::kLargeBytes;

// A segment holds few values, so that all that is done to segments happens often.
SegmentStoreOptions SmallSegments() { return {.segment_bytes = 4 * kValueBytes}; }

INSTANTIATE_TEST_SUITE_P(
    Segments,
    KvStoreSuite,
    testing::Values(
        KvStoreRigFactory{"segments", [] { return std::make_unique<Rig>(SegmentStoreOptions()); }},
        KvStoreRigFactory{"smallsegments", [] { return std::make_unique<Rig>(SmallSegments()); }}));

}  // namespace
}  // namespace adamant::conformance
