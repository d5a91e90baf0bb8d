// TfrecordChecker: finds what well-known TFRecord readers treat differently or refuse in
// well-formed Examples.
//
//   TfrecordChecker checker;                                    // one for each shard
//   if (options.strict) checker.Check(example, payload, finding_here, findings);
//
// The readers are TensorFlow, NVIDIA DALI (every requested feature must exist: a missing one gives
// uninitialised values, one of another kind crashes:
// dali/operators/reader/parser/tfrecord_parser.h), and vahidk/tfrecord (a Feature without a kind
// raises an exception: tfrecord/reader.py).
//
// Lifetime: keeps the feature names and kinds of the first record.
// Thread-safety: one caller at a time.
// Errors: all problems are findings.
#ifndef SHARDPACK_FORMATS_TFRECORD_TFRECORD_CHECKER_H_
#define SHARDPACK_FORMATS_TFRECORD_TFRECORD_CHECKER_H_

#include <string>
#include <string_view>
#include <vector>

#include "formats/core/finding.h"
#include "formats/io/bytes.h"
#include "formats/tfrecord/example_scan.h"

namespace shardpack {

class TfrecordChecker {
 public:
  // `here` names shard, record and extent; each finding is a copy of it with details added.
  void Check(const ExampleScan& example, Bytes payload, const Finding& here, FindingSink& findings);

 private:
  // A feature of the first record, with results that hold for the other records while they match
  // it.
  struct Known {
    std::string name;
    FeatureKind kind;
    bool sound;   // neither name nor kind gives a finding
    bool single;  // its list has one value
  };

  void Remember(const ExampleScan& example);
  void CheckImage(const ExampleScan& example, Bytes payload, const Finding& here,
                  FindingSink& findings) const;
  void CheckFeature(const ScannedFeature& feature, const Finding& here,
                    FindingSink& findings) const;
  void ReportDrift(const ExampleScan& example, const Finding& here, FindingSink& findings) const;

  bool has_first_ = false;
  std::vector<Known> first_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_TFRECORD_TFRECORD_CHECKER_H_
