# SPDX-License-Identifier: Apache-2.0
"""HTML, read strictly."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "input", "br", "hr", "path", "rect", "circle"}


class Page(HTMLParser):
    """Checks that elements nest, and keeps them.  words: the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.ids, self.links, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        assert len(values) == len(attrs)
        self.seen.append((tag, values))
        self.ids += [values["id"]] if "id" in values else []
        href = values.get("href", "")
        self.links += [href[1:]] if href.startswith("#") else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def count(self, tag):
        return sum(each == tag for each, _ in self.seen)
