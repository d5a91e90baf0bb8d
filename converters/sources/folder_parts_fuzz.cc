// Parts of a folder, as other processes have written them: whatever the bytes are, they are
// refused, or make a listing whose paths stay in the folder.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "converters/planning/plan_bytes.h"
#include "converters/sources/folder_listing.h"
#include "converters/sources/folder_parts.h"
#include "formats/io/hash.h"
#include "formats/io/relative_path.h"
#include "formats/testing/scratch_folder.h"

namespace {

using namespace shardpack;

constexpr size_t kDigestBytes = 16;

// Of one part, which is the whole source.
const FolderDivision& Whole() {
  static const FolderDivision& whole =
      *new FolderDivision{.parts = {{""}}, .mark = {.high = 7, .low = 9}};
  return whole;
}

// A real part to start from, without its hash.
std::string MakeSeed() {
  const testing::ScratchFolder scratch;
  for (const char* name :
       {"cat/1.jpg", "cat/.hidden/2.jpg", "dog/._3.jpg", "dog/notes.doc", "4.jpg"}) {
    std::filesystem::create_directories(std::filesystem::path(scratch.File(name)).parent_path());
    std::ofstream(scratch.File(name)) << "bytes";
  }
  std::filesystem::create_symlink("..", scratch.File("cat/loop"));
  IoPool pool(2);
  std::atomic<uint64_t> listed = 0;
  const std::atomic<int> stop = 0;
  const SourceFolder root = *OpenSourceFolder(scratch.path());
  const FolderSourceOptions options;
  std::string bytes = *FolderPartLister(root, options, Whole(), pool, listed, stop).List(0);
  bytes.resize(bytes.size() - kDigestBytes);
  return bytes;
}

void Run(std::string bytes) {
  const Digest digest = Xxh3_128(AsBytes(bytes));
  PlanBytesWriter footer;
  footer.Number(digest.low);
  footer.Number(digest.high);
  bytes += footer.Take();
  FolderParts parts(Whole());
  if (!parts.Add(0, bytes).ok()) return;
  const absl::StatusOr<FolderWalk> walk = std::move(parts).Join("/source");
  if (!walk.ok()) return;
  for (uint64_t row = 0; row < walk->listing.rows(); ++row) {
    if (!IsPlainPath(walk->listing.Path(row))) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string& seed = *new std::string(MakeSeed());
  Run(std::string(reinterpret_cast<const char*>(data), size));
  std::string changed = seed;
  constexpr size_t kChange = 3;  // two bytes say where, one what
  for (size_t i = 0; i + kChange <= size; i += kChange)
    changed[(size_t{data[i]} << 8 | data[i + 1]) % changed.size()] ^=
        static_cast<char>(data[i + 2]);
  Run(std::move(changed));
  return 0;
}
