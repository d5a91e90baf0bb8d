// ExtractList: the list that packs extracted images again with the labels that they have: a csv of
// paths and classes, and beside it a file of the classes for --classes.
//
//   absl::StatusOr<ExtractList> list = ExtractList::Create("labels.csv", "again", dataset, line);
//   list->Add("cat/1.jpg", 2, {"txt"});            // each image that was written
//   absl::StatusOr<std::string> command = list->Write();
//
// Names are as they are, in quotes where csv needs them. A list is of one split: the command names
// it.
//
// Lifetime: borrows the dataset.
// Thread-safety: one caller.
// Errors: Create: InvalidArgument for a list that lies in OUT or in the dataset, and for a dataset
// of several splits of which none is chosen, with what to type; FailedPrecondition for files that
// are there. Write: InvalidArgument where no list can say these labels, and nothing is written
// then; I/O.
// Memory: the csv's text, and 16 bytes an image.
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
  // `inputs` and `out` as they are given to the command `line`.
  static absl::StatusOr<ExtractList> Create(const Dataset& dataset,
                                            std::span<const std::string> inputs,
                                            const std::string& out, const CommandLine& line);

  // `parts`: what --sidecars calls the files that were written beside the image.
  void Add(const std::string& path, int64_t label, std::span<const std::string> parts);
  uint64_t images() const { return labels_.size(); }

  // Writes the files, and answers the command that packs what they list.
  absl::StatusOr<std::string> Write() const;

 private:
  explicit ExtractList(const Dataset& dataset) : dataset_(dataset) {}
  absl::StatusOr<bool> NeedsClassFile() const;
  std::string Command(bool class_file) const;

  const Dataset& dataset_;
  std::string file_, out_, split_;
  std::string rows_;        // of the csv, each with a label, which may be empty
  std::string plain_rows_;  // the same without labels
  std::string unsayable_;   // why no list can say the labels; "" where one can
  uint64_t labelled_ = 0;
  std::vector<bool> seen_;                              // per class
  std::map<std::string, uint64_t> parts_;               // images that have them
  absl::flat_hash_map<uint64_t, int64_t> labels_ = {};  // of paths, by their hash
};

// Commands that extract again with a list, one a split and a line; `out` begins what they make.
std::string CommandsWithList(const Dataset& dataset, std::span<const std::string> inputs,
                             const std::string& out, const CommandLine& line);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_EXTRACT_LIST_H_
