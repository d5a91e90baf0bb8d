// Extractor: writes the samples of a dataset as the files that they were packed from.
//
//   Extractor extractor(dataset, tree, LabelText, observer);
//   absl::Status extracted = extractor.Extract(row);   // each sample
//   absl::Status finished = tree.Finish();
//
// An image gets its source path, every other field the path of its image with another ending, and a
// label that a shard of third parties spells out a file `.cls`. Paths are made harmless first
// (extract_path.h). The files of one sample stay together.
//
// Lifetime: borrows all arguments.
// Thread-safety: one caller of Extract; the atomic counts from any thread.
// Errors: errors of OutputTree, and of reading, unless they say that a sample is damaged: then what
// is damaged is withheld, which the observer is told.
// Memory: the files of one sample.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_EXTRACTING_EXTRACTOR_H_
#define SHARDPACK_CONVERTERS_EXTRACTING_EXTRACTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/extracting/output_tree.h"
#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/sample_row.h"

namespace shardpack {

class ExtractObserver {
 public:
  virtual ~ExtractObserver() = default;
  // A sample's source path, or its key; `label_file`: its label was written as a file.
  virtual void OnSample(const std::string& path, int64_t label, bool label_file) = 0;
  // An image was written. `parts`: the --fields names of the files that were written next to it.
  virtual void OnImage(const std::string& path, int64_t label,
                       std::span<const std::string> parts) = 0;
  // A file has another name than `wanted`; `harmless`: that name with its harmful characters
  // escaped.
  virtual void OnRenamed(const std::string& wanted, const std::string& harmless,
                         const std::string& written) = 0;
  // A sample, or a field of it, was not written.
  virtual void OnWithheld(std::string_view key, const std::string& why) = 0;
};

class Extractor {
 public:
  // Reads the label of the record at [offset, offset + length) as it is spelled in a shard whose
  // format stores it as a file (formats/webdataset/label_text.h).
  using LabelReader = std::function<absl::StatusOr<std::optional<std::string>>(
      const File& shard, uint64_t offset, uint64_t length)>;

  Extractor(const Dataset& dataset, OutputTree& out, LabelReader read_label,
            ExtractObserver& observer);

  // Extracts one sample. An error ends the run; a withheld file does not.
  absl::Status Extract(const SampleRow& row);

  std::atomic<uint64_t> files = 0, bytes = 0;
  std::map<std::string, uint64_t> of_field;  // files

 private:
  struct FileName {
    std::string stem, ending;
  };
  struct Pending {
    std::string field;
    FileName name;
    std::string content;
  };

  absl::StatusOr<std::optional<std::string>> LabelFile(const SampleRow& row);
  std::string WithItsEnding(std::string_view path, ImageFormat format) const;
  FileName NameOf(const SampleRow& row, const std::string& field) const;
  std::string PartOf(const std::string& field) const;
  void Add(std::string field, FileName name);
  absl::Status WriteAll(const SampleRow& row, bool label_file);

  const Dataset& dataset_;
  OutputTree& out_;
  const LabelReader read_label_;
  ExtractObserver& observer_;
  const std::map<std::string, std::string> suffixes_;
  const bool made_json_;
  std::vector<Pending> pending_;  // of the current sample
  std::string content_;           // of the current field
  File shard_;                    // the shard of the last label read
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_EXTRACTING_EXTRACTOR_H_
