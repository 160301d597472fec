/* Element types, dtypes and places of paddle/extension.h. */
#ifndef PADDLE_EXTENSION_TYPES_H
#define PADDLE_EXTENSION_TYPES_H

#include <proa/core.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>

namespace paddle
{

/* ---- dtypes ------------------------------------------------------------------------------ */

/* The numbers are Proa's (proa_dtype). */
enum class DataType {
    UNDEFINED = PROA_NODTYPE,
    BOOL = PROA_BOOL,
    UINT8 = PROA_U8,
    INT8 = PROA_I8,
    INT16 = PROA_I16,
    INT32 = PROA_I32,
    INT64 = PROA_I64,
    FLOAT16 = PROA_F16,
    BFLOAT16 = PROA_BF16,
    FLOAT32 = PROA_F32,
    FLOAT64 = PROA_F64,
    COMPLEX64 = PROA_C64,
    COMPLEX128 = PROA_C128
};

/* The name of the type in C++: "int32_t", "float". */
inline const char *ToString(DataType dtype)
{
    switch (dtype) {
    case DataType::BOOL: return "bool";
    case DataType::UINT8: return "uint8_t";
    case DataType::INT8: return "int8_t";
    case DataType::INT16: return "int16_t";
    case DataType::INT32: return "int32_t";
    case DataType::INT64: return "int64_t";
    case DataType::FLOAT16: return "float16";
    case DataType::BFLOAT16: return "bfloat16";
    case DataType::FLOAT32: return "float";
    case DataType::FLOAT64: return "double";
    case DataType::COMPLEX64: return "complex64";
    case DataType::COMPLEX128: return "complex128";
    default: return "undefined";
    }
}
inline std::ostream &operator<<(std::ostream &to, DataType dtype) { return to << ToString(dtype); }

enum class DataLayout { UNDEFINED, ANY, NHWC, NCHW, NCDHW, NDHWC };

/* ---- half floats ------------------------------------------------------------------------- */

namespace detail
{

inline uint32_t bits_of(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline float float_of(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE binary16 to float: the exponent is rebiased by a multiplication, which handles subnormals. */
inline float from_half(uint16_t h)
{
    uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
    if ((h & 0x7c00u) == 0x7c00u) return float_of(sign | 0x7f800000u | (rest & 0x007fe000u));
    return float_of(sign | bits_of(float_of(rest) * float_of(0x77800000u))); /* 2^112 */
}

/* Float to IEEE binary16, rounded to nearest even. */
inline uint16_t to_half(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (rest >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u); /* 65520 and above */
    if (rest < 0x38800000u) { /* below 2^-14: the addition of 0.5 rounds to multiples of 2^-24 */
        return static_cast<uint16_t>(sign | (bits_of(float_of(rest) + 0.5f) - 0x3f000000u));
    }
    rest += 0xfffu + (rest >> 13 & 1u);
    return static_cast<uint16_t>(sign | ((rest - 0x38000000u) >> 13));
}

inline uint16_t to_brain(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline float from_brain(uint16_t b) { return float_of(static_cast<uint32_t>(b) << 16); }

/* A 16-bit float; arithmetic is float's, through the conversions. */
template <float (*From)(uint16_t), uint16_t (*To)(float)> struct Half {
    uint16_t x;

    Half() = default;
    Half(float value) : x(To(value)) {}
    template <typename T> explicit Half(T value) : x(To(static_cast<float>(value))) {}
    operator float() const { return From(x); }
    Half &operator+=(float b) { return *this = Half(From(x) + b); }
    Half &operator-=(float b) { return *this = Half(From(x) - b); }
    Half &operator*=(float b) { return *this = Half(From(x) * b); }
    Half &operator/=(float b) { return *this = Half(From(x) / b); }
};

} // namespace detail

typedef detail::Half<detail::from_half, detail::to_half> float16;
typedef detail::Half<detail::from_brain, detail::to_brain> bfloat16;

/* ---- complex numbers --------------------------------------------------------------------- */

/* A complex number with public parts, as kernels of Paddle use them. */
template <typename T> struct complex {
    T real, imag;

    complex() = default;
    complex(T re, T im = T(0)) : real(re), imag(im) {}
    template <typename U> explicit complex(const complex<U> &z) : real(T(z.real)), imag(T(z.imag)) {}
    complex(const std::complex<T> &z) : real(z.real()), imag(z.imag()) {}
    operator std::complex<T>() const { return std::complex<T>(real, imag); }
    complex &operator+=(const complex &b) { return *this = *this + b; }
    complex &operator-=(const complex &b) { return *this = *this - b; }
    complex &operator*=(const complex &b) { return *this = *this * b; }
    complex &operator/=(const complex &b) { return *this = *this / b; }

    friend complex operator+(const complex &a, const complex &b)
    {
        return complex(a.real + b.real, a.imag + b.imag);
    }
    friend complex operator-(const complex &a, const complex &b)
    {
        return complex(a.real - b.real, a.imag - b.imag);
    }
    friend complex operator-(const complex &a) { return complex(-a.real, -a.imag); }
    friend complex operator*(const complex &a, const complex &b)
    {
        return complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real);
    }
    friend complex operator/(const complex &a, const complex &b)
    {
        return complex(std::complex<T>(a) / std::complex<T>(b));
    }
    friend bool operator==(const complex &a, const complex &b)
    {
        return a.real == b.real && a.imag == b.imag;
    }
    friend bool operator!=(const complex &a, const complex &b) { return !(a == b); }
};

template <typename T> complex<T> conj(const complex<T> &z) { return complex<T>(z.real, -z.imag); }
template <typename T> T abs(const complex<T> &z) { return std::abs(std::complex<T>(z)); }

typedef complex<float> complex64;
typedef complex<double> complex128;

/* ---- the dtype of a type ----------------------------------------------------------------- */

namespace detail
{

template <typename T> struct DtypeOf;
template <> struct DtypeOf<bool> {
    static const DataType value = DataType::BOOL;
};
template <> struct DtypeOf<uint8_t> {
    static const DataType value = DataType::UINT8;
};
template <> struct DtypeOf<int8_t> {
    static const DataType value = DataType::INT8;
};
template <> struct DtypeOf<int16_t> {
    static const DataType value = DataType::INT16;
};
template <> struct DtypeOf<int32_t> {
    static const DataType value = DataType::INT32;
};
template <> struct DtypeOf<int64_t> {
    static const DataType value = DataType::INT64;
};
template <> struct DtypeOf<float16> {
    static const DataType value = DataType::FLOAT16;
};
template <> struct DtypeOf<bfloat16> {
    static const DataType value = DataType::BFLOAT16;
};
template <> struct DtypeOf<float> {
    static const DataType value = DataType::FLOAT32;
};
template <> struct DtypeOf<double> {
    static const DataType value = DataType::FLOAT64;
};
template <> struct DtypeOf<complex64> {
    static const DataType value = DataType::COMPLEX64;
};
template <> struct DtypeOf<complex128> {
    static const DataType value = DataType::COMPLEX128;
};

} // namespace detail

/* ---- places ------------------------------------------------------------------------------ */

enum class PlaceType { kUNK = -1, kCPU, kGPU };

/* A device; compares with a PlaceType, too. */
class Place
{
  public:
    Place() : type_(PlaceType::kUNK) {}
    Place(PlaceType type) : type_(type) {}
    PlaceType GetType() const { return type_; }
    int8_t GetDeviceId() const { return 0; }
    std::string DebugString() const
    {
        return type_ == PlaceType::kCPU   ? "Place(cpu)"
               : type_ == PlaceType::kGPU ? "Place(gpu:0)"
                                          : "Place()";
    }

  private:
    PlaceType type_;
};
inline bool operator==(const Place &a, const Place &b) { return a.GetType() == b.GetType(); }
inline bool operator!=(const Place &a, const Place &b) { return !(a == b); }
inline std::ostream &operator<<(std::ostream &to, const Place &place) { return to << place.DebugString(); }

struct CPUPlace : Place {
    CPUPlace() : Place(PlaceType::kCPU) {}
};
struct GPUPlace : Place {
    explicit GPUPlace(int = 0) : Place(PlaceType::kGPU) {}
};
typedef GPUPlace DefaultGPUPlace;

} // namespace paddle

#endif
