// SPDX-License-Identifier: Apache-2.0
//
// neon8.hpp: what main.c does, without an allocation in a run, and what the header refuses.
//
//   main_cpp MODEL.n8 IN OUT
#include <neon8.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <new>

static size_t allocations;

void *operator new(size_t size) {
    allocations++;
    void *const room = std::malloc(size);
    return room == nullptr ? (std::abort(), nullptr) : room;
}
void operator delete(void *room) noexcept {
    std::free(room);
}
void operator delete(void *room, size_t) noexcept {
    std::free(room);
}

namespace {

void demand(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "main_cpp: %s\n", what);
        std::exit(1);
    }
}

template <class T> bool refused(const neon8::Result<T> &result, n8_status status) {
#ifdef __cpp_exceptions
    try {
        (void)result.value();
        return false;
    } catch (const std::exception &error) {
        demand(error.what() == std::string(result.error().what()), "what is thrown");
    }
#endif
    return !result && result.error().status == status;
}

std::vector<char> read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// The session alone keeps model and threads.
neon8::Session begin(const std::vector<char> &file) {
    const auto model = neon8::Model::open(file.data(), file.size()).value();
    const auto threads = neon8::Threads::create(2).value();
    return model.session(threads).value();
}

void check_files(std::vector<char> file) {
    using neon8::Model;
    demand(Model::measure(file.data(), file.size()).value().arena > 0, "measure");
    demand(refused(Model::measure(file.data(), 3), N8_E_FORMAT), "3 bytes");
    file[file.size() / 2] ^= 1;
    const auto damaged = Model::open(file.data(), file.size());
    demand(refused(damaged, N8_E_CHECKSUM), "a damaged file");
    demand(damaged.error().name.empty() && damaged.error().axis == -1, "and nothing else");
    const n8_model_error hostile = {"is bad", "a\x1b[31m", 3, -1, {}};
    const neon8::Error error(N8_E_FORMAT, hostile);
    demand(std::string(error.what()) == "a?[31m: is bad" && error.name[1] == '\x1b', "names");
    demand(refused(neon8::Threads::create(0), N8_E_ARGUMENT), "no thread");
}

void check_model(const neon8::Model &model) {
    demand(refused(model.session(65), N8_E_ARGUMENT), "65 threads");
    n8_session_options neither = n8_session_options();
    demand(refused(model.session(neither), N8_E_ARGUMENT), "neither threads nor a pool");
    demand(refused(model.input(model.facts().input_count), N8_E_ARGUMENT), "an input beyond");
    demand(refused(model.reshape({}), N8_E_ARGUMENT), "no shape");
    const std::vector<neon8::Shape> shapes(model.facts().input_count, {1, 1});
    demand(refused(model.reshape(shapes), N8_E_ARGUMENT), "nothing is open");
    demand(model.memory().tables > 0, "memory");
}

} // namespace

int main(int argc, char **argv) {
    demand(argc == 4, "main_cpp MODEL.n8 IN OUT");
    const std::vector<char> file = read(argv[1]), given = read(argv[2]);
    check_files(file);
    const auto model = neon8::Model::open(file.data(), file.size()).value();
    check_model(model);

    // A network of one float32 input and two float32 outputs.
    neon8::Session session = model.session().value();
    session = begin(file);
    std::vector<float> image(given.size() / sizeof(float));
    std::copy(given.begin(), given.end(), reinterpret_cast<char *>(image.data()));
    std::vector<float> sum(model.output(0)->size / sizeof(float));
    std::vector<float> p(model.output(1)->size / sizeof(float));
    const std::vector<int32_t> wrong(image.size());

    const size_t before = allocations;
    bool ran = true;
    for (int i = 0; i < 3; i++) {
        ran = session.run({image}, {sum, p}) && ran;
    }
    const neon8::Input inputs[] = {{image.data(), given.size(), N8_TYPE_F32}};
    const neon8::Output outputs[] = {neon8::Span<float>(sum), p};
    ran = session.run(inputs, outputs) && ran;
    const neon8::Done few = session.run({image}, {sum});
    const neon8::Done other = session.run({wrong}, {sum, p});
    const neon8::Done small = session.run({neon8::Span<float>(image.data(), 1)}, {sum, p});
    demand(allocations == before && ran, "runs, without allocating");
    demand(refused(few, N8_E_ARGUMENT), "an output is missing");
    demand(refused(other, N8_E_ARGUMENT), "another type");
    demand(refused(small, N8_E_ARGUMENT), "another size");
    const neon8::Session moved = std::move(session);
    demand(!session.run({image}, {sum, p}), "a session that was moved"); // NOLINT: on purpose

    std::ofstream out(argv[3], std::ios::binary);
    for (const auto *values : {&sum, &p}) {
        out.write(reinterpret_cast<const char *>(values->data()),
                  static_cast<std::streamsize>(values->size() * sizeof(float)));
    }
    return out ? 0 : 1;
}
