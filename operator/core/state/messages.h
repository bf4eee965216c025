#pragma once

#include "services/common/protocol/control.h"

/// Messages between members and the controller, in the controller's own words.
namespace adamant::controller {

using protocol::BucketProgress;
using protocol::BucketsReady;
using protocol::BucketState;
using protocol::CloseEpoch;
using protocol::Configuration;
using protocol::ControllerMessage;
using protocol::DataFile;
using protocol::DataServerProgress;
using protocol::DeadUnits;
using protocol::Draining;
using protocol::EpochEnded;
using protocol::Evaluate;
using protocol::Evaluated;
using protocol::FailoverTimes;
using protocol::Failure;
using protocol::FlushWorker;
using protocol::Heartbeat;
using protocol::Join;
using protocol::kControlFormatVersion;
using protocol::Leaving;
using protocol::Loading;
using protocol::Member;
using protocol::MemberMessage;
using protocol::Membership;
using protocol::OpenEpoch;
using protocol::ParameterServerProgress;
using protocol::PartClosed;
using protocol::PausePushes;
using protocol::Proposal;
using protocol::Proposals;
using protocol::PushesPaused;
using protocol::Refused;
using protocol::ResumePushes;
using protocol::Role;
using protocol::RoleName;
using protocol::ServerId;
using protocol::SlotId;
using protocol::SnapshotBucket;
using protocol::SnapshotTaken;
using protocol::Stop;
using protocol::StoredBucket;
using protocol::StoredBuckets;
using protocol::TakeSnapshot;
using protocol::ToString;
using protocol::UnattendedEpoch;
using protocol::Welcome;
using protocol::WorkerFlushed;
using protocol::WorkerProgress;

}  // namespace adamant::controller
