// Made by `neon8 package`: runs the sample of a package, and compares the results with the PC's.

import dev.neon8.models.{{ java }};
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/** Example FOLDER: for a JVM; in an app the bytes come from the assets. */
public final class Example {
    private Example() {}

    public static void main(String[] words) throws IOException {
        Path folder = Paths.get(words[0]);
        boolean equal = true;
        try ({{ java }} net = new {{ java }}(read(folder, "assets/" + {{ java }}.ASSET), 1)) {
{% if w.arguments %}
            net.resize({{ w.arguments | map(attribute="usual") | join(", ") }});
{% endif %}
{% for v in w.inputs %}
            net.getSession().getInput({{ loop.index0 }}).put(read(folder, "sample/{{ v.identifier }}.raw"));
{% endfor %}
            net.run();
{% for v in w.outputs %}
            equal &= same(folder, "{{ v.identifier }}", net.getSession().getOutput({{ loop.index0 }}));
{% endfor %}
{% if w.labelled %}
            {{ w.labelled.info.dtype | jtype }}[] scores = net.get{{ methods[w.labelled.identifier] }}();
            int best = 0;
            for (int i = 1; i < scores.length; i++) {
                if (scores[i] > scores[best]) {
                    best = i;
                }
            }
            System.out.println("class " + best + ": " + {{ java }}.LABELS.get(best));
{% endif %}
        }
        System.exit(equal ? 0 : 1);
    }

    private static byte[] read(Path folder, String name) throws IOException {
        return Files.readAllBytes(folder.resolve(name));
    }

    private static boolean same(Path folder, String name, ByteBuffer result) throws IOException {
        ByteBuffer stored = ByteBuffer.wrap(read(folder, "sample/" + name + ".raw"));
        boolean equal = stored.equals(result);
        System.out.println(name + ": " + (equal ? "the same bytes as on the PC" : "DIFFERENT"));
        return equal;
    }
}
