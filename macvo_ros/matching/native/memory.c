// Copyright 2026 macvo_ros contributors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Memory that kernels work in, and the version of the library.

#include <stdlib.h>

#include "kernels.h"

static _Thread_local void *lent = NULL;
static _Thread_local size_t size = 0;

// Lend memory to the kernels that this thread calls; it must be there for as long as the thread calls any.
int macvo_lend(void *memory, int64_t bytes) {
  lent = memory;
  size = (size_t)bytes;
  return 0;
}

void *borrowed(size_t bytes) { return bytes <= size ? lent : malloc(bytes); }

void give_back(void *memory) {
  if (memory != lent) free(memory);
}

int macvo_kernels_version(void) { return KERNELS_VERSION; }
