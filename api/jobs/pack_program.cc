#include "api/jobs/pack_program.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/jobs/child_process.h"
#include "formats/io/error_facts.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience(10);

// The first line that the program writes, of at most a few hundred bytes. DeadlineExceeded if it
// does not come.
absl::StatusOr<std::string> FirstLine(int descriptor, const std::string& program) {
  constexpr size_t kMost = 512;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  while (text.size() < kMost && text.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(program, " --version has not answered within ", kPatience.count(), " s"));
    }
    pollfd polled = {.fd = descriptor, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    char piece[256];
    const ssize_t got = ::read(descriptor, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text.substr(0, text.find('\n'));
}

// "0.2.0" of "pack 0.2.0 (shardpack, commit ...)"; "" for a program that is not Shardpack's.
absl::StatusOr<std::string> VersionOf(const std::string& program) {
  ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(program, {"--version"}));
  ASSIGN_OR_RETURN(const std::string line, FirstLine(child.out(), program));
  constexpr std::string_view kBefore = "pack ", kAfter = " (shardpack,";
  const size_t after = line.find(kAfter);
  if (!line.starts_with(kBefore) || after == std::string::npos) return std::string();
  return line.substr(kBefore.size(), after - kBefore.size());
}

// The file that this code was loaded from, as the kernel knows it; empty if it cannot be said.
fs::path FileOfThisCode() {
  const auto here = reinterpret_cast<uintptr_t>(&FileOfThisCode);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // "7f00-7f10 r-xp 00000000 00:00 1234      /usr/lib/libshardpack.so.0"
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2) continue;
    if (here < begin || here >= end) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? fs::path() : fs::path(line.substr(path));
  }
  return {};
}

// Where this code lies: in the library, or in the program that holds it.
std::vector<fs::path> FoldersOfThisCode() {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& file) {
    if (file.is_absolute()) folders.push_back(file.parent_path());
  };
  // By the name that it was loaded by, which may be a link, unless it is relative: to the working
  // folder of that time.
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&FoldersOfThisCode), &info) != 0 &&
      info.dli_fname != nullptr) {
    add(info.dli_fname);
  }
  add(FileOfThisCode());
  return folders;
}

// Beside the library, or in the bin of the prefix in whose lib it is, as in Debian's
// lib/x86_64-linux-gnu. Not above the prefix, where others may write.
void AddBeside(const fs::path& folder, std::vector<std::string>& found) {
  constexpr int kMostFolders = 4;
  const auto add = [&](const fs::path& prefix) {
    std::string program = (prefix / "bin" / "pack").string();
    if (std::ranges::find(found, program) == found.end()) found.push_back(std::move(program));
  };
  add(folder);
  add(folder.parent_path());
  fs::path lib = folder;
  for (int n = 0; n < kMostFolders; ++n, lib = lib.parent_path()) {
    const std::string name = lib.filename().string();
    if (name == "lib" || name == "lib64" || name == "lib32" || name == "libx32")
      return add(lib.parent_path());
  }
}

std::vector<std::string> Candidates() {
  std::vector<std::string> found;
  for (const fs::path& folder : FoldersOfThisCode()) AddBeside(folder, found);
  const char* variable = ::getenv("PATH");
  std::string_view path = variable == nullptr ? std::string_view() : variable;
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), folder.size() + 1));
    // An empty part, or a relative one, would be whatever folder the program happens to be in.
    if (folder.starts_with('/')) found.push_back((fs::path(folder) / "pack").string());
  }
  return found;
}

absl::Status OtherVersion(const std::string& program, const std::string& found,
                          std::string_view wanted) {
  return absl::UnimplementedError(
      absl::StrCat(program, " is pack ", found, ", and this library is of Shardpack ",
                   std::string(wanted), ", which starts no other; SHARDPACK_PACK=FILE names one"));
}

// A folder may be executed as well, in its way.
bool IsProgram(const std::string& path) {
  std::error_code error;
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, error);
}

// Whether a program could not be started for what it is itself: its interpreter is absent, its
// permissions, another machine's code; or it does not answer.
bool IsOfTheProgram(const absl::Status& status) {
  if (absl::IsDeadlineExceeded(status)) return true;
  switch (FactsOf(status).system_errno.value_or(0)) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case ETXTBSY:
      return true;
    default:
      return false;
  }
}

// The one that the user names.
absl::StatusOr<std::string> Named(const char* name, std::string_view wanted) {
  std::error_code failed;
  const std::string program = fs::absolute(name, failed).string();
  if (failed) {
    return WithFacts(absl::NotFoundError(absl::StrCat(
                         "there is no working folder for the program ", name,
                         ", which the variable SHARDPACK_PACK names: ", failed.message())),
                     {.system_errno = failed.value(), .path = name});
  }
  if (!IsProgram(program)) {
    return WithFacts(absl::NotFoundError(absl::StrCat("there is no program ", program,
                                                      ", which the variable SHARDPACK_PACK names")),
                     {.path = program});
  }
  ASSIGN_OR_RETURN(const std::string version, VersionOf(program));
  if (version.empty()) {
    return absl::UnimplementedError(absl::StrCat(
        program, ", which the variable SHARDPACK_PACK names, is not the pack of Shardpack"));
  }
  if (version != wanted) return OtherVersion(program, version, wanted);
  return program;
}

}  // namespace

absl::StatusOr<std::string> FindPack(std::string_view version) {
  const char* named = ::getenv("SHARDPACK_PACK");
  if (named != nullptr && *named != '\0') return Named(named, version);
  absl::Status other;  // the first one of another version
  std::vector<std::string> looked;
  for (const std::string& program : Candidates()) {
    if (!IsProgram(program)) {
      looked.push_back(program);
      continue;
    }
    const absl::StatusOr<std::string> found = VersionOf(program);
    if (found.ok() && *found == version) return program;
    if (!found.ok() && !IsOfTheProgram(found.status())) return found.status();
    if (found.ok() && !found->empty() && other.ok()) other = OtherVersion(program, *found, version);
    looked.push_back(
        absl::StrCat(program, found.ok() ? (found->empty() ? " (another tool)" : "")
                                         : absl::StrCat(" (", found.status().message(), ")")));
  }
  if (!other.ok()) return other;
  return absl::NotFoundError(absl::StrCat(
      "no program pack, which jobs start, at any of these places: ", absl::StrJoin(looked, ", "),
      "; the variable SHARDPACK_PACK can name one"));
}

}  // namespace shardpack
