// Made by `neon8 package` from {{ w.source | shown }}; do not edit.
///
/// {{ w.camel }}: the int8 network as an object of C++17; sizes, constants and labels are in {{ w.name }}.h.
#ifndef {{ upper }}_HPP
#define {{ upper }}_HPP

#include <optional>

#include "neon8.hpp"

#include "{{ w.name }}.h"

class {{ w.camel }} {
  public:
    /// Opens a model in memory, of which nothing is needed afterwards, for runs by 1 to 64 threads.
    static neon8::Result<{{ w.camel }}> open(const void *bytes, size_t size, int32_t threads = 1) {
        neon8::Result<neon8::Model> model = neon8::Model::open(bytes, size);
        if (!model)
            return model.error();
        neon8::Result<neon8::Session> session = model->session(threads);
        if (!session)
            return session.error();
{% if w.arguments %}
        {{ w.camel }} made(std::move(*model), std::move(*session), threads);
        const neon8::Done done = made.resize({{ w.arguments | map(attribute="usual") | join(", ") }});
        if (!done)
            return done.error();
        return neon8::Result<{{ w.camel }}>(std::move(made));
{% else %}
        return {{ w.camel }}(std::move(*model), std::move(*session), threads);
{% endif %}
    }
{% if embed %}
    /// Opens the model that is compiled in.
    static neon8::Result<{{ w.camel }}> open(int32_t threads = 1) {
        return open({{ w.name }}_model, {{ w.name }}_model_size, threads);
    }
{% endif %}
{% if w.arguments %}
    /// Chooses the dimensions of the runs that follow; model() tells the sizes of outputs then.
    neon8::Done resize({{ arguments | join(", ") }}) {
        const neon8::Shape shapes[] = {
{% for v in w.inputs %}
            neon8::Shape{ {{- v.dimensions | join(", ") -}} },
{% endfor %}
        };
        neon8::Result<neon8::Model> resized = origin_.reshape(shapes);
        if (!resized)
            return resized.error();
        neon8::Result<neon8::Session> session = resized->session(threads_);
        if (!session)
            return session.error();
        session_.emplace(std::move(*session));
        model_.emplace(std::move(*resized));
        return std::monostate();
    }
{% endif %}
    /// Runs once. It allocates nothing, and refuses buffers of other sizes.
{% set spans = [] %}
{% for v in w.inputs %}{{ spans.append("neon8::Span<const " ~ (v.info.dtype | ctype) ~ "> " ~ v.identifier) or "" }}{% endfor %}
{% for v in w.outputs %}{{ spans.append("neon8::Span<" ~ (v.info.dtype | ctype) ~ "> " ~ v.identifier) or "" }}{% endfor %}
{{ "    neon8::Done run(" | broken(spans) }}) {
        return session_->run({ {{- w.inputs | map(attribute="identifier") | join(", ") -}} }, { {{- w.outputs | map(attribute="identifier") | join(", ") -}} });
    }
    const neon8::Model &model() const {
        return *model_;
    }

  private:
    {{ w.camel }}(neon8::Model model, neon8::Session session, int32_t threads)
        : origin_(model), model_(std::move(model)), session_(std::move(session)), threads_(threads) {}

    neon8::Model origin_;
    std::optional<neon8::Model> model_;
    std::optional<neon8::Session> session_;
    int32_t threads_;
};

#endif // {{ upper }}_HPP
