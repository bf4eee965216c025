#include "operator/local/run_folder/socket_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>

#include "services/common/base/system/files.h"
#include "services/common/base/system/listen.h"

namespace adamant::local {
namespace {

using controller::Role;
using testing::ElementsAre;
using testing::HasSubstr;

class SocketFolderTest : public testing::Test {
 protected:
  SocketFolderTest() { std::filesystem::create_directories(paths_.root); }
  ~SocketFolderTest() override { std::filesystem::remove_all(paths_.root); }

  absl::StatusOr<SocketFolder> Make() { return SocketFolder::Make(paths_, {"/tmp"}); }

  static std::filesystem::path FolderOf(const SocketFolder& sockets) {
    return std::filesystem::path(sockets.address().substr(5)).parent_path();
  }

  // As a program that is killed leaves its folder: a descriptor that is closed holds no lock.
  std::filesystem::path LeaveBehind() {
    std::string folder = "/tmp/adamant-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    EXPECT_TRUE(WriteFileAtomically(paths_.endpoint(), "unix:" + folder + "/c\n").ok());
    return folder;
  }

  const RunPaths paths_{std::filesystem::temp_directory_path() /
                        ("adamant_sockets_" + std::to_string(getpid()))};
};

TEST_F(SocketFolderTest, NobodyElseMayEnterIt) {
  const auto sockets = Make();
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  struct stat about {};
  ASSERT_EQ(stat(FolderOf(*sockets).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700u);
  EXPECT_EQ(about.st_uid, geteuid());
}

TEST_F(SocketFolderTest, IsGoneWithItsSockets) {
  std::filesystem::path folder;
  {
    auto sockets = Make();
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    const SocketFolder moved = *std::move(sockets);
    folder = FolderOf(moved);
    const auto listener = Listen(moved.address());
    ASSERT_TRUE(listener.ok()) << listener.status();
    close(listener->socket);
    EXPECT_TRUE(std::filesystem::exists(folder / "c"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(SocketFolderTest, EachGenerationOfAServerHasSocketsOfItsOwn) {
  const auto sockets = Make();
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  const std::string at = "unix:" + FolderOf(*sockets).string();
  std::vector<std::string> flags = {"first"};
  sockets->AddFlags({Role::kParameterServer, 2}, 3, flags);
  EXPECT_THAT(flags,
              ElementsAre("first", "--listen", at + "/p2.3", "--replication-listen", at + "/r2.3"));
  flags.clear();
  sockets->AddFlags({Role::kDataServer, 0}, 1, flags);
  EXPECT_THAT(flags, ElementsAre("--listen", at + "/d0.1"));
  flags.clear();
  sockets->AddFlags({Role::kWorker, 0}, 1, flags);
  EXPECT_THAT(flags, ElementsAre());
}

TEST_F(SocketFolderTest, TheLongestAddressIsListenedAt) {
  constexpr std::size_t kLongestParent = 60 - std::string_view("/adamant-XXXXXX").size();
  const std::string parent = paths_.root.string() + "/" +
                             std::string(kLongestParent - 1 - paths_.root.string().size(), 'x');
  std::filesystem::create_directory(parent);
  std::filesystem::permissions(parent, std::filesystem::perms::owner_all);
  const auto sockets = SocketFolder::Make(paths_, {parent});
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  std::vector<std::string> flags;
  sockets->AddFlags({Role::kParameterServer, std::numeric_limits<std::uint32_t>::max()},
                    std::numeric_limits<std::uint64_t>::max(),
                    flags);
  const auto listener = Listen(flags[1]);
  ASSERT_TRUE(listener.ok()) << listener.status();
  close(listener->socket);

  std::filesystem::create_directory(parent + "y");
  const auto longer = SocketFolder::Make(paths_, {parent + "y"});
  EXPECT_THAT(std::string(longer.status().message()), HasSubstr("too long for sockets"));
}

TEST_F(SocketFolderTest, WhereOthersMayMoveItItIsNotMade) {
  std::filesystem::permissions(paths_.root, std::filesystem::perms::all);
  const auto open = SocketFolder::Make(paths_, {paths_.root});
  EXPECT_TRUE(absl::IsUnavailable(open.status()));
  EXPECT_THAT(std::string(open.status().message()), HasSubstr("other users may move"));
  std::filesystem::permissions(paths_.root,
                               std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
  EXPECT_TRUE(SocketFolder::Make(paths_, {paths_.root}).ok());
}

TEST_F(SocketFolderTest, WhereOthersMayMoveAFolderAboveItIsNotMade) {
  const std::filesystem::path inner = paths_.root / "mine";
  std::filesystem::create_directory(inner);
  std::filesystem::permissions(inner, std::filesystem::perms::owner_all);
  std::filesystem::permissions(paths_.root, std::filesystem::perms::all);
  const auto open = SocketFolder::Make(paths_, {inner});
  EXPECT_THAT(std::string(open.status().message()),
              HasSubstr("other users may move what is in " + paths_.root.string()));
}

// Who may move the run has it.
TEST_F(SocketFolderTest, OfTheRunsFolderNoneAboveIsLookedAt) {
  std::filesystem::permissions(paths_.root, std::filesystem::perms::all);
  const RunPaths inner{paths_.root / "run"};
  std::filesystem::create_directory(inner.root);
  std::filesystem::permissions(inner.root, std::filesystem::perms::owner_all);
  const auto sockets = SocketFolder::Make(inner, {inner.root});
  EXPECT_TRUE(sockets.ok()) << sockets.status();
  std::filesystem::permissions(inner.root, std::filesystem::perms::all);
  EXPECT_FALSE(SocketFolder::Make(inner, {inner.root}).ok());
}

TEST_F(SocketFolderTest, APlaceIsTakenByItsPathWithoutLinks) {
  const std::filesystem::path link = paths_.root / "link";
  std::filesystem::create_directory_symlink("/tmp", link);
  const auto sockets = SocketFolder::Make(paths_, {link});
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_EQ(FolderOf(*sockets).parent_path(), "/tmp");
}

// As who may move a folder above could have it: our own descriptor says which one it is.
TEST_F(SocketFolderTest, WhatIsInAnotherFolderByThatNameIsLeft) {
  const std::filesystem::path other = paths_.root / "other";
  std::filesystem::create_directory(other);
  const auto listener = Listen("unix:" + (other / "s").string());
  ASSERT_TRUE(listener.ok()) << listener.status();
  close(listener->socket);
  std::filesystem::path folder;
  {
    const auto sockets = Make();
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    folder = FolderOf(*sockets);
    std::filesystem::rename(folder, paths_.root / "moved");
    std::filesystem::create_directory_symlink(other, folder);
  }
  EXPECT_TRUE(std::filesystem::exists(other / "s"));
  std::filesystem::remove(folder);
}

TEST_F(SocketFolderTest, TheFirstPlaceThatWillDoIsTaken) {
  std::filesystem::create_directory(paths_.root / "a,b");
  const auto sockets =
      SocketFolder::Make(paths_, {"/nowhere", paths_.root / "a,b", "/dev/null", "/tmp"});
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_EQ(FolderOf(*sockets).parent_path(), "/tmp");
  const auto none = SocketFolder::Make(paths_, {"/nowhere", paths_.root / "a,b", "/dev/null"});
  EXPECT_THAT(std::string(none.status().message()),
              testing::AllOf(HasSubstr("/nowhere: No such file"),
                             HasSubstr("other characters"),
                             HasSubstr("/dev/null: it is no folder"),
                             HasSubstr("TMPDIR")));
}

TEST_F(SocketFolderTest, WhatAKilledProgramLeftIsRemoved) {
  const std::filesystem::path left = LeaveBehind();
  const auto listener = Listen("unix:" + (left / "p0.1").string());
  ASSERT_TRUE(listener.ok()) << listener.status();
  close(listener->socket);
  ASSERT_TRUE(Make().ok());
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(SocketFolderTest, WhatAProgramUsesOrIsNotOursIsLeft) {
  const auto other = Make();
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(WriteFileAtomically(paths_.endpoint(), other->address() + "\n").ok());
  ASSERT_TRUE(Make().ok());
  EXPECT_TRUE(std::filesystem::exists(FolderOf(*other)));

  const std::filesystem::path open = LeaveBehind();
  std::filesystem::permissions(open, std::filesystem::perms::all);
  ASSERT_TRUE(Make().ok());
  EXPECT_TRUE(std::filesystem::remove(open));

  const std::filesystem::path filled = LeaveBehind();
  ASSERT_TRUE(WriteFileAtomically(filled / "file", "").ok());
  ASSERT_TRUE(Make().ok());
  EXPECT_TRUE(std::filesystem::exists(filled / "file"));
  std::filesystem::remove_all(filled);
}

TEST_F(SocketFolderTest, TMPDIRComesFirstWhereItIsSet) {
  ASSERT_EQ(setenv("TMPDIR", "/var/tmp", 1), 0);
  EXPECT_THAT(SocketFolder::Parents(paths_), ElementsAre("/var/tmp", "/tmp", paths_.root));
  ASSERT_EQ(setenv("TMPDIR", "", 1), 0);
  EXPECT_THAT(SocketFolder::Parents(paths_), ElementsAre("/tmp", paths_.root));
  ASSERT_EQ(unsetenv("TMPDIR"), 0);
}

}  // namespace
}  // namespace adamant::local
