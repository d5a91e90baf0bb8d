// Makes what large clusters leave in a folder, without packing it, and measures what workers do
// there:
//
//   cluster_bench plan ROWS PER_SHARD ROOT IMAGE FILE    a plan of files that need not exist
//   cluster_bench files FILE SHARD IMAGE                 the files of one of its shards
//   cluster_bench state FILE OUT WORKERS                 OUT as if all its shards were built
//   cluster_bench claim OUT SHARDS                       leases taken per second
//
// Each prints what it took: seconds, and the peak of memory where that matters.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/run_stage.h"
#include "converters/publishing/shard_claims.h"
#include "formats/core/index_name.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kFolders = 1000;
constexpr int64_t kTime = 1'700'000'000'000'000'000;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double PeakMegabytes() {
  struct rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

uint64_t Number(const char* text) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) std::exit(2);
  return number;
}

Listing MakeListing(uint64_t rows, const std::string& root, uint64_t image_bytes) {
  Listing listing;
  listing.root = root;
  for (uint64_t f = 0; f < kFolders; ++f) {
    listing.folders.push_back(absl::StrFormat("class%04d", f));
    listing.classes.push_back(listing.folders.back());
  }
  listing.folder.reserve(rows);
  listing.name_ends.reserve(rows);
  listing.names.reserve(rows * 20);
  listing.bytes.assign(rows, image_bytes);
  listing.mtime_ns.assign(rows, kTime);
  listing.label.reserve(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    const auto folder = static_cast<uint32_t>(row * kFolders / rows);
    listing.folder.push_back(folder);
    listing.label.push_back(static_cast<int32_t>(folder));
    listing.names += absl::StrFormat("n%08d_%05d.jpeg", row, row % 100'000);
    listing.name_ends.push_back(listing.names.size());
  }
  return listing;
}

absl::Status MakePlan(uint64_t rows, uint64_t per_shard, const std::string& root,
                      const std::string& image, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(image, uint64_t{1} << 30));
  PlanOptions options;
  options.samples_per_shard = per_shard;
  options.shuffle = true;
  const double begin = Now();
  Listing listing = MakeListing(rows, root, bytes.size());
  const double listed = Now();
  ASSIGN_OR_RETURN(const Plan plan,
                   Plan::Make(std::move(listing), options, *FindFormat("webdataset")));
  const double planned = Now();
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(path));
  uint64_t written = 0;
  RETURN_IF_ERROR(plan.WriteTo([&](std::string_view part) {
    written += part.size();
    return file.Write(std::array{AsBytes(part)});
  }));
  RETURN_IF_ERROR(file.Close());
  absl::PrintF(
      "%d rows, %d shards: listing %.1f s, plan %.1f s, writing %.1f s, %.1f B a row, peak %.0f "
      "MB\n",
      rows, plan.shards().size(), listed - begin, planned - listed, Now() - planned,
      static_cast<double>(written) / static_cast<double>(rows), PeakMegabytes());
  return absl::OkStatus();
}

absl::Status MakeFiles(const std::string& path, size_t shard, const std::string& image) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(image, uint64_t{1} << 30));
  ASSIGN_OR_RETURN(PlanFile mapped, MapPlan(path));
  ASSIGN_OR_RETURN(const Plan plan, Plan::Open(std::move(mapped), FindFormat));
  RETURN_IF_ERROR(plan.CheckSlice(shard));
  const PlannedShard& planned = plan.shards()[shard];
  for (uint64_t p = planned.first; p < planned.first + planned.count; ++p) {
    const std::string name = plan.listing().root + "/" + plan.listing().Path(plan.row(p));
    std::filesystem::create_directories(std::filesystem::path(name).parent_path());
    ASSIGN_OR_RETURN(File file, File::CreateExclusive(name));
    RETURN_IF_ERROR(file.Write(std::array{AsBytes(bytes)}));
    const struct timespec times[2] = {{kTime / 1'000'000'000, 0}, {kTime / 1'000'000'000, 0}};
    if (::futimens(file.descriptor(), times) != 0) return IoStatus("touch", name, errno);
    RETURN_IF_ERROR(file.Close());
  }
  return absl::OkStatus();
}

// Files of the right size, with nothing in them.
absl::Status MakeFile(const std::string& path, uint64_t bytes) {
  ASSIGN_OR_RETURN(File file, File::CreateExclusive(path));
  if (::ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0)
    return IoStatus("truncate", path, errno);
  return file.Close();
}

absl::Status MakeState(const std::string& path, const std::string& out, size_t workers) {
  ASSIGN_OR_RETURN(PlanFile mapped, MapPlan(path));
  ASSIGN_OR_RETURN(const Plan plan, Plan::Open(std::move(mapped), FindFormat));
  std::filesystem::create_directories(out + "/.pack/stage");
  std::filesystem::create_directories(out + "/.pack/owners");
  std::filesystem::create_directories(out + "/.pack/failed");
  std::filesystem::copy_file(path, out + "/.pack/plan");
  std::vector<std::unique_ptr<Journal>> journals;
  std::vector<std::string> leases;
  for (size_t w = 0; w < workers; ++w) {
    const std::string owner =
        absl::StrFormat("node%03d-0a1b2c3d-%d-00000000000000%02x", w, w + 1, w % 256);
    ASSIGN_OR_RETURN(auto journal, Journal::Open(out + "/" + WorkersJournal(owner), false));
    journals.push_back(std::move(journal));
    leases.push_back(out + "/.pack/" + owner);
    ASSIGN_OR_RETURN(File file, File::CreateExclusive(leases.back()));
    RETURN_IF_ERROR(file.Write(std::array{AsBytes(owner)}));
    RETURN_IF_ERROR(file.Close());
  }
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    const PlannedShard& shard = plan.shards()[n];
    const auto number = static_cast<uint32_t>(n);
    ShardResult result;
    result.shard = number;
    result.file = {plan.DataFile(n), 10'240, Digest{.high = n, .low = 1}};
    result.index = {IndexName(shard.name), 1'000, Digest{.high = n, .low = 2}};
    result.records = shard.count;
    result.facts.image_formats["jpg"] = shard.count;
    result.plan = plan.digest();
    result.times = plan.ShardTimes(n);
    RETURN_IF_ERROR(MakeFile(out + "/" + result.file.name, result.file.bytes));
    RETURN_IF_ERROR(MakeFile(out + "/" + result.index.name, result.index.bytes));
    RETURN_IF_ERROR(journals[n % workers]->AppendPending(result));
    RETURN_IF_ERROR(journals[n % workers]->Append(result));
    const std::string lease = out + "/" + LeaseName(number, 1);
    if (n % 1000 == 0) std::filesystem::create_directories(out + "/" + LeaseFolderName(number));
    if (::link(leases[n % workers].c_str(), lease.c_str()) != 0)
      return IoStatus("link", lease, errno);
  }
  for (const std::string& lease : leases) std::filesystem::remove(lease);
  return absl::OkStatus();
}

absl::Status ClaimAll(const std::string& out, size_t shards) {
  std::filesystem::create_directories(out + "/.pack/stage");
  ASSIGN_OR_RETURN(const std::unique_ptr<RunStage> stage, RunStage::Create(out));
  const double begin = Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardClaims> claims,
                   ShardClaims::Create(out, *stage, WorkerOptions{.join = true}, shards));
  const double ready = Now();
  for (uint32_t n = 0; n < shards; ++n) {
    ASSIGN_OR_RETURN(const bool mine, claims->Claim(n));
    if (mine) claims->SetFinished(n, 1);
  }
  absl::PrintF("%d leases in %.2f s: %.0f a second; beginning %.3f s\n", shards, Now() - ready,
               static_cast<double>(shards) / (Now() - ready), ready - begin);
  return absl::OkStatus();
}

absl::Status Run(const std::vector<char*>& words) {
  const std::string verb = words.size() > 1 ? words[1] : "";
  if (verb == "plan" && words.size() == 7)
    return MakePlan(Number(words[2]), Number(words[3]), words[4], words[5], words[6]);
  if (verb == "files" && words.size() == 5) return MakeFiles(words[2], Number(words[3]), words[4]);
  if (verb == "state" && words.size() == 5) return MakeState(words[2], words[3], Number(words[4]));
  if (verb == "claim" && words.size() == 4) return ClaimAll(words[2], Number(words[3]));
  return absl::InvalidArgumentError("see the head of cluster_bench.cc");
}

}  // namespace
}  // namespace shardpack

int main(int argc, char** argv) {
  const absl::Status status = shardpack::Run(std::vector<char*>(argv, argv + argc));
  if (!status.ok()) absl::FPrintF(stderr, "%s\n", std::string(status.message()));
  return status.ok() ? 0 : 1;
}
