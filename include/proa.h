/* Umbrella header: includes the public headers of Proa in order of dependency, except wire.h (serialized
 * forms of ops) and communicator.h (for device plug-ins). Valid as C11 and C++17. */
#ifndef PROA_H
#define PROA_H

#include <proa/core.h>
#include <proa/threads.h>

#include <proa/ops.h>

#include <proa/create.h>
#include <proa/functional.h>
#include <proa/profile.h>

#include <proa/autograd.h>

#include <proa/nn.h>
#include <proa/optim.h>

#include <proa/amp.h>

#include <proa/program.h>

#include <proa/data.h>
#include <proa/device.h>
#include <proa/io.h>

#include <proa/dist.h>
#include <proa/plan.h>
#include <proa/ps.h>

#include <proa/cipher.h>
#include <proa/inference.h>

#endif
