#include "operator/local/run_folder/run_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "operator/local/run_folder/run_folder.h"
#include "services/common/base/system/files.h"
#include "tests/unit/operator/local/full_disk.h"

namespace adamant::local {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class RunPathsTest : public testing::Test {
 protected:
  ~RunPathsTest() override { std::filesystem::remove_all(paths_.root); }

  const RunPaths paths_{std::filesystem::temp_directory_path() /
                        ("adamant_run_" + std::to_string(getpid()))};
};

TEST_F(RunPathsTest, AFolderThatHoldsSomethingIsNotTakenForANewRun) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  const absl::Status again = CreateRunFolder(paths_, "");
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.message()), HasSubstr("--resume"));
}

TEST_F(RunPathsTest, APathThatIsNoTextIsRefusedBeforeAnythingIsMade) {
  const RunPaths paths(paths_.root / "u\xff");
  for (const absl::Status& status : {CreateRunFolder(paths, ""), CheckPath(paths)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("not UTF-8"));
  }
  EXPECT_FALSE(std::filesystem::exists(paths.root));
}

// Root may write everywhere: what another user may is asked as one.
class AsNobody {
 public:
  AsNobody() {
    if (geteuid() == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~AsNobody() { EXPECT_EQ(seteuid(getuid()), 0); }
};

TEST_F(RunPathsTest, AFileThatAnotherUserLeftInARunIsNamed) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  const std::filesystem::path records = paths_.store_of(0) / "shards" / "records";
  const std::filesystem::path aside = paths_.store_of(0) / "shards.damaged";
  for (const std::filesystem::path& folder :
       {records, aside, paths_.controller(), paths_.controller_copy(), paths_.checkpoints()}) {
    std::filesystem::create_directories(folder);
  }
  for (const std::filesystem::path& file :
       {records / "LOCK", aside / "LOCK", paths_.logs() / "worker-0.log"}) {
    ASSERT_TRUE(WriteFile(file, "").ok());
  }
  const auto open_to_all = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(paths_.root)) {
      ASSERT_EQ(chmod(entry.path().c_str(), 0777), 0);
    }
    ASSERT_EQ(chmod(paths_.root.c_str(), 0777), 0);
  };
  for (const std::filesystem::path& path : {paths_.root,
                                            paths_.logs() / "worker-0.log",
                                            paths_.checkpoints(),
                                            paths_.controller_copy(),
                                            paths_.store_of(0),
                                            records / "LOCK"}) {
    open_to_all();
    ASSERT_EQ(chmod(path.c_str(), 0555), 0);
    const AsNobody as_nobody;
    EXPECT_EQ(std::string(CheckRunIsWritable(paths_).message()),
              "cannot write to " + path.string() + ": Permission denied");
  }
  open_to_all();
  ASSERT_EQ(chmod((aside / "LOCK").c_str(), 0), 0);
  const AsNobody as_nobody;
  EXPECT_TRUE(CheckRunIsWritable(paths_).ok()) << CheckRunIsWritable(paths_);
}

TEST_F(RunPathsTest, WhoMakesFoldersForTheSameJobAtOnceGetsOneEach) {
  constexpr int kRuns = 8;
  std::vector<std::filesystem::path> made(kRuns);
  {
    std::vector<std::jthread> makers;
    for (std::filesystem::path& folder : made) {
      makers.emplace_back([&] { folder = MakeRunFolder(paths_.root / "runs", "mnist").value(); });
    }
  }
  EXPECT_EQ(std::set(made.begin(), made.end()).size(), std::size_t{kRuns});
  for (const std::filesystem::path& folder : made) {
    EXPECT_TRUE(std::filesystem::is_directory(folder)) << folder;
    EXPECT_TRUE(folder.filename().string().starts_with("mnist-")) << folder;
  }
}

TEST_F(RunPathsTest, WhatIsInThePlaceOfAProcesssFolderGoesAside) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  const std::filesystem::path data = paths_.store_of(0);
  EXPECT_EQ(SetStrangerAside(data), "");
  ASSERT_EQ(mkfifo(data.c_str(), 0600), 0);
  EXPECT_THAT(SetStrangerAside(data),
              testing::AllOf(HasSubstr(data.string() + ": is a FIFO, where a folder belongs"),
                             HasSubstr("kept as " + data.string() + ".damaged")));
  EXPECT_TRUE(std::filesystem::is_fifo(data.string() + ".damaged"));
  std::filesystem::create_directory(data);
  EXPECT_EQ(SetStrangerAside(data), "");
  EXPECT_TRUE(std::filesystem::is_directory(data));
}

TEST_F(RunPathsTest, ALinkThatLeadsNowhereGoesAsideFromThePlaceOfAProcesssFolder) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  const std::filesystem::path data = paths_.data() / "worker-0";
  std::filesystem::create_symlink("/nowhere/at/all", data);
  EXPECT_THAT(
      SetStrangerAside(data),
      AllOf(StartsWith(data.string() + ": is a link that leads nowhere (to /nowhere/at/all"),
            HasSubstr("kept as " + data.string() + ".damaged")));
  EXPECT_TRUE(std::filesystem::is_symlink(data.string() + ".damaged"));
  EXPECT_EQ(SetStrangerAside(data), "");
}

TEST_F(RunPathsTest, ALinkThatLeadsNowhereInPlaceOfAFolderIsNamedWithWhatToDo) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  for (const std::filesystem::path& folder : {paths_.logs(), paths_.checkpoints(), paths_.data()}) {
    std::filesystem::remove(folder);
    std::filesystem::create_symlink("/nowhere/at/all", folder);
    EXPECT_THAT(std::string(CheckRunFiles(paths_).message()),
                AllOf(StartsWith(folder.string() + ": is a link that leads nowhere"),
                      HasSubstr("is its disk mounted?"),
                      HasSubstr("move it away")));
    std::filesystem::remove(folder);
  }
}

TEST_F(RunPathsTest, AllThatIsNoFileIsNamedAtOnce) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  const std::vector<std::filesystem::path> files = {
      paths_.events(), paths_.metrics(), paths_.logs() / "worker-0.log"};
  for (const std::filesystem::path& file : files) {
    std::filesystem::create_directory(file);
  }
  const std::string text(CheckRunFiles(paths_).message());
  for (const std::filesystem::path& file : files) {
    EXPECT_THAT(text, HasSubstr(file.string() + ": is a folder, where a file belongs"));
  }
  EXPECT_THAT(text, testing::EndsWith("; move all of these away, then resume again"));
}

TEST_F(RunPathsTest, AManifestThatIsNoFileIsPutBackAsOneThatIsMissing) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  std::filesystem::remove(paths_.job());
  ASSERT_EQ(mkfifo(paths_.job().c_str(), 0600), 0);
  EXPECT_THAT(
      std::string(CheckHoldsRun(paths_).message()),
      AllOf(StartsWith(paths_.job().string() + ": is a FIFO, where a file belongs; move it"),
            HasSubstr("put the manifest that it was started with there")));
  ASSERT_TRUE(WriteFile(paths_.started(), "job").ok());
  EXPECT_THAT(std::string(CheckHoldsRun(paths_).message()),
              HasSubstr("cp " + paths_.started().string() + " " + paths_.job().string()));
}

TEST_F(RunPathsTest, AModelMayBeALinkToWhereItIsToBeWritten) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  std::filesystem::create_symlink("/nowhere/at/all", paths_.onnx());
  EXPECT_TRUE(CheckRunFiles(paths_).ok()) << CheckRunFiles(paths_);
}

TEST_F(RunPathsTest, WhatWasHalfWrittenIsRemovedAndNothingElse) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  std::filesystem::create_directory(paths_.checkpoints());
  const std::vector<std::filesystem::path> files = {paths_.job(),
                                                    paths_.started(),
                                                    paths_.plan(),
                                                    paths_.metrics(),
                                                    paths_.curve(),
                                                    paths_.safetensors(),
                                                    paths_.onnx(),
                                                    paths_.endpoint(),
                                                    paths_.checkpoint(7),
                                                    paths_.checkpoint(8)};
  for (const std::filesystem::path& file : files) {
    ASSERT_TRUE(WriteFileAtomically(file, "whole").ok());
    ASSERT_TRUE(WriteFileAtomically(TemporaryOf(file), "half").ok());
  }
  std::filesystem::remove(paths_.checkpoint(8));
  const std::filesystem::path thesis = paths_.root / "thesis.tmp";
  ASSERT_TRUE(WriteFileAtomically(thesis, "precious").ok());
  RemoveLeftovers(paths_);
  for (const std::filesystem::path& file : files) {
    EXPECT_EQ(std::filesystem::exists(file), file != paths_.checkpoint(8)) << file;
    EXPECT_FALSE(std::filesystem::exists(TemporaryOf(file))) << file;
  }
  EXPECT_TRUE(std::filesystem::exists(thesis));
}

TEST_F(RunPathsTest, OnlyOneHoldsTheLock) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  using Use = RunLock::Use;
  for (const auto& [mine, other] : {std::pair{Use::kControl, Use::kControl},
                                    {Use::kControl, Use::kRead},
                                    {Use::kRead, Use::kControl},
                                    {Use::kRead, Use::kRead}}) {
    const auto lock = RunLock::Acquire(paths_, mine);
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(RunLock::Acquire(paths_, other).status().code(), absl::StatusCode::kAborted);
  }
  EXPECT_TRUE(RunLock::Acquire(paths_, Use::kControl).ok());
}

TEST_F(RunPathsTest, WhoLooksWhetherThereIsAControllerDisturbsNobody) {
  ASSERT_TRUE(CreateRunFolder(paths_, "").ok());
  EXPECT_FALSE(RunLock::IsControlled(paths_).value());
  {
    const auto reader = RunLock::Acquire(paths_, RunLock::Use::kRead);
    EXPECT_FALSE(RunLock::IsControlled(paths_).value());
  }
  const auto lock = RunLock::Acquire(paths_, RunLock::Use::kControl);
  EXPECT_TRUE(RunLock::IsControlled(paths_).value());
  EXPECT_FALSE(RunLock::Acquire(paths_, RunLock::Use::kControl).ok());  // looking has freed nothing
}

TEST_F(RunPathsTest, WhoLooksIsNotHeldUpByAFifoInPlaceOfTheLock) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  EXPECT_TRUE(CheckRunFiles(paths_).ok());
  std::filesystem::remove(paths_.lock());
  ASSERT_EQ(mkfifo(paths_.lock().c_str(), 0600), 0);
  EXPECT_FALSE(RunLock::IsControlled(paths_).value_or(false));
  EXPECT_THAT(std::string(CheckRunFiles(paths_).message()), HasSubstr(paths_.lock().string()));
}

TEST_F(RunPathsTest, ALockThatIsNoFileIsToBeMovedAway) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  const auto check = [this](const std::string& what) {
    for (const RunLock::Use use : {RunLock::Use::kControl, RunLock::Use::kRead}) {
      EXPECT_THAT(
          std::string(RunLock::Acquire(paths_, use).status().message()),
          AllOf(StartsWith(paths_.lock().string() + ": is " + what), HasSubstr("move it away")));
    }
    EXPECT_THAT(std::string(CheckRunFiles(paths_).message()), HasSubstr("move it away"));
    const auto controlled = RunLock::IsControlled(paths_);
    EXPECT_TRUE(controlled.ok()) << controlled.status();
    EXPECT_FALSE(controlled.value_or(true));
    std::filesystem::remove(paths_.lock());
  };
  std::filesystem::create_directory(paths_.lock());
  check("a folder");
  std::filesystem::create_symlink("lock", paths_.lock());
  check("a link that leads to itself");
  EXPECT_TRUE(RunLock::Acquire(paths_, RunLock::Use::kControl).ok());
}

TEST_F(RunPathsTest, WhatIsInPlaceOfTheDataFolderIsNamedWithWhatToDo) {
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  const auto check = [this](const std::string& what) {
    for (const absl::Status& status : {CheckRunFiles(paths_), CheckDataFolder(paths_)}) {
      EXPECT_THAT(std::string(status.message()),
                  AllOf(StartsWith(paths_.data().string() + ": is " + what),
                        HasSubstr("move it away and put the run's own data folder back")));
    }
    std::filesystem::remove(paths_.data());
  };
  std::filesystem::remove(paths_.data());
  ASSERT_EQ(mkfifo(paths_.data().c_str(), 0600), 0);
  check("a FIFO");
  std::ofstream(paths_.data()) << "text";
  check("a file");
  std::filesystem::create_symlink("data", paths_.data());
  check("a link that leads to itself");
  EXPECT_TRUE(CheckRunFiles(paths_).ok());  // who opens it says that it is missing
}

TEST_F(RunPathsTest, AFolderThatIsNotInItsPlaceIsNoticed) {
  const std::filesystem::path aside = paths_.root.string() + ".aside";
  ASSERT_TRUE(CreateRunFolder(paths_, "job").ok());
  const auto folder = RunFolder::Open(paths_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(folder->CheckInPlace().ok());
  for (const std::filesystem::path& place : {paths_.root, paths_.data()}) {
    std::filesystem::rename(place, aside);
    const absl::Status gone = folder->CheckInPlace();
    EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
    EXPECT_THAT(std::string(gone.message()), HasSubstr(place.string() + ";"));
    std::filesystem::create_directory(place);  // another
    EXPECT_FALSE(folder->CheckInPlace().ok());
    std::filesystem::remove(place);
    std::filesystem::rename(aside, place);
    EXPECT_TRUE(folder->CheckInPlace().ok());
  }
}

TEST_F(RunPathsTest, WhatCannotBeMadeWholeLeavesNothingBehind) {
  const RunPaths inner(paths_.root / "runs" / "first");
  for (const bool is_there : {false, true}) {
    if (is_there) {
      std::filesystem::create_directories(inner.root);
    }
    {
      const FullDisk full;
      EXPECT_THAT(std::string(CreateRunFolder(inner, "job").message()),
                  HasSubstr(inner.job().string()));
    }
    EXPECT_EQ(std::filesystem::exists(paths_.root), is_there);
    EXPECT_EQ(std::filesystem::exists(inner.root), is_there);
    EXPECT_FALSE(std::filesystem::exists(inner.logs()));
  }
  EXPECT_TRUE(CreateRunFolder(inner, "job").ok());
  EXPECT_EQ(ReadFile(inner.job(), 100).value(), "job");
}

}  // namespace
}  // namespace adamant::local
