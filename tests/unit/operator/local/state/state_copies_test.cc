#include "operator/local/state/state_copies.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/local/state/kv_state_store.h"
#include "services/common/storage/memory_store.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::local {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StateCopiesTest : public testing::Test {
 protected:
  std::unique_ptr<StateCopies> Open() {
    auto copies = StateCopies::Open(folders_);
    EXPECT_TRUE(copies.ok()) << copies.status();
    return copies.ok() ? *std::move(copies) : nullptr;
  }

  /// Stores "v<from + 1>" and so on, up to "v<to>".
  void Store(std::uint64_t from, std::uint64_t to) {
    const auto copies = Open();
    KvStateStore state(*copies, 1);
    for (std::uint64_t version = from; version < to; ++version) {
      ASSERT_TRUE(
          state.CompareAndSwap(version, {{"state", "v" + std::to_string(version + 1)}}).ok());
    }
  }

  /// What is stored, and the alarms of opening it.
  std::pair<std::string, std::vector<std::string>> Load() {
    const auto copies = Open();
    auto snapshot = KvStateStore(*copies, 2).Load();
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return {snapshot->entries["state"], copies->TakeAlarms()};
  }

  static void Damage(const fs::path& folder) { std::ofstream(folder / "CURRENT") << "rubbish"; }

  const TestFolder root_;
  const StateCopies::Folders folders_ = {root_.path() / "state", root_.path() / "state.copy"};
};

TEST_F(StateCopiesTest, WhereNeitherIsWholeWhatIsLeftIsTold) {
  Store(0, 3);
  for (const fs::path& folder : folders_) {
    Damage(folder);
  }
  for (const absl::Status& status :
       {StateCopies::Open(folders_).status(), StateCopies::Read(folders_).status()}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    const std::string text(status.message());
    EXPECT_THAT(text, testing::HasSubstr(folders_[0].string()));
    EXPECT_THAT(text, testing::HasSubstr(folders_[1].string()));
    EXPECT_THAT(text, testing::HasSubstr("adamant export " + root_.path().string()));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("remove it")));
  }
}

TEST_F(StateCopiesTest, ARunWithoutAnyStateHasBegunWhereItsProcessesHaveFolders) {
  const RunPaths paths(root_.path());
  fs::create_directories(paths.data());
  EXPECT_TRUE(CheckNotBegun(paths).ok());
  fs::create_directory(paths.store_of(0));
  EXPECT_THAT(std::string(CheckNotBegun(paths).message()),
              AllOf(HasSubstr("the controller's state is missing from"),
                    HasSubstr("although the run had begun; restore one of both")));
}

TEST_F(StateCopiesTest, AStoreThatAnotherProcessHasIsARunInUse) {
  Store(0, 1);
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {  // locks as RocksDB does, and waits for its end
    const int lock = open((folders_[0] / "LOCK").c_str(), O_RDWR | O_CREAT, 0644);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    const char byte = fcntl(lock, F_SETLK, &whole) == 0 ? '1' : '0';
    [[maybe_unused]] const ssize_t written = write(told[1], &byte, 1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(told[0], &byte, 1), 1);
  EXPECT_EQ(byte, '1');
  const absl::Status status = StateCopies::Open(folders_).status();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(told[0]);
  close(told[1]);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr(root_.path().string() + " is in use by another adamant"));
}

TEST_F(StateCopiesTest, EitherOfThemIsEnough) {
  for (const std::size_t damaged : {0u, 1u}) {
    SCOPED_TRACE(damaged);
    Store(damaged * 3, damaged * 3 + 3);
    Damage(folders_[damaged]);
    const auto read = StateCopies::Read(folders_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->snapshot.entries.at("state"), "v" + std::to_string(damaged * 3 + 3));
    EXPECT_THAT(read->damage, HasSubstr((folders_[damaged] / "CURRENT").string()));
    const auto [state, alarms] = Load();
    EXPECT_EQ(state, "v" + std::to_string(damaged * 3 + 3));
    EXPECT_THAT(alarms,
                ElementsAre(AllOf(HasSubstr((folders_[damaged] / "CURRENT").string()),
                                  HasSubstr(folders_[damaged].string() + ".damaged"))));
    EXPECT_TRUE(fs::exists(folders_[damaged].string() + ".damaged"));
    EXPECT_THAT(Load().second, IsEmpty()) << "and it is made anew";
  }
}

TEST_F(StateCopiesTest, WhatIsNoFileOrNoFolderIsMadeAnewLikewise) {
  const auto fifo = [](const fs::path& path) { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); };
  const auto folder = [](const fs::path& path) { fs::create_directory(path); };
  const auto file = [](const fs::path& path) { std::ofstream(path) << "rubbish"; };
  const auto link = [](const fs::path& path) { fs::create_symlink("/nowhere/at/all", path); };
  using Make = std::function<void(const fs::path& path)>;
  Store(0, 3);
  for (const auto& [name, make] : {std::pair<fs::path, Make>("CURRENT", fifo),
                                   std::pair<fs::path, Make>("CURRENT", folder),
                                   std::pair<fs::path, Make>("", fifo),
                                   std::pair<fs::path, Make>("", link),
                                   std::pair<fs::path, Make>("", file)}) {
    const fs::path path = name.empty() ? folders_[0] : folders_[0] / name;
    fs::remove_all(path);
    make(path);
    const auto read = StateCopies::Read(folders_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->damage, HasSubstr(path.string() + ": is a"));
    const auto [state, alarms] = Load();
    EXPECT_EQ(state, "v3");
    EXPECT_THAT(alarms, ElementsAre(HasSubstr(path.string() + ": is a")));
    EXPECT_TRUE(fs::exists(fs::symlink_status(folders_[0].string() + ".damaged")));
  }
}

TEST_F(StateCopiesTest, WhatWasMadeAnewIsAsGoodAsTheOther) {
  Store(0, 3);
  Damage(folders_[0]);
  Load();
  Damage(folders_[1]);
  EXPECT_EQ(Load().first, "v3");
}

TEST_F(StateCopiesTest, WhenBothAreDamagedBothAreNamedAndNothingIsTouched) {
  Store(0, 3);
  Damage(folders_[0]);
  Damage(folders_[1]);
  for (const absl::Status& status :
       {StateCopies::Open(folders_).status(), StateCopies::Read(folders_).status()}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr((folders_[0] / "CURRENT").string()));
  }
  EXPECT_THAT(std::string(StateCopies::Open(folders_).status().message()),
              HasSubstr((folders_[1] / "CURRENT").string()));
  EXPECT_FALSE(fs::exists(folders_[0].string() + ".damaged"));
}

TEST_F(StateCopiesTest, AnEmptyOneDoesNotStandInForADamagedOne) {
  Store(0, 3);
  Damage(folders_[0]);
  fs::remove_all(folders_[1]);
  for (int start = 0; start < 2; ++start) {
    const absl::Status status = StateCopies::Open(folders_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr((folders_[0] / "CURRENT").string()));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(folders_[1].string() + ": it is gone, or empty"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("restore one of both"));
  }
  EXPECT_TRUE(absl::IsDataLoss(StateCopies::Read(folders_).status()));
  EXPECT_FALSE(fs::exists(folders_[0].string() + ".damaged"));
}

TEST_F(StateCopiesTest, ARunOfAnEarlierVersionHasOneAndGetsTheOther) {
  Store(0, 3);
  fs::remove_all(folders_[1]);
  const auto read = StateCopies::Read(folders_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->snapshot.version, 3u);
  EXPECT_EQ(read->damage, "");
  EXPECT_THAT(Load(), testing::Pair("v3", IsEmpty()));
  fs::remove_all(folders_[0]);
  EXPECT_EQ(Load().first, "v3");
}

TEST_F(StateCopiesTest, FoldersThatAreRemovedMeanwhileAreMadeAnew) {
  Store(0, 3);
  {
    const auto copies = Open();
    KvStateStore state(*copies, 1);
    for (const fs::path& folder : folders_) {
      fs::remove_all(folder);
    }
    ASSERT_TRUE(state.CompareAndSwap(3, {{"state", "v4"}}).ok());
    EXPECT_THAT(copies->TakeAlarms(),
                ElementsAre(HasSubstr(folders_[0].string() + " was removed while the job runs"),
                            HasSubstr(folders_[1].string() + " was removed while the job runs")));
    ASSERT_TRUE(state.CompareAndSwap(4, {{"state", "v5"}}).ok());
    EXPECT_THAT(copies->TakeAlarms(), IsEmpty());
  }
  for (const fs::path& folder : folders_) {
    const auto other = folder == folders_[0] ? folders_[1] : folders_[0];
    fs::rename(other, root_.path() / "away");
    EXPECT_EQ(Load().first, "v5");
    fs::remove_all(other);
    fs::rename(root_.path() / "away", other);
  }
}

TEST_F(StateCopiesTest, OneThatHasGoneBackIsToldOfAndFilled) {
  Store(0, 3);
  fs::copy(folders_[0], root_.path() / "old", fs::copy_options::recursive);
  Store(3, 7);
  fs::remove_all(folders_[0]);
  fs::rename(root_.path() / "old", folders_[0]);
  const auto read = StateCopies::Read(folders_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->snapshot.entries.at("state"), "v7");
  EXPECT_THAT(read->damage, HasSubstr(folders_[0].string() + ": has only version 3"));
  const auto [state, alarms] = Load();
  EXPECT_EQ(state, "v7");
  EXPECT_THAT(alarms,
              ElementsAre(AllOf(HasSubstr(folders_[0].string() + ": "), HasSubstr("version 3"))));
  EXPECT_THAT(Load(), testing::Pair("v7", IsEmpty()));
}

TEST_F(StateCopiesTest, StatesOfTwoJobsAreRefusedAndLeftAsTheyAre) {
  const auto store_for = [&](std::uint64_t job, std::uint64_t versions) {
    const auto copies = Open();
    KvStateStore state(*copies, 1);
    controller::JobState of_job;
    of_job.job_uid = job;
    for (std::uint64_t version = 0; version < versions; ++version) {
      ASSERT_TRUE(state.CompareAndSwap(version, {{controller::kStateKey, Encode(of_job)}}).ok());
    }
  };
  store_for(7, 3);
  fs::rename(folders_[0], root_.path() / "kept");
  fs::remove_all(folders_[1]);
  store_for(8, 5);
  fs::remove_all(folders_[1]);
  fs::rename(root_.path() / "kept", folders_[1]);
  for (const absl::Status& status :
       {StateCopies::Open(folders_).status(), StateCopies::Read(folders_).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(folders_[0].string() + " and " + folders_[1].string()),
                      HasSubstr("Move that one away")));
  }
  fs::remove_all(folders_[0]);
  const auto read = StateCopies::Read(folders_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->snapshot.version, 3u);
}

TEST_F(StateCopiesTest, AChangeThatADeathKeptFromTheSecondOneIsNoReasonForAnAlarm) {
  Store(0, 3);
  fs::copy(folders_[1], root_.path() / "old", fs::copy_options::recursive);
  Store(3, 4);
  fs::remove_all(folders_[1]);
  fs::rename(root_.path() / "old", folders_[1]);
  EXPECT_EQ(StateCopies::Read(folders_)->damage, "");
  EXPECT_THAT(Load(), testing::Pair("v4", IsEmpty()));
}

// Stores in memory, one of which fails when it is told to; what replaces it is a new one.
class FailingCopiesTest : public testing::Test {
 protected:
  class Store final : public storage::KvStore {
   public:
    absl::StatusOr<std::string> Get(std::string_view key) const override { return memory.Get(key); }
    absl::Status Write(const std::vector<storage::Change>& changes) override {
      return status.ok() ? memory.Write(changes) : status;
    }
    absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
      return Write(changes);
    }
    absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
      return Write(changes);
    }
    absl::Status Flush() override { return status; }
    absl::Status Scan(
        std::string_view prefix,
        const std::function<bool(std::string_view, std::string_view)>& visit) const override {
      return memory.Scan(prefix, visit);
    }

    storage::MemoryStore memory;
    absl::Status status;
  };

  FailingCopiesTest() {
    auto copies = StateCopies::Open(folders_, [this](const fs::path& folder) {
      if (disk_fails_) {
        return absl::StatusOr<std::unique_ptr<storage::KvStore>>(absl::UnavailableError("no disk"));
      }
      fs::create_directory(folder);
      auto store = std::make_unique<Store>();
      opened_[folder.string()] = store.get();
      return absl::StatusOr<std::unique_ptr<storage::KvStore>>(std::move(store));
    });
    EXPECT_TRUE(copies.ok()) << copies.status();
    copies_ = *std::move(copies);
    state_ = std::make_unique<KvStateStore>(*copies_, 1);
    EXPECT_TRUE(state_->CompareAndSwap(0, {{"old", "1"}}).ok());
  }

  Store& At(std::size_t copy) { return *opened_.at(folders_[copy].string()); }

  const TestFolder root_;
  const StateCopies::Folders folders_ = {root_.path() / "state", root_.path() / "state.copy"};
  bool disk_fails_ = false;
  std::map<std::string, Store*> opened_;
  std::unique_ptr<StateCopies> copies_;
  std::unique_ptr<KvStateStore> state_;
};

TEST_F(FailingCopiesTest, OneThatFailsWhileItIsWrittenIsMadeAnewFromTheOther) {
  for (const std::size_t failing : {0u, 1u}) {
    At(failing).status = absl::DataLossError("bad block");
    ASSERT_TRUE(state_->CompareAndSwap(1 + failing, {{"new", std::to_string(failing)}}).ok());
    for (const std::size_t copy : {0u, 1u}) {
      EXPECT_EQ(At(copy).memory.Get("old").value(), "1");
      EXPECT_EQ(At(copy).memory.Get("new").value(), std::to_string(failing));
      EXPECT_EQ(At(copy).memory.Get("version").value(), std::to_string(2 + failing));
    }
    EXPECT_THAT(copies_->TakeAlarms(), ElementsAre(HasSubstr("bad block")));
    EXPECT_THAT(copies_->TakeAlarms(), IsEmpty());
  }
}

TEST_F(FailingCopiesTest, AFullDiskIsAnErrorAndNoDamage) {
  for (const std::size_t full : {0u, 1u}) {
    At(full).status = absl::ResourceExhaustedError("no space left");
    EXPECT_TRUE(absl::IsResourceExhausted(state_->CompareAndSwap(1 + full, {{"new", "1"}})));
    At(full).status = absl::OkStatus();
    EXPECT_TRUE(state_->CompareAndSwap(1 + full, {{"newer", "1"}}).ok());
    EXPECT_EQ(At(full).memory.Get("new").value(), "1");
    EXPECT_EQ(At(full).memory.Get("version").value(), std::to_string(2 + full));
  }
  EXPECT_THAT(copies_->TakeAlarms(), IsEmpty());
}

TEST_F(FailingCopiesTest, ADiskOnWhichNothingCanBeMadeAnewIsAnError) {
  At(1).status = absl::DataLossError("bad block");
  disk_fails_ = true;
  EXPECT_FALSE(state_->CompareAndSwap(1, {{"new", "1"}}).ok());
  EXPECT_FALSE(state_->CompareAndSwap(1, {{"new", "1"}}).ok());
  disk_fails_ = false;
  EXPECT_TRUE(state_->CompareAndSwap(1, {{"new", "2"}}).ok());
  EXPECT_EQ(At(1).memory.Get("new").value(), "2");
  EXPECT_EQ(At(1).memory.Get("old").value(), "1");
}

}  // namespace
}  // namespace adamant::local
