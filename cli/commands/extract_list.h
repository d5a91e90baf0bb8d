// ExtractList: a csv of paths and classes with which extracted images can be packed again with
// their labels, and next to it a file of the classes for --classes.
//
//   absl::StatusOr<ExtractList> list = ExtractList::Create("labels.csv", "again", dataset, line);
//   list->Add("cat/1.jpg", 2, {"txt"});            // each image that was written
//   absl::StatusOr<std::string> command = list->Write();
//
// Names are written unchanged, in quotes if csv needs them. A list has one split, which the command
// names.
//
// Lifetime: borrows the dataset.
// Thread-safety: one caller.
// Errors: Create: InvalidArgument for a list inside OUT or the dataset, and for a dataset with
// several splits of which none is selected (the message says what to type); FailedPrecondition for
// existing files. Write: InvalidArgument if a list cannot express these labels, and nothing is
// written; I/O.
// Memory: the csv's text, and 16 bytes per image.
#ifndef SHARDPACK_CLI_COMMANDS_EXTRACT_LIST_H_
#define SHARDPACK_CLI_COMMANDS_EXTRACT_LIST_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "readers/dataset/dataset.h"

namespace shardpack::cli {

class ExtractList {
 public:
  // `inputs` and `out` as given to the command `line`.
  static absl::StatusOr<ExtractList> Create(const Dataset& dataset,
                                            std::span<const std::string> inputs,
                                            const std::string& out, const CommandLine& line);

  // `parts`: the --fields names of the files that were written next to the image.
  void Add(const std::string& path, int64_t label, std::span<const std::string> parts);
  uint64_t images() const { return labels_.size(); }

  // Writes the files, and returns the command that packs the list.
  absl::StatusOr<std::string> Write() const;

 private:
  explicit ExtractList(const Dataset& dataset) : dataset_(dataset) {}
  absl::StatusOr<bool> NeedsClassFile() const;
  std::string Command(bool class_file) const;

  const Dataset& dataset_;
  std::string file_, out_, split_;
  std::string rows_;        // of the csv, each with a label, possibly empty
  std::string plain_rows_;  // the same without labels
  std::string unsayable_;   // why a list cannot express the labels; "" if it can
  uint64_t labelled_ = 0;
  std::vector<bool> seen_;                              // per class
  std::map<std::string, uint64_t> parts_;               // number of images with each
  absl::flat_hash_map<uint64_t, int64_t> labels_ = {};  // by hash of the path
};

// The commands that extract again with a list, one line per split; their output folders begin with
// `out`.
std::string CommandsWithList(const Dataset& dataset, std::span<const std::string> inputs,
                             const std::string& out, const CommandLine& line);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_EXTRACT_LIST_H_
