/* Table of Proa's functions, one for all files of a library of custom ops, and errors that turn from
 * statuses into exceptions. Not for use by operators. */
#ifndef PADDLE_EXTENSION_HOST_H
#define PADDLE_EXTENSION_HOST_H

#include <proa/extension.h>

#include <stdexcept>
#include <string>

/* Hidden, so that every library has a table and a list of its own. */
#define PADDLE_EXTENSION_LOCAL __attribute__((visibility("hidden")))

namespace paddle
{
namespace detail
{

/* The table, which Proa hands over when it loads the library. */
PADDLE_EXTENSION_LOCAL inline const proa_extension_api *&host()
{
    static const proa_extension_api *table = nullptr;
    return table;
}

inline const proa_extension_api &api()
{
    if (!host()) throw std::runtime_error("paddle::Tensor is used before Proa has loaded the library");
    return *host();
}

/* An error of Proa's as an exception; Proa's own record of it is cleared. */
class HostError : public std::runtime_error
{
  public:
    HostError(proa_status code, const std::string &text) : std::runtime_error(text), code_(code) {}
    proa_status code() const { return code_; }

  private:
    proa_status code_;
};

[[noreturn]] inline void throw_host_error()
{
    HostError error(api().error(), api().error_text());
    api().clear_error();
    throw error;
}

inline void check(proa_status status)
{
    if (status != PROA_OK) throw_host_error();
}

inline proa_tensor *check(proa_tensor *made)
{
    if (!made) throw_host_error();
    return made;
}

} // namespace detail
} // namespace paddle

#endif
