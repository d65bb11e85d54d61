//! A Rust source file split into its code and its comments, line by line.

/// One source file, read just well enough to tell code from comments and from what stands in quotes.
pub(crate) struct Source {
    lines: Vec<Line>,
}

/// One line of a source file.
#[derive(Default)]
pub(crate) struct Line {
    /// The code, with `""` for every string and character.
    pub(crate) code: String,
    /// The comment, with its slashes.
    pub(crate) comment: String,
}

impl Source {
    /// Reads `text`, which the compiler is assumed to accept.
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = Reader { rest: text, lines: vec![Line::default()] };
        while !reader.rest.is_empty() {
            reader.token();
        }
        Self { lines: reader.lines }
    }

    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The lines before the file's own test module, which house style puts last.
    pub(crate) fn lines_without_tests(&self) -> impl Iterator<Item = (usize, &Line)> {
        let opens_tests = |pair: &[Line]| pair[0].code == "#[cfg(test)]" && pair[1].code == "mod tests {";
        let end = self.lines.windows(2).position(opens_tests).unwrap_or(self.lines.len());
        self.lines().take(end)
    }

    /// How many lines hold code.
    pub(crate) fn code_lines(&self) -> usize {
        self.lines.iter().filter(|line| !line.code.trim().is_empty()).count()
    }
}

/// Whether `word` occurs in `code` as a whole word.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

struct Reader<'a> {
    rest: &'a str,
    lines: Vec<Line>,
}

impl Reader<'_> {
    fn token(&mut self) {
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take_comment(end);
        } else if self.rest.starts_with("/*") {
            self.take_comment(block_comment_len(self.rest));
        } else if let Some(len) = self.literal() {
            self.take_literal(len);
        } else {
            // A whole name at once, so that the `r` in `for"` is not read as the start of a raw string.
            let name = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
            let first = self.rest.chars().next().map_or(0, char::len_utf8);
            self.take(name.max(first), |line, c| line.code.push(c));
        }
    }

    /// The length of the literal that starts here.
    fn literal(&self) -> Option<usize> {
        let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
            self.rest.strip_prefix(prefix).is_some_and(|rest| {
                rest.starts_with('"')
                    || (*prefix == "b" && rest.starts_with('\''))
                    || (prefix.is_empty() && is_character(rest))
                    || (prefix.ends_with('r') && rest.trim_start_matches('#').starts_with('"'))
            })
        })?;
        let rest = &self.rest[prefix.len()..];
        if prefix.ends_with('r') {
            let hashes = rest.len() - rest.trim_start_matches('#').len();
            let open = prefix.len() + hashes + 1;
            let close = format!("\"{}", &rest[..hashes]);
            let body = self.rest[open..].find(&close)?;
            return Some(open + body + close.len());
        }
        let quote = rest.chars().next()?;
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            if c == quote && !escaped {
                return Some(prefix.len() + at + 1);
            }
            escaped = c == '\\' && !escaped;
        }
        None
    }

    fn take_comment(&mut self, len: usize) {
        self.take(len, |line, c| line.comment.push(c));
    }

    /// Leaves `""`, and a quote on each further line of a long string, which thus still counts as code.
    fn take_literal(&mut self, len: usize) {
        if let Some(line) = self.lines.last_mut() {
            line.code.push_str("\"\"");
        }
        self.take(len, |line, _| {
            if line.code.is_empty() {
                line.code.push('"');
            }
        });
    }

    fn take(&mut self, len: usize, mut keep: impl FnMut(&mut Line, char)) {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.lines.push(Line::default());
            } else if let Some(line) = self.lines.last_mut() {
                keep(line, c);
            }
        }
    }
}

/// Whether a quote starts a character rather than a lifetime.
fn is_character(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('\'') && (chars.next() == Some('\\') || chars.next() == Some('\''))
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn code(text: &str) -> String {
    Source::read(text).lines().map(|(_, line)| line.code.as_str()).collect::<Vec<_>>().join("\n")
}

fn comments(text: &str) -> String {
    Source::read(text).lines().map(|(_, line)| line.comment.as_str()).collect()
}

#[test]
fn strings_characters_and_comments_are_not_code() {
    assert_eq!(code(r#"let a = "b // c \" d"; // e"#), r#"let a = ""; "#);
    assert_eq!(code(r##"f(r#"x "y" z"#, b'\'', '"', 'q')"##), r#"f("", "", "", "")"#);
    assert_eq!(code("a /* b /* c */ d */ e"), "a  e");
    assert_eq!(comments("a /* b */ c // d\n/// e"), "/* b */// d/// e");
}

#[test]
fn lifetimes_and_names_before_a_quote_are_code() {
    assert_eq!(code("fn f<'a>(x: &'a str) -> &'static str { x }"), "fn f<'a>(x: &'a str) -> &'static str { x }");
    assert_eq!(code("for x in macro_r!\"a\""), "for x in macro_r!\"\"");
}

#[test]
fn only_lines_with_code_count() {
    assert_eq!(Source::read("//! a\n\nfn f() {\n    // b\n    \"c\n    d\";\n}\n").code_lines(), 4);
}

#[test]
fn words_are_whole() {
    assert!(has_word("use rand::Rng;", "rand") && !has_word("operand.random()", "rand"));
}

#[test]
fn a_test_module_ends_what_counts_and_its_mere_declaration_does_not() {
    let kept = |text| Source::read(text).lines_without_tests().count();
    assert_eq!(kept("a\n#[cfg(test)]\nmod tests {\n    b\n}"), 1);
    assert_eq!(kept("#[cfg(test)]\nmod tests;\na"), 3);
}
