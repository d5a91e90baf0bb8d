/* The example of shardpack.h, as a program: sums the labels and bytes of an epoch.
 *   caller DATASET */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shardpack.h"

static shardpack_error* error = NULL;

static void check(shardpack_code code) {
  if (code < SHARDPACK_INVALID) return;
  fprintf(stderr, "caller: %s: %s\n", shardpack_code_name(code), shardpack_error_message(error));
  exit(1);
}

int main(int argc, char** argv) {
  shardpack_dataset* dataset = NULL;
  shardpack_dataset_info info;
  shardpack_order_options how;
  shardpack_loader_options options;
  shardpack_device* device = NULL;
  shardpack_device_info cpu;
  shardpack_order* order = NULL;
  shardpack_loader* loader = NULL;
  shardpack_batch* batch = NULL;
  unsigned long long samples = 0, bytes = 0, slot;
  if (argc != 2) return 2;
  check(shardpack_dataset_open(argv[1], &dataset, &error));
  memset(&info, 0, sizeof info);
  info.size = sizeof info;
  check(shardpack_dataset_info_of(dataset, &info, &error));
  memset(&how, 0, sizeof how);
  how.size = sizeof how;
  how.global_batch = 4;
  how.tail = SHARDPACK_TAIL_PAD;
  check(shardpack_order_make(info.samples, &how, &order, &error));
  check(shardpack_device_open("cpu", &device, &error));
  memset(&cpu, 0, sizeof cpu);
  cpu.size = sizeof cpu;
  check(shardpack_device_info_of(device, &cpu, &error));
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = device;
  check(shardpack_loader_open(dataset, order, &options, &loader, &error));
  for (;;) {
    shardpack_span spans[4];
    shardpack_batch_view view;
    const shardpack_code code = shardpack_loader_next(loader, -1, &batch, &error);
    check(code);
    if (code == SHARDPACK_END) break;
    memset(&view, 0, sizeof view);
    view.size = sizeof view;
    check(shardpack_batch_view_of(batch, &view, &error));
    check(shardpack_batch_spans(batch, NULL, spans, 4, &error));
    for (slot = 0; slot < view.slots; ++slot) {
      if (view.states[slot] == SHARDPACK_SAMPLE_PADDING) continue;
      ++samples;
      bytes += spans[slot].bytes;
    }
    shardpack_batch_release(batch);
  }
  shardpack_loader_release(loader);
  shardpack_device_release(device);
  shardpack_order_release(order);
  shardpack_dataset_release(dataset);
  printf("%llu samples, %llu bytes\n", samples, bytes);
  return 0;
}
