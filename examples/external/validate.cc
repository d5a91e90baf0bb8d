// Has `pack` check every byte of a dataset, and prints its report: a program of another project.
#include <cstdio>
#include <string>

#include "shardpack.hpp"
#include "shardpack_op.h"

int main(int argc, char** argv) {
  try {
    shardpack_api::Job job({"validate", argc > 1 ? argv[1] : "shards"});
    const int code = job.wait();
    std::printf("%s\n", job.result_json().c_str());
    return code;
  } catch (const shardpack_api::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
