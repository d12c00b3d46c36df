// SPDX-License-Identifier: Apache-2.0
///
/// neon8 in C++17: neon8.h with objects that end by themselves, views whose sizes are checked, and
/// results instead of statuses. This header is all there is; link the same library.
///
///     const neon8::Model model = neon8::Model::open(file.data(), file.size()).value();
///     neon8::Session session = model.session().value();
///     session.run({image}, {scores}).value();
///
/// Nothing here needs exceptions. `value()` throws an Error where there are some and ends the
/// program where there are none (-fno-exceptions); to go on, ask the Result first, as one asks
/// std::expected.
#ifndef NEON8_HPP
#define NEON8_HPP

#include "neon8.h"

#include <array>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace neon8 {

/// Why a call failed. what() is one line with the name of the layer or tensor, if there is one.
struct Error : std::exception {
    n8_status status;
    const char *reason; ///< one line of English, never freed
    std::string name;   ///< of the layer if step >= 0, else of the tensor; or empty
    int32_t step = -1;  ///< its index, or -1
    int32_t axis = -1;  ///< of an input: the dimension that it may not have, or -1

    explicit Error(n8_status its, const char *why = nullptr)
        : status(its), reason(why == nullptr ? n8_status_string(its) : why) {}
    Error(n8_status its, const n8_model_error &error) : Error(its, error.reason) {
        step = error.step;
        axis = error.axis;
        if (error.name != nullptr) {
            name = error.name;
            line = name + ": " + reason;
            for (char &c : line) { // the file may hold anything
                c = c < ' ' || c > '~' ? '?' : c;
            }
        }
    }
    const char *what() const noexcept override {
        return line.empty() ? reason : line.c_str();
    }

  private:
    std::string line;
};

namespace detail {

[[noreturn]] inline void fail(const Error &error) {
#ifdef __cpp_exceptions
    throw error;
#else
    (void)error;
    std::abort();
#endif
}

struct End {
    void operator()(n8_model *model) const {
        n8_model_close(model);
    }
    void operator()(n8_threads *threads) const {
        n8_threads_destroy(threads);
    }
};

template <class T> constexpr n8_type type_of() {
    using Value = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<Value, float>) {
        return N8_TYPE_F32;
    } else if constexpr (std::is_same_v<Value, int8_t>) {
        return N8_TYPE_S8;
    } else if constexpr (std::is_same_v<Value, uint8_t>) {
        return N8_TYPE_U8;
    } else if constexpr (std::is_same_v<Value, int16_t>) {
        return N8_TYPE_S16;
    } else {
        static_assert(std::is_same_v<Value, int32_t>, "no tensor has values of this type");
        return N8_TYPE_S32;
    }
}

} // namespace detail

/// A value, or why there is none.
template <class T> class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}
    Result(Error error) : error_(std::move(error)) {}

    explicit operator bool() const noexcept {
        return value_.has_value();
    }
    /// The value, which may be moved out of a temporary result; Error is thrown without one.
    T &value() & {
        return check(), *value_;
    }
    const T &value() const & {
        return check(), *value_;
    }
    T &&value() && {
        return check(), std::move(*value_);
    }
    T &operator*() noexcept {
        return *value_;
    }
    T *operator->() noexcept {
        return &*value_;
    }
    /// Only of a result without a value.
    const Error &error() const noexcept {
        return *error_;
    }

  private:
    void check() const {
        if (!value_) {
            detail::fail(*error_);
        }
    }
    std::optional<T> value_;
    std::optional<Error> error_;
};

/// Nothing, or what went wrong.
using Done = Result<std::monostate>;

#if __cplusplus >= 202002L
template <class T> using Span = std::span<T>;
#else
/// As much of C++20's std::span as is needed: values of somebody else, in a row.
template <class T> class Span {
  public:
    constexpr Span() = default;
    constexpr Span(T *data, size_t size) : data_(data), size_(size) {}
    template <size_t N> constexpr Span(T (&values)[N]) : data_(values), size_(N) {}
    template <class Values, class = std::enable_if_t<std::is_convertible_v<
                                decltype(std::declval<Values &>().data()), T *>>>
    constexpr Span(Values &&values) : data_(values.data()), size_(values.size()) {}

    constexpr T *data() const noexcept {
        return data_;
    }
    constexpr size_t size() const noexcept {
        return size_;
    }
    constexpr T &operator[](size_t i) const {
        return data_[i];
    }
    constexpr T *begin() const noexcept {
        return data_;
    }
    constexpr T *end() const noexcept {
        return data_ + size_;
    }

  private:
    T *data_ = nullptr;
    size_t size_ = 0;
};
#endif

/// The buffer of an input or an output: any row of values of its tensor's type, as a std::vector,
/// a std::array, a plain array or a Span. It belongs to the caller.
template <class Void> struct Buffer {
    Void *data;
    size_t size; ///< bytes
    n8_type type;

    template <class Values,
              class T = std::remove_reference_t<decltype(*std::data(std::declval<Values &>()))>>
    Buffer(Values &&values)
        : Buffer(std::data(values), std::size(values) * sizeof(T), detail::type_of<T>()) {}
    /// Values of a type that is known at run time only.
    Buffer(Void *at, size_t bytes, n8_type its) : data(at), size(bytes), type(its) {}
};
using Input = Buffer<const void>;
using Output = Buffer<void>;

/// Dimensions of an input; as many count as it has.
using Shape = std::array<int32_t, 8>;

/// Threads that sessions may share. A copy is the same threads; they end with the last one and
/// the last session.
class Threads {
  public:
    static Result<Threads> create(int32_t count) {
        n8_threads *made = nullptr;
        const n8_status status = n8_threads_create(count, &made);
        if (status != N8_OK) {
            return Error(status);
        }
        return Threads(made);
    }

  private:
    friend class Model;
    explicit Threads(n8_threads *made) : handle_(made, detail::End()) {}
    std::shared_ptr<n8_threads> handle_;
};

/// Memory for runs of a model, which it keeps open. It serves one thread at a time.
class Session {
  public:
    /// Runs the model once. Neither allocates nor fails if there are as many buffers as inputs and
    /// outputs, each of its tensor's type and size.
    Done run(Span<const Input> inputs, Span<const Output> outputs) {
        if (!bind(inputs, inputs_, input_pointers_) || !bind(outputs, outputs_, output_pointers_)) {
            return Error(N8_E_ARGUMENT, "a buffer is missing, or of another type or size");
        }
        const n8_status status =
            n8_session_run(handle_.get(), input_pointers_.data(), output_pointers_.data());
        return status == N8_OK ? Done(std::monostate()) : Error(status);
    }
    Done run(std::initializer_list<Input> inputs, std::initializer_list<Output> outputs) {
        return run(Span<const Input>(inputs.begin(), inputs.size()),
                   Span<const Output>(outputs.begin(), outputs.size()));
    }
    /// For what this header does not have.
    n8_session *get() const noexcept {
        return handle_.get();
    }

  private:
    friend class Model;
    struct Form {
        size_t size;
        n8_type type;
    };
    Session() = default;
    template <class Void>
    static bool bind(Span<const Buffer<Void>> buffers, const std::vector<Form> &forms,
                     std::vector<Void *> &pointers) {
        bool fits = buffers.size() == forms.size();
        for (size_t i = 0; fits && i < forms.size(); i++) {
            fits = buffers[i].size == forms[i].size && buffers[i].type == forms[i].type;
            pointers[i] = buffers[i].data;
        }
        return fits;
    }

    struct End { // what it holds ends after the session
        std::shared_ptr<n8_model> model;
        std::shared_ptr<n8_threads> threads;
        void operator()(n8_session *session) const {
            n8_session_destroy(session);
        }
    };

    std::unique_ptr<n8_session, End> handle_;
    std::vector<Form> inputs_, outputs_;
    std::vector<const void *> input_pointers_;
    std::vector<void *> output_pointers_;
};

/// An opened model, immutable. A copy is the same model; it is closed with the last copy and the
/// last session, so these may end in any order.
class Model {
  public:
    /// Checks, plans and packs a file in memory, of which nothing is needed afterwards.
    static Result<Model> open(const void *bytes, size_t size,
                              const n8_model_options &options = n8_model_options()) {
        n8_model *made = nullptr;
        n8_model_error error;
        const n8_status status = n8_model_open(bytes, size, &options, &made, &error);
        if (status != N8_OK) {
            return Error(status, error);
        }
        return Model(std::shared_ptr<n8_model>(made, detail::End()));
    }
    /// What opening and running it would take.
    static Result<n8_memory> measure(const void *bytes, size_t size,
                                     const n8_model_options &options = n8_model_options()) {
        n8_memory memory;
        n8_model_error error;
        const n8_status status = n8_model_measure(bytes, size, &options, &memory, &error);
        return status == N8_OK ? Result<n8_memory>(memory) : Error(status, error);
    }

    /// The same model at other shapes, of each input; weights are shared.
    Result<Model> reshape(Span<const Shape> shapes) const {
        n8_model *made = nullptr;
        n8_model_error error;
        if (shapes.size() != facts().input_count) {
            return Error(N8_E_ARGUMENT, "there are not as many shapes as inputs");
        }
        const n8_status status = n8_model_reshape(
            get(), reinterpret_cast<const int32_t (*)[8]>(shapes.data()), &made, &error);
        if (status != N8_OK) {
            return Error(status, error);
        }
        const auto origin = handle_; // is closed after it
        return Model(
            std::shared_ptr<n8_model>(made, [origin](n8_model *model) { n8_model_close(model); }));
    }

    Result<Session> session(int32_t threads = 1) const {
        n8_session_options options = n8_session_options();
        options.threads = threads;
        return session(options);
    }
    Result<Session> session(const Threads &threads) const {
        n8_session_options options = n8_session_options();
        options.pool = threads.handle_.get();
        Result<Session> made = session(options);
        if (made) {
            made->handle_.get_deleter().threads = threads.handle_;
        }
        return made;
    }
    /// With all that the C library offers; a pool in `options` is not kept.
    Result<Session> session(const n8_session_options &options) const {
        n8_session *made = nullptr;
        const n8_status status = n8_session_create(get(), &options, &made);
        if (status != N8_OK) {
            return Error(status);
        }
        Session session;
        session.handle_ = {made, Session::End{handle_, nullptr}};
        const n8_model_facts counts = facts();
        for (size_t i = 0; i < counts.input_count; i++) {
            const n8_tensor_info info = input(i).value();
            session.inputs_.push_back({info.size, info.type});
        }
        for (size_t i = 0; i < counts.output_count; i++) {
            const n8_tensor_info info = output(i).value();
            session.outputs_.push_back({info.size, info.type});
        }
        session.input_pointers_.resize(counts.input_count);
        session.output_pointers_.resize(counts.output_count);
        return session;
    }

    Result<n8_tensor_info> input(size_t index) const {
        return io(N8_INPUT, index);
    }
    Result<n8_tensor_info> output(size_t index) const {
        return io(N8_OUTPUT, index);
    }
    n8_model_facts facts() const {
        n8_model_facts facts = n8_model_facts();
        (void)n8_model_describe(get(), &facts); // fails for NULL only
        return facts;
    }
    n8_memory memory() const {
        n8_memory memory = n8_memory();
        (void)n8_model_memory(get(), &memory);
        return memory;
    }
    /// For what this header does not have.
    const n8_model *get() const noexcept {
        return handle_.get();
    }

  private:
    explicit Model(std::shared_ptr<n8_model> handle) : handle_(std::move(handle)) {}

    Result<n8_tensor_info> io(n8_io which, size_t index) const {
        n8_tensor_info info;
        const n8_status status = n8_model_io(get(), which, index, &info);
        return status == N8_OK ? Result<n8_tensor_info>(info) : Error(status);
    }

    std::shared_ptr<n8_model> handle_;
};

} // namespace neon8

#endif // NEON8_HPP
