// example_cpp FOLDER: as example.c, in C++17. Made by `neon8 package`; yours to change.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "{{ w.name }}.hpp"

namespace {

template <class T>
std::vector<T> load(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty())
        std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    const std::string folder = argv[1];
{% for v in w.inputs %}
    const auto {{ v.identifier }} = load<{{ v.info.dtype | ctype }}>(folder + "/sample/{{ v.identifier }}.raw");
{% endfor %}
{% for v in w.outputs %}
    std::vector<{{ v.info.dtype | ctype }}> {{ v.identifier }}({{ upper }}_{{ v.identifier | upper }}_SIZE);
{% endfor %}
{% if embed %}
    auto net = {{ w.camel }}::open();
{% else %}
    const auto file = load<char>(folder + "/{{ w.name }}.n8");
    auto net = {{ w.camel }}::open(file.data(), file.size());
{% endif %}
    if (!net) {
        std::fprintf(stderr, "example_cpp: %s\n", net.error().what());
        return 1;
    }
{% if w.arguments %}
    net->resize({{ w.arguments | map(attribute="usual") | join(", ") }}).value();
{% endif %}
    net->run({{ w.values | map(attribute="identifier") | join(", ") }}).value();

    bool equal = true;
{% for v in w.outputs %}
    equal &= {{ v.identifier }} == load<{{ v.info.dtype | ctype }}>(folder + "/sample/{{ v.identifier }}.raw");
{% endfor %}
    std::puts(equal ? "the same values as on the PC" : "DIFFERENT");
    return equal ? 0 : 1;
}
