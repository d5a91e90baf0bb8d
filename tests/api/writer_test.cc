// What writers add, and what they refuse.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "api/shardpack.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/writer_fixture.h"

namespace shardpack_api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(WriterTest, WhatWasAddedComesBack) {
  const std::vector<Sample> samples = Samples(30);
  Writer writer(At("out"));
  for (const Sample& sample : samples) Add(writer, sample);
  EXPECT_FALSE(writer.has("set/3"));
  Finish(writer);
  EXPECT_FALSE(fs::exists(At("out.parts")));
  EXPECT_EQ(CodeOf([&] { writer.finish(); }), Code::kExists);
  EXPECT_EQ(CodeOf([&] { Add(writer, {"set/new", {}, images_[0], ""}); }), Code::kState);

  const Dataset data(At("out"));
  ASSERT_EQ(data.samples(), samples.size());
  EXPECT_THAT(data.classes(), ElementsAre("class 0", "class 1", "class 2"));
  for (const Sample& sample : samples) {
    const Batch batch = data.read({data.find_key(sample.key)}, {"image", "txt"});
    const auto image = batch.bytes()[0], caption = batch.bytes("txt")[0];
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(image.data()), image.size()), sample.image);
    EXPECT_EQ(caption.data() == nullptr, sample.caption.empty());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(caption.data()), caption.size()),
              sample.caption);
    const int64_t label = batch.labels()[0];
    EXPECT_EQ(label < 0 ? std::nullopt
                        : std::optional(std::string(data.classes()[static_cast<size_t>(label)])),
              sample.label);
  }
  EXPECT_EQ(Job({"validate", At("out")}).wait(), 0);
  EXPECT_EQ(CodeOf([&] { Writer(At("out")); }), Code::kExists);
}

TEST_F(WriterTest, RecordsAreNotNumberedBeyond32Bits) {
  Writer writer(At("out"));
  writer.add("a", {}, images_[0]);
  std::ofstream(At("out.parts/w00001-000000.json"))
      << R"({"records":4294967295,"bytes":1,"xxh3_128":")" << std::string(32, '0')
      << R"(","classes":[]})";
  std::string message;
  EXPECT_EQ(CodeOf([&] { writer.finish(); }, &message), Code::kUnsupported);
  EXPECT_THAT(message, HasSubstr("at most 4294967295 samples"));
}

TEST_F(WriterTest, AKeyOfTwoWorkersIsNamed) {
  Writer one(At("out"), {.worker = 0, .workers = 2});
  {
    Writer two(At("out"), {.worker = 1, .workers = 2});
    two.add("same", {}, images_[0]);
    two.flush();
  }
  one.add("same", {}, images_[1]);
  try {
    one.finish();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kExists);
    EXPECT_THAT(error.what(), HasSubstr("two writers have added the key same"));
    EXPECT_EQ(error.key(), "same");
  }
}

TEST_F(WriterTest, DamageBetweenAddAndFinishIsFound) {
  Writer writer(At("out"));
  for (const Sample& sample : Samples(6)) Add(writer, sample);
  writer.flush();
  const std::string part = At("out.parts/w00000-000000.tfrecord");
  std::fstream(part, std::ios::in | std::ios::out | std::ios::binary).seekp(200).write("?", 1);
  Job job = writer.finish();
  EXPECT_EQ(job.wait(), 4);
  EXPECT_FALSE(fs::exists(At("out") + "/manifest.json"));
  EXPECT_TRUE(fs::exists(part));
}

TEST_F(WriterTest, SamplesThatCannotBeHeldChangeNothing) {
  Writer writer(At("out"), {.arguments = {"--format=tfrecord"}});
  const auto add = [&](const std::string& key, const std::vector<shardpack_field>& fields) {
    return CodeOf([&] { writer.add(key, {}, fields); });
  };
  const shardpack_field image{nullptr, images_[0].data(), images_[0].size()};
  EXPECT_EQ(add("", {image}), Code::kInvalid);
  EXPECT_EQ(add(std::string("a\0b", 3), {image}), Code::kInvalid);
  EXPECT_EQ(add("k", {}), Code::kInvalid);
  EXPECT_EQ(add("k", {{"txt", "x", 1}}), Code::kInvalid);
  EXPECT_EQ(add("k", {image, image}), Code::kInvalid);
  EXPECT_EQ(add("k", {{nullptr, nullptr, 5}}), Code::kInvalid);
  // Nor is its class there.
  EXPECT_EQ(CodeOf([&] {
              writer.add("k", "oops", {image, {"image/encoded", "x", 1}});
            }),
            Code::kInvalid);
  EXPECT_EQ(CodeOf([&] { writer.finish(); }), Code::kState);  // no sample
  // Keys and labels are bytes, not paths.
  writer.add("../a//b\xFF", "caf\xC3\xA9", images_[0]);
  writer.add("..", {}, images_[1]);
  Finish(writer);
  const Dataset data(At("out"));
  EXPECT_EQ(data.samples(), 2u);
  EXPECT_THAT(data.classes(), ElementsAre("caf\xC3\xA9"));
}

TEST_F(WriterTest, ErrorsOfASampleHaveItsKey) {
  Writer writer(At("out"), {.arguments = {"--format=tfrecord"}, .classes = {"cat"}});
  const auto key_of = [&](const std::string& key, const std::optional<std::string>& label,
                          const std::string& image) {
    try {
      writer.add(key, label, image);
    } catch (const Error& error) {
      return std::string(error.key());
    }
    return std::string("no error");
  };
  EXPECT_EQ(key_of("a", "cat", images_[0]), "no error");
  EXPECT_EQ(key_of("a", "cat", images_[0]), "a");          // added before
  EXPECT_EQ(key_of("b\xFF", "dog", images_[0]), "b\xFF");  // another class
  EXPECT_EQ(key_of("c", "cat", "text"), "c");              // no image
  EXPECT_EQ(key_of(std::string("d\0", 2), "cat", images_[0]), std::string("d\0", 2));
  const shardpack_field no_data = {nullptr, nullptr, 1};
  try {
    writer.add("e", "cat", {no_data});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.key(), "e");
    EXPECT_THAT(error.what(), HasSubstr("data of a field is NULL"));
  }
}

TEST_F(WriterTest, WhatDoesNotBeginAsAnImageIsRefusedAtOnce) {
  std::string message;
  for (const bool changes_keys : {false, true}) {
    Writer writer(At("out"), {.arguments = {changes_keys ? "--key=index" : "--format=tfrecord"}});
    for (const std::string& image : {std::string(), std::string("text"), std::string("BMW")}) {
      EXPECT_EQ(CodeOf([&] { writer.add("a\n", {}, image); }, &message), Code::kInvalid);
      EXPECT_THAT(message, HasSubstr("the image of the sample a\\x0a is not a JPEG"));
      EXPECT_THAT(message, HasSubstr("--max-skip"));
    }
    // Only the finish looks into one that begins well.
    writer.add("a", {}, images_[0].substr(0, 20));
  }
  for (const std::vector<std::string>& strict : {std::vector<std::string>{"--max-skip=0"},
                                                 {"--max-skip", "0.0%"},
                                                 {"--max-skip=1%", "--max-skip=0%"},
                                                 {"--strict", "--max-skip=5%"}}) {
    Writer writer(At("strict"), {.arguments = strict});
    EXPECT_EQ(CodeOf([&] { writer.add("a", {}, "text"); }), Code::kInvalid) << strict[0];
  }
  // Who lets the finish leave some out has it do so.
  Writer writer(At("some"), {.arguments = {"--max-skip=60%"}});
  writer.add("a", {}, "text");
  writer.add("b", {}, images_[0]);
  EXPECT_EQ(writer.finish().wait(), 3);
  EXPECT_EQ(Dataset(At("some")).samples(), 1u);
}

// As rows of a table, with the same bytes in the end.
TEST_F(WriterTest, ManyAreAddedAtOnce) {
  const std::vector<Sample> samples = Samples(20);
  Writer one(At("one"));
  for (const Sample& sample : samples) Add(one, sample);
  Finish(one);
  std::string bytes;
  std::vector<uint64_t> lengths;
  const auto put = [&](std::string_view value) {
    bytes += value;
    lengths.push_back(value.size());
  };
  const std::string_view refused = "../x";
  for (const std::string_view first : {std::string_view(samples[0].key), refused}) {
    const Sample& sample = samples[0];
    put(first);
    put(sample.label.value_or(""));
    put(sample.image);
    put(sample.caption);
  }
  for (size_t n = 1; n < samples.size(); ++n) {
    put(samples[n].key);
    put(samples[n].label.value_or(""));
    put(samples[n].image);
    if (samples[n].caption.empty()) {
      lengths.push_back(~uint64_t{0});
    } else {
      put(samples[n].caption);
    }
  }
  const char* const names[] = {"txt"};
  shardpack_samples table = {sizeof table, samples.size() + 1, names,         1,
                             bytes.data(), bytes.size(),       lengths.data()};
  Writer many(At("many"));
  std::string message;
  EXPECT_EQ(CodeOf([&] { many.add_many(table); }, &message), Code::kInvalid);
  EXPECT_THAT(message, HasSubstr("\"../x\""));  // and all others are there
  EXPECT_EQ(CodeOf([&] { many.add_many(table); }, &message), Code::kExists);
  Finish(many);
  EXPECT_EQ(Files(At("one")), Files(At("many")));

  Writer none(At("none"));
  --table.byte_count;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.byte_count += 2;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.byte_count -= 1;
  table.lengths = nullptr;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.lengths = lengths.data();
  table.bytes = nullptr;
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  table.bytes = bytes.data();
  lengths[0] = ~uint64_t{0};
  EXPECT_EQ(CodeOf([&] { none.add_many(table); }), Code::kInvalid);
  EXPECT_EQ(shardpack_writer_add_many(none.get(), nullptr, nullptr), SHARDPACK_INVALID);
  none.flush();
  EXPECT_FALSE(none.has(samples[1].key));
}

TEST_F(WriterTest, AFinishThatMakesNoDatasetKeepsTheSamples) {
  {
    Writer writer(At("out"), {.arguments = {"--dry-run"}});
    writer.add("a", "cat", images_[0]);
    Finish(writer);
  }
  EXPECT_FALSE(fs::exists(At("out/manifest.json")));
  Writer again(At("out"));
  EXPECT_TRUE(again.has("a"));
  again.add("b", "dog", images_[1]);
  Finish(again);
  EXPECT_EQ(Dataset(At("out")).samples(), 2u);
  EXPECT_FALSE(fs::exists(At("out.parts")));
}

TEST_F(WriterTest, ANegativeNumberIsNoLabel) {
  Writer writer(At("out"));
  std::string message;
  EXPECT_EQ(CodeOf([&] { writer.add("a", "-1", images_[0]); }, &message), Code::kInvalid);
  EXPECT_THAT(message, HasSubstr("the label -1 is negative"));
  writer.add("a", "-1b", images_[0]);
}

TEST_F(WriterTest, WholeNumbersAreLabels) {
  Writer writer(At("out"));
  writer.add("a", "10", images_[0]);
  writer.add("b", "2", images_[1]);
  Finish(writer);
  EXPECT_EQ(Classes("out").size(), 11u);
  EXPECT_EQ(Classes("out")[10], "10");
  Writer names(At("names"));
  names.add("a", "10", images_[0]);
  names.add("b", "02", images_[1]);
  Finish(names);
  EXPECT_THAT(Classes("names"), ElementsAre("02", "10"));
}

TEST_F(WriterTest, GivenClassesKeepTheirNumbers) {
  const WriterOptions given = {.classes = {"owl", "cat", "dog"}};
  {
    Writer writer(At("out"), given);
    Add(writer, {"a", "dog", images_[0], ""});
    Add(writer, {"b", "owl", images_[1], ""});
    std::string message;
    EXPECT_EQ(CodeOf([&] { Add(writer, {"c", "dgo", images_[2], ""}); }, &message), Code::kInvalid);
    EXPECT_THAT(message, HasSubstr("the label dgo is not among the 3 classes"));
    writer.flush();
  }
  std::string message;
  EXPECT_EQ(CodeOf(
                [&] {
                  Writer(At("out"), {.classes = {"owl", "cat"}});
                },
                &message),
            Code::kInvalid);
  EXPECT_THAT(message, HasSubstr("have the label dog, which is not among the 2 classes"));
  EXPECT_EQ(CodeOf([&] { Writer(At("new"), {.classes = {"owl", "owl"}}); }), Code::kInvalid);
  EXPECT_EQ(CodeOf([&] { Writer(At("new"), {.classes = {"owl", ""}}); }), Code::kInvalid);

  Writer writer(At("out"), given);
  Finish(writer);
  const Dataset data(At("out"));
  EXPECT_THAT(data.classes(), ElementsAre("owl", "cat", "dog"));
  const Batch batch = data.read({data.find_key("a"), data.find_key("b")});
  EXPECT_THAT(batch.labels(), ElementsAre(2, 0));
}

TEST_F(WriterTest, EveryFormatRefusesWhatItCannotHold) {
  struct Case {
    std::vector<std::string> arguments;
    std::string key;
    const char *field, *why;
  };
  for (const auto& [arguments, key, field, why] :
       {Case{{"--format=npy", "--encode=raw"}, "a", "txt", "npy holds only images"},
        Case{{"--format=lmdb"}, "a", "txt", "lmdb holds only images"},
        Case{{"--format=lmdb", "--layout=raw"}, std::string(512, 'k'), nullptr, "at most 511"},
        Case{{"--format=hdf5"}, "a", "labels", "hdf5 cannot hold a field named labels"},
        Case{{"--format=hdf5"}, std::string(1025, 'k'), nullptr, "at most 1024"},
        Case{{"-fhdf5", "--layout=decoded"}, "a", "txt", "hdf5 holds only images"}}) {
    Writer writer(At("out"), {.arguments = arguments});
    std::vector<shardpack_field> fields = {{nullptr, images_[0].data(), images_[0].size()}};
    if (field != nullptr) fields.push_back({field, "x", 1});
    std::string message;
    EXPECT_EQ(CodeOf([&] { writer.add(key, {}, fields); }, &message), Code::kInvalid) << why;
    EXPECT_THAT(message, HasSubstr(why));
  }
  Writer dropped(At("out"), {.arguments = {"--format=lmdb", "--drop-fields"}});
  dropped.add("a", {}, {{nullptr, images_[0].data(), images_[0].size()}, {"txt", "x", 1}});
  Finish(dropped);
}

// By the rule of the writer that the finish packs with, when it can still be put right.
TEST_F(WriterTest, WhatTheFormatCannotHoldIsRefusedWhenItIsAdded) {
  Writer writer(At("out"));
  std::string message;
  const auto add = [&](Writer& to, const std::string& key, const char* field) {
    return CodeOf(
        [&] {
          to.add(key, "cat", {{nullptr, images_[0].data(), images_[0].size()}, {field, "1", 1}});
        },
        &message);
  };
  EXPECT_EQ(add(writer, "../../x", "txt"), Code::kInvalid);
  EXPECT_THAT(message, HasSubstr("\"..\" component"));
  for (const char* field : {"../y", "TXT", "cls", "jpg"})
    EXPECT_EQ(add(writer, "a", field), Code::kInvalid) << field;
  EXPECT_THAT(message, HasSubstr("two fields \"jpg\""));
  EXPECT_EQ(add(writer, std::string(150, 'k'), "txt"), Code::kInvalid);
  EXPECT_EQ(add(writer, "a", "txt"), Code::kOk);
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).samples(), 1u);

  // As the arguments say.
  Writer pax(At("pax"),
             {.arguments = {"-f", "webdataset", "--layout=pax", "--image-field", "img"}});
  EXPECT_EQ(add(pax, std::string(150, 'k'), "jpg"), Code::kOk);
  EXPECT_EQ(add(pax, "../x", "jpg"), Code::kInvalid);
  Finish(pax);
  Writer json(At("json"), {.arguments = {"--with-json"}});
  EXPECT_EQ(add(json, "a", "json"), Code::kInvalid);
  Writer number(At("number"), {.arguments = {"--key=index"}});
  EXPECT_EQ(add(number, "../x", "txt"), Code::kOk);
  Finish(number);
  EXPECT_EQ(FirstKey("number"), "000000000");
}

TEST_F(WriterTest, ADatasetIsReplacedOnRequest) {
  {
    Writer writer(At("out"));
    writer.add("old", {}, images_[0]);
    Finish(writer);
  }
  Writer writer(At("out"), {.arguments = {"--overwrite"}});
  writer.add("new", {}, images_[1]);
  EXPECT_EQ(FirstKey("out"), "old");
  Finish(writer);
  EXPECT_EQ(FirstKey("out"), "new");
}

TEST_F(WriterTest, AWorkingFolderThatIsGoneIsAnErrorOfTheSystem) {
  const fs::path before = fs::current_path();
  fs::create_directories(At("gone"));
  fs::current_path(At("gone"));
  fs::remove(At("gone"));
  shardpack_writer* writer = nullptr;
  EXPECT_EQ(shardpack_writer_open("out", nullptr, &writer, nullptr), SHARDPACK_NOT_FOUND);
  fs::current_path(before);
}

TEST_F(WriterTest, TheFolderOfTheDatasetHasAName) {
  const fs::path before = fs::current_path();
  fs::create_directories(At("in"));
  fs::current_path(At("in"));
  for (const char* path : {"/", ".", "..", "./", "x/.", "x/..//", "//"}) {
    std::string message;
    EXPECT_EQ(CodeOf([&] { Writer{path}; }, &message), Code::kInvalid) << path;
    EXPECT_THAT(message, HasSubstr("must end with the name of its folder"));
  }
  EXPECT_TRUE(fs::is_empty("."));
  EXPECT_EQ(CodeOf([&] { Writer{"./x//"}; }), Code::kOk);
  EXPECT_TRUE(fs::exists("x.parts"));
  fs::current_path(before);
}

TEST_F(WriterTest, NullsAreRefused) {
  shardpack_writer* writer = nullptr;
  shardpack_job* job = nullptr;
  EXPECT_EQ(shardpack_writer_open(nullptr, nullptr, &writer, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_open("", nullptr, &writer, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_add(nullptr, "k", 1, nullptr, nullptr, 0, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_has(nullptr, "k", 1, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_flush(nullptr, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_writer_finish(nullptr, &job, nullptr), SHARDPACK_INVALID);
  shardpack_writer_release(nullptr);
}

}  // namespace
}  // namespace shardpack_api
