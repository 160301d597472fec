/* Errors of custom operators: PD_CHECK and PD_THROW. */
#ifndef PADDLE_EXTENSION_ERROR_H
#define PADDLE_EXTENSION_ERROR_H

#include <exception>
#include <sstream>
#include <string>

namespace paddle
{

/* Thrown by PD_CHECK and PD_THROW; Proa's caller gets an error of category External with the text. */
class PD_Exception : public std::exception
{
  public:
    template <typename... Parts>
    PD_Exception(const char *file, int line, const char *fallback, const Parts &...parts)
    {
        std::ostringstream text;
        add(text, parts...);
        if (text.str().empty()) text << fallback;
        text << "\n  [" << file << ":" << line << "]";
        text_ = text.str();
    }
    const char *what() const noexcept override { return text_.c_str(); }

  private:
    static void add(std::ostringstream &) {}
    template <typename First, typename... Rest>
    static void add(std::ostringstream &text, const First &first, const Rest &...rest)
    {
        text << first;
        add(text, rest...);
    }

    std::string text_;
};

namespace detail
{

/* Whether a condition holds; the parts of the message behind it are ignored. */
template <typename Condition, typename... Parts> bool holds(const Condition &condition, const Parts &...)
{
    return static_cast<bool>(condition);
}

/* Throws with the parts of the message behind the condition. */
template <typename Condition, typename... Parts>
[[noreturn]] void fail(const char *file, int line, const char *fallback, const Condition &,
                       const Parts &...parts)
{
    throw PD_Exception(file, line, fallback, parts...);
}

} // namespace detail
} // namespace paddle

/* PD_CHECK(condition), PD_CHECK(condition, "message ", part, …): throws unless the condition holds. */
#define PD_CHECK(...)                                                                                    \
    do {                                                                                                 \
        if (!::paddle::detail::holds(__VA_ARGS__))                                                       \
            ::paddle::detail::fail(__FILE__, __LINE__, "Expected " #__VA_ARGS__ ", but it is not true.", \
                                   __VA_ARGS__);                                                         \
    } while (0)

/* PD_THROW("message ", part, …). */
#define PD_THROW(...) throw ::paddle::PD_Exception(__FILE__, __LINE__, "An error occurred.", ##__VA_ARGS__)

#endif
