#include "validators/looking/contact_sheet.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "formats/core/class_name.h"
#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "validators/looking/html_writer.h"
#include "validators/looking/shard_loop.h"

namespace shardpack {
namespace {

constexpr uint32_t kSides[] = {64, 48};
// Of an img element without its picture and names.
constexpr uint64_t kMarkupBytes = 120;
constexpr uint64_t kRowBytes = 80;  // of the head of a class
constexpr size_t kRound = 256;      // classes whose pictures are made together

// Whether the image is not in its file, hash of the key, and row.
using Candidate = std::tuple<bool, uint64_t, uint64_t>;

struct Candidates {  // of a class
  uint64_t samples = 0;
  std::set<Candidate> least;
};

// How much of the shard's file can be read: of a missing one nothing.
uint64_t ReadableBytes(const Dataset& dataset, uint32_t shard) {
  const absl::StatusOr<std::shared_ptr<const File>> file = dataset.OpenFile(shard);
  if (!file.ok()) return 0;
  return (*file)->Size().value_or(0);
}

std::map<int64_t, Candidates> Choose(const SampleRows& rows, size_t each) {
  std::mutex mutex;
  std::map<int64_t, Candidates> classes;
  for (size_t d = 0; d < rows.datasets().size(); ++d) {
    const Dataset& dataset = rows.datasets()[d];
    // A shard whose index is damaged has no pictures.
    (void)ForEachShard(dataset, [&](uint32_t shard, const ShardIndex& index) {
      std::map<int64_t, Candidates> found;
      const auto labels = NumbersOf<int64_t>(index, IndexColumn::kLabels);
      const uint64_t readable = ReadableBytes(dataset, shard);
      const bool whole = readable == dataset.shards()[shard].bytes;
      const std::optional<size_t> image = index.FindField(kImageField);
      const auto gone = [&](uint64_t record) {
        if (whole || !image || !index.has_field(record, *image)) return false;
        const Extent extent = index.field(record, *image);
        return extent.offset + extent.length > readable;
      };
      for (uint64_t record = 0; record < labels.size(); ++record) {
        Candidates& of_class = found[std::max<int64_t>(-1, labels[record])];
        ++of_class.samples;
        const Candidate candidate{gone(record), Xxh3_64(AsBytes(index.key(record))),
                                  rows.first(d) + dataset.shards()[shard].first_id + record};
        if (of_class.least.size() == each && (each == 0 || candidate > *of_class.least.rbegin()))
          continue;
        of_class.least.insert(candidate);
        if (of_class.least.size() > each) of_class.least.erase(std::prev(of_class.least.end()));
      }
      const std::lock_guard lock(mutex);
      for (auto& [label, candidates] : found) {
        Candidates& all = classes[label];
        all.samples += candidates.samples;
        all.least.merge(candidates.least);
        while (all.least.size() > each) all.least.erase(std::prev(all.least.end()));
      }
      return absl::OkStatus();
    });
  }
  return classes;
}

class Sheet {
 public:
  Sheet(const SampleRows& rows, const SheetOptions& options) : rows_(rows), options_(options) {
    for (auto& [label, candidates] : Choose(rows, options.each)) {
      sheet_.rows.push_back({.label = label, .samples = candidates.samples, .pictures = {}});
      chosen_.emplace_back(candidates.least.begin(), candidates.least.end());
    }
    sheet_.classes = sheet_.rows.size();
  }

  ContactSheet Make() {
    for (const uint32_t side : kSides) {
      if (options_.each == 0 || TryRounds(side)) return std::move(sheet_);
    }
    ShowSomeClasses();
    return std::move(sheet_);
  }

 private:
  // Whether at least one picture of every class fits.
  bool TryRounds(uint32_t side);
  void ShowSomeClasses();
  // Makes the pictures of a round for these classes; false, and none is kept, if they do not fit.
  bool AddRound(const std::vector<size_t>& classes, size_t round, uint32_t side);

  // Of the markup of a class's row.
  uint64_t RowBytes(int64_t label) const {
    return kRowBytes + HtmlEscape(ClassName(rows_.datasets()[0].classes(), label)).size();
  }

  const SampleRows& rows_;
  const SheetOptions& options_;
  std::vector<std::vector<Candidate>> chosen_;  // as sheet_.rows
  uint64_t used_bytes_ = 0;
  ContactSheet sheet_;
};

bool Sheet::AddRound(const std::vector<size_t>& classes, size_t round, uint32_t side) {
  std::vector<size_t> with_sample;
  for (const size_t each : classes) {
    if (round < chosen_[each].size()) with_sample.push_back(each);
  }
  std::vector<SheetPicture> pictures;
  MeanImage mean;
  uint64_t bytes = 0;
  for (const size_t each : with_sample) bytes += round > 0 ? 0 : RowBytes(sheet_.rows[each].label);
  if (used_bytes_ + bytes > options_.budget_bytes) return false;
  for (size_t begin = 0; begin < with_sample.size(); begin += kRound) {
    std::vector<uint64_t> which;
    for (size_t i = begin; i < std::min(with_sample.size(), begin + kRound); ++i)
      which.push_back(std::get<2>(chosen_[with_sample[i]][round]));
    for (SheetPicture& picture : MakePictures(rows_, which, side, &mean)) {
      bytes += PageBytes(picture) +
               HtmlEscape(ClassName(rows_.datasets()[0].classes(),
                                    sheet_.rows[with_sample[pictures.size()]].label))
                   .size();
      pictures.push_back(std::move(picture));
    }
    if (used_bytes_ + bytes > options_.budget_bytes) return false;
  }
  used_bytes_ += bytes;
  sheet_.mean.Merge(mean);
  for (size_t i = 0; i < pictures.size(); ++i) {
    sheet_.not_shown += pictures[i].thumbnail.uri.empty() ? 1 : 0;
    sheet_.unread += pictures[i].thumbnail.unread ? 1 : 0;
    sheet_.rows[with_sample[i]].pictures.push_back(std::move(pictures[i]));
  }
  return true;
}

bool Sheet::TryRounds(uint32_t side) {
  sheet_.side = side;
  std::vector<size_t> all(sheet_.rows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  for (size_t round = 0; round < options_.each; ++round) {
    if (!AddRound(all, round, side)) return round > 0;
    sheet_.each = round + 1;
  }
  return true;
}

// The largest and the smallest in turn.
void Sheet::ShowSomeClasses() {
  std::vector<size_t> order(sheet_.rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sheet_.rows[a].samples > sheet_.rows[b].samples;
  });
  std::vector<bool> shown(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t place = i % 2 == 0 ? order[i / 2] : order[order.size() - 1 - i / 2];
    if (!AddRound({place}, 0, sheet_.side)) break;
    shown[place] = true;
    sheet_.each = 1;
  }
  std::vector<SheetRow> rows;
  for (size_t i = 0; i < sheet_.rows.size(); ++i) {
    if (shown[i]) rows.push_back(std::move(sheet_.rows[i]));
  }
  sheet_.rows = std::move(rows);
}

}  // namespace

uint64_t PageBytes(const SheetPicture& picture) {
  return kMarkupBytes + picture.thumbnail.uri.size() +
         HtmlEscape(picture.thumbnail.why_none).size() + 2 * HtmlEscape(picture.key).size();
}

std::vector<SheetPicture> MakePictures(const SampleRows& rows, const std::vector<uint64_t>& which,
                                       uint32_t side, MeanImage* mean) {
  std::vector<SheetPicture> pictures(which.size());
  struct Worker {
    ThumbnailMaker maker;
    MeanImage mean;
  };
  tbb::enumerable_thread_specific<Worker> workers;
  tbb::parallel_for(size_t{0}, which.size(), [&](size_t i) {
    Worker& worker = workers.local();
    pictures[i].row = which[i];
    const absl::StatusOr<RowFacts> facts = rows.Facts(which[i]);
    if (facts.ok()) pictures[i].key = facts->key;
    absl::StatusOr<Thumbnail> thumbnail =
        worker.maker.Make(rows, which[i], side, mean == nullptr ? nullptr : &worker.mean);
    if (thumbnail.ok()) {
      pictures[i].thumbnail = *std::move(thumbnail);
    } else {
      pictures[i].thumbnail.why_none = std::string(thumbnail.status().message());
    }
  });
  // Sums of whole numbers: in any order.
  for (const Worker& worker : workers) {
    if (mean != nullptr) mean->Merge(worker.mean);
  }
  return pictures;
}

ContactSheet MakeContactSheet(const SampleRows& rows, const SheetOptions& options) {
  return Sheet(rows, options).Make();
}

}  // namespace shardpack
