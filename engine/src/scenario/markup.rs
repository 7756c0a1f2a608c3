//! The start tags of an HTML text with their attributes, in their order (WHATWG HTML, section
//! 13.2.5, as far as tags need it). Comments hold no tags, and neither does what is plain text to a
//! browser that runs scripts. It knows nothing of what tags mean.

use memchr::{memchr, memmem};

/// Elements whose content is text.
const TEXT_ONLY: [&[u8]; 9] = [
    b"script",
    b"style",
    b"textarea",
    b"title",
    b"xmp",
    b"iframe",
    b"noembed",
    b"noframes",
    b"noscript",
];

/// A start tag.
#[derive(Debug)]
pub struct Tag<'a> {
    name: &'a [u8],
    attributes: Vec<(&'a [u8], &'a [u8])>,
}

impl Tag<'_> {
    /// Whether it has this name, given in small letters.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The value of the first attribute of this name as it is written, entities and all.
    pub fn attribute(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.attributes.iter();
        found
            .find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| *value)
    }
}

/// The tags of a text, one after the other.
#[derive(Debug)]
pub struct Tags<'a> {
    /// What has not been read.
    rest: &'a [u8],
}

impl<'a> Tags<'a> {
    pub fn of(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    fn skip_past(&mut self, end: &[u8]) {
        let at = memmem::find(self.rest, end).map_or(self.rest.len(), |at| at + end.len());
        self.rest = &self.rest[at..];
    }

    /// What comes before the first byte that ends it.
    fn until(&mut self, ends: impl Fn(u8) -> bool) -> &'a [u8] {
        let at = self.rest.iter().position(|byte| ends(*byte));
        let (before, rest) = self.rest.split_at(at.unwrap_or(self.rest.len()));
        self.rest = rest;
        before
    }

    /// The tag whose name comes next; none where the text ends within it.
    fn tag(&mut self) -> Option<Tag<'a>> {
        let name = self.until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
        let mut attributes = Vec::new();
        loop {
            self.until(|byte| !byte.is_ascii_whitespace() && byte != b'/');
            match self.rest.first()? {
                b'>' => break,
                _ => attributes.push(self.attribute()),
            }
        }
        self.rest = &self.rest[1..];
        Some(Tag { name, attributes })
    }

    fn attribute(&mut self) -> (&'a [u8], &'a [u8]) {
        let from = self.rest;
        // An equals sign is part of a name that begins with it.
        self.rest = from.get(1..).unwrap_or_default();
        let rest =
            self.until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'='));
        let name = &from[..(1 + rest.len()).min(from.len())];
        let behind = self.rest.trim_ascii_start();
        let Some(behind) = behind.strip_prefix(b"=") else {
            return (name, b"");
        };
        self.rest = behind.trim_ascii_start();
        let value = match self.rest.first() {
            Some(quote @ (b'"' | b'\'')) => {
                self.rest = &self.rest[1..];
                let value = self.until(|byte| byte == *quote);
                self.rest = self.rest.get(1..).unwrap_or_default();
                value
            }
            _ => self.until(|byte| byte.is_ascii_whitespace() || byte == b'>'),
        };
        (name, value)
    }

    /// Goes to the end tag of an element that holds text alone, or to the end.
    fn skip_text_of(&mut self, name: &[u8]) {
        while let Some(at) = memmem::find(self.rest, b"</") {
            self.rest = &self.rest[at..];
            let after = &self.rest[2..];
            let ends = after
                .get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name))
                && after
                    .get(name.len())
                    .is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
            if ends {
                return;
            }
            self.rest = after;
        }
        self.rest = b"";
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let open = memchr(b'<', self.rest)?;
            self.rest = &self.rest[open + 1..];
            match self.rest.first()? {
                // Its dashes may also be those of its end.
                b'!' if self.rest.starts_with(b"!--") => {
                    self.rest = &self.rest[1..];
                    self.skip_past(b"-->");
                }
                b'!' | b'?' | b'/' => self.skip_past(b">"),
                first if first.is_ascii_alphabetic() => {
                    let tag = self.tag()?;
                    if let Some(name) = TEXT_ONLY.iter().find(|name| {
                        let known: &[u8] = name;
                        tag.name.eq_ignore_ascii_case(known)
                    }) {
                        self.skip_text_of(name);
                    }
                    return Some(tag);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Names of tags with their attributes, as `name a=b`.
    fn tags(text: &str) -> Vec<String> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Tags::of(text.as_bytes())
            .map(|tag| {
                let mut shown = text_of(tag.name);
                for (name, value) in &tag.attributes {
                    shown += &format!(" {}={}", text_of(name), text_of(value));
                }
                shown
            })
            .collect()
    }

    #[test]
    fn attributes_are_quoted_or_not() {
        for (text, expected) in [
            ("<img src=a.png>", "img src=a.png"),
            ("<IMG SRC = 'a b' alt>", "IMG SRC=a b alt="),
            ("<img\n\tsrc=\"a>b\"/>", "img src=a>b"),
            ("<img src=a/b/ x>", "img src=a/b/ x="),
            ("<a =b=c>", "a =b=c"),
            ("<br/>", "br"),
        ] {
            assert_eq!(tags(text), [expected], "{text}");
        }
    }

    #[test]
    fn comments_and_texts_hold_no_tags() {
        let text = "<!DOCTYPE html><!-- <img src=1> --><!--><b><script>if (a<b) '<img>'</SCRIPT ><i>\
                    <style><img></style><title><u></title><noscript><img></noscript></p><s>";
        let expected = ["b", "script", "i", "style", "title", "noscript", "s"];
        assert_eq!(tags(text), expected);
        assert_eq!(tags("1 < 2 <3 <?php <b> ?><i>"), ["i"]);
        assert_eq!(tags("<script>never ended <img>"), ["script"]);
    }

    #[test]
    fn an_unfinished_tag_is_none() {
        for text in ["<img src=a", "<img", "<", "<img src='a>", "<!-- <b>"] {
            assert_eq!(tags(text), [""; 0], "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_or_turns_in_a_circle(text in "[<>!/='\" a-c\\-]{0,60}") {
            prop_assert!(tags(&text).len() <= text.len());
        }
    }
}
