//! The client's open documents, kept only as far as we need them. Pure.
//!
//! Of every document: whether it holds text that is not on disk, because an apply must not write under it, and the
//! text, because a job can start from it or be delegated by it. Changes come as parts, so that a text that is not kept
//! from the beginning cannot be known later; what is too long is not kept. An undo back to the saved text counts as
//! unsaved until the next save.

use std::collections::{BTreeSet, HashMap};

use lsp_types::{DidChangeTextDocumentParams, Position, TextDocumentContentChangeEvent, TextDocumentItem, Url};
use pactify_core::AbsPath;
use pactify_core::protocol::view::path_of_uri;
use pactify_engine::jobs::UnsavedText;

/// Longer texts are not kept, in bytes.
const MAX_KEPT: usize = 8 << 20;
/// All texts that are kept, in bytes; a change may go beyond.
const MAX_KEPT_TOGETHER: usize = 128 << 20;

/// What the client tells about a document.
#[derive(Debug)]
pub(super) enum Edit {
    /// It is open now, with this text.
    Opened(TextDocumentItem),
    /// Its text changed.
    Changed(DidChangeTextDocumentParams),
    /// Its text was written, to its file or to another one.
    Saved(Url),
    /// It is not open any more.
    Closed(Url),
}

/// A document's identity: clients do not always encode the same path in the same way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// A file of this machine.
    File(AbsPath),
    /// Anything else: `untitled:`, a remote file.
    Other(String),
}

/// Open documents by identity.
#[derive(Debug, Default)]
pub(super) struct Documents {
    open: HashMap<Key, Open>,
    openings: u64,
}

/// A question to the disk: does the text that was opened, or saved, differ from the file?
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// The file.
    pub path: AbsPath,
    /// Which opening or save of it; see [`Documents::differs`].
    pub opening: u64,
    /// The text at that moment.
    pub text: String,
}

/// What a document holds as a brief.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This text.
    Text(String),
    /// Its file says it.
    OnDisk,
    /// It is open with unsaved text that is not kept.
    Unsaved,
}

#[derive(Debug)]
struct Open {
    opening: u64,
    unsaved: bool,
    text: Option<String>,
}

impl Key {
    /// The identity behind a URI.
    pub(super) fn of(uri: &str) -> Self {
        path_of_uri(uri).map_or_else(|| Self::Other(uri.to_owned()), Self::File)
    }

    /// The URI that it was, or one for the same file.
    pub(super) fn uri(&self) -> String {
        match self {
            Self::File(path) => pactify_core::protocol::view::file_uri(path.as_path()),
            Self::Other(uri) => uri.clone(),
        }
    }

    fn is_brief(&self) -> bool {
        match self {
            Self::File(path) => path.as_path().as_os_str().as_encoded_bytes().ends_with(b".brief.md"),
            Self::Other(uri) => uri.ends_with(".brief.md"),
        }
    }
}

impl Documents {
    /// Follows one edit. A document that was opened may already hold unsaved text (editors restore it after a
    /// crash): the answer asks to compare it with its file.
    pub(super) fn follow(&mut self, edit: Edit) -> Option<Comparison> {
        match edit {
            Edit::Opened(item) => return self.opened(item),
            Edit::Changed(params) => {
                if let Some(open) = self.open.get_mut(&Key::of(params.text_document.uri.as_str())) {
                    open.unsaved = true;
                    for change in params.content_changes {
                        open.change(change);
                    }
                }
            }
            Edit::Saved(uri) => {
                self.openings += 1;
                let key = Key::of(uri.as_str());
                if let Some(open) = self.open.get_mut(&key) {
                    open.unsaved = false;
                    // An answer about the text as it was before is out of date.
                    open.opening = self.openings;
                    // Editors say so of a copy that they wrote elsewhere, too (`:w other`): the file decides.
                    return Comparison::of(key, self.openings, open.text.clone()?);
                }
            }
            Edit::Closed(uri) => {
                self.open.remove(&Key::of(uri.as_str()));
            }
        }
        None
    }

    /// The answer to a [`Comparison`]: the text differed.
    pub(super) fn differs(&mut self, path: AbsPath, opening: u64) {
        if let Some(open) = self.open.get_mut(&Key::File(path))
            && open.opening == opening
        {
            open.unsaved = true;
        }
    }

    /// The files whose open text is not on disk.
    pub(super) fn unsaved(&self) -> BTreeSet<AbsPath> {
        let unsaved = |(key, open): (&Key, &Open)| match key {
            Key::File(path) if open.unsaved => Some(path.clone()),
            _ => None,
        };
        self.open.iter().filter_map(unsaved).collect()
    }

    /// The files whose open text is not on disk, with that text.
    pub(super) fn unsaved_texts(&self) -> Vec<UnsavedText> {
        let unsaved = |(key, open): (&Key, &Open)| match key {
            Key::File(path) if open.unsaved => Some(UnsavedText { path: path.clone(), text: open.text.clone() }),
            _ => None,
        };
        self.open.iter().filter_map(unsaved).collect()
    }

    /// The brief that a document holds.
    pub(super) fn brief(&self, key: &Key) -> Found {
        match self.open.get(key) {
            Some(Open { text: Some(text), .. }) => Found::Text(text.clone()),
            Some(Open { unsaved: true, .. }) => Found::Unsaved,
            _ => Found::OnDisk,
        }
    }

    /// The open briefs, in a stable order.
    pub(super) fn briefs(&self) -> Vec<Key> {
        let mut briefs: Vec<Key> = self.open.keys().filter(|key| key.is_brief()).cloned().collect();
        briefs.sort();
        briefs
    }

    fn opened(&mut self, item: TextDocumentItem) -> Option<Comparison> {
        self.openings += 1;
        let opening = self.openings;
        let key = Key::of(item.uri.as_str());
        let kept: usize = self.open.values().filter_map(|open| open.text.as_ref()).map(String::len).sum();
        let fits = item.text.len() <= MAX_KEPT && kept + item.text.len() <= MAX_KEPT_TOGETHER;
        let text = fits.then(|| item.text.clone());
        self.open.insert(key.clone(), Open { opening, unsaved: false, text });
        Comparison::of(key, opening, item.text)
    }
}

impl Comparison {
    /// Only a file has what could differ.
    fn of(key: Key, opening: u64, text: String) -> Option<Self> {
        match key {
            Key::File(path) => Some(Self { path, opening, text }),
            Key::Other(_) => None,
        }
    }
}

impl Open {
    fn change(&mut self, change: TextDocumentContentChangeEvent) {
        let Some(range) = change.range else {
            self.text = (change.text.len() <= MAX_KEPT).then_some(change.text);
            return;
        };
        let Some(text) = &mut self.text else { return };
        let start = offset(text, range.start);
        let end = offset(text, range.end).max(start);
        text.replace_range(start..end, &change.text);
        if text.len() > MAX_KEPT {
            self.text = None;
        }
    }
}

/// The byte offset of a position, whose columns are UTF-16 units. A position outside the text is its nearest end.
fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text[start..].find(['\n', '\r']) {
            Some(at) if text[start + at..].starts_with("\r\n") => start += at + 2,
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    let line = text[start..].split(['\n', '\r']).next().unwrap_or_default();
    let mut units = 0;
    for (at, c) in line.char_indices() {
        units += c.len_utf16();
        if units > position.character as usize {
            return start + at;
        }
    }
    start + line.len()
}

/// Whether a file's bytes are the text that an editor opened. Editors drop a byte order mark and may tell line ends
/// and the last line's end in their own way; a file that is not UTF-8, or that holds what encodings beside it use (zero
/// bytes, escapes), was converted, and nothing can be said.
pub(super) fn is_same_text(file: &[u8], text: &str) -> bool {
    if file.iter().any(|byte| matches!(byte, 0 | 0x1b)) {
        return true;
    }
    let Ok(file) = std::str::from_utf8(file) else { return true };
    let lines = |text: &str| {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
        text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
    };
    file == text || lines(file) == lines(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn open(documents: &mut Documents, uri: &str, text: &str) -> Option<Comparison> {
        let item = json!({"uri": uri, "languageId": "x", "version": 1, "text": text});
        documents.follow(Edit::Opened(serde_json::from_value(item).unwrap()))
    }

    fn change(documents: &mut Documents, uri: &str, changes: Value) {
        let params = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes});
        documents.follow(Edit::Changed(serde_json::from_value(params).unwrap()));
    }

    fn range(text: &str, start: (u32, u32), end: (u32, u32)) -> Value {
        let position = |(line, character): (u32, u32)| json!({"line": line, "character": character});
        json!([{"range": {"start": position(start), "end": position(end)}, "text": text}])
    }

    fn unsaved(documents: &Documents) -> Vec<String> {
        documents.unsaved().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_unsaved_from_a_change_to_a_save_or_a_close() {
        let mut documents = Documents::default();
        let url = |uri: &str| Url::parse(uri).unwrap();
        open(&mut documents, "file:///a.rs", "x");
        open(&mut documents, "file:///b%20c.rs", "x");
        open(&mut documents, "untitled:1", "x");
        assert_eq!(unsaved(&documents), [""; 0]);
        for uri in ["file:///a.rs", "file:///b%20c.rs", "untitled:1", "file:///never-opened"] {
            change(&mut documents, uri, range("y", (0, 0), (0, 1)));
        }
        assert_eq!(unsaved(&documents), ["/a.rs", "/b c.rs"]);
        documents.follow(Edit::Saved(url("file:///a.rs")));
        assert_eq!(unsaved(&documents), ["/b c.rs"]);
        documents.follow(Edit::Closed(url("file:///b%20c.rs")));
        assert_eq!(unsaved(&documents), [""; 0]);
    }

    #[test]
    fn text_restored_from_a_crash_is_unsaved_once_the_disk_says_so() {
        let mut documents = Documents::default();
        let comparison = open(&mut documents, "file:///a.rs", "restored").unwrap();
        assert_eq!(comparison.text, "restored");
        documents.differs(comparison.path.clone(), comparison.opening);
        assert_eq!(unsaved(&documents), ["/a.rs"]);

        let late = open(&mut documents, "file:///a.rs", "restored").unwrap();
        documents.follow(Edit::Saved(Url::parse("file:///a.rs").unwrap()));
        documents.differs(late.path, late.opening);
        assert_eq!(unsaved(&documents), [""; 0], "the save came after the question");
    }

    #[test]
    fn a_save_counts_once_the_file_has_the_text() {
        let mut documents = Documents::default();
        open(&mut documents, "file:///a.rs", "x");
        change(&mut documents, "file:///a.rs", range("y", (0, 0), (0, 1)));
        let comparison = documents.follow(Edit::Saved(Url::parse("file:///a.rs").unwrap())).unwrap();
        assert_eq!((comparison.text.as_str(), unsaved(&documents)), ("y", Vec::new()));
        documents.differs(comparison.path, comparison.opening);
        assert_eq!(unsaved(&documents), ["/a.rs"], "a copy of it was written elsewhere");
    }

    #[test]
    fn the_text_of_briefs_follows_incremental_changes() {
        let mut documents = Documents::default();
        let uri = "file:///x.brief.md";
        open(&mut documents, uri, "# Häß🙂lich\r\nzwei\ndrei");
        for (edit, expected) in [
            (range("s", (0, 4), (0, 7)), "# Häslich\r\nzwei\ndrei"),
            (range("Z", (1, 0), (1, 1)), "# Häslich\r\nZwei\ndrei"),
            (range("", (0, 99), (1, 0)), "# HäslichZwei\ndrei"),
            (range("!", (9, 9), (9, 9)), "# HäslichZwei\ndrei!"),
            (json!([{"text": "all new"}]), "all new"),
        ] {
            change(&mut documents, uri, edit);
            assert_eq!(documents.brief(&Key::of(uri)), Found::Text(expected.to_owned()));
        }
        assert_eq!(documents.briefs(), [Key::of(uri)]);
    }

    #[test]
    fn texts_are_kept_unless_they_are_too_long() {
        let mut documents = Documents::default();
        let texts = |documents: &Documents| -> Vec<(String, Option<String>)> {
            let mut texts: Vec<_> =
                documents.unsaved_texts().into_iter().map(|unsaved| (unsaved.path.to_string(), unsaved.text)).collect();
            texts.sort();
            texts
        };
        open(&mut documents, "file:///a.rs", "fn main() {}");
        open(&mut documents, "untitled:1", "do it");
        open(&mut documents, "file:///long.brief.md", &"x".repeat(MAX_KEPT + 1));
        assert_eq!(texts(&documents), []);
        assert_eq!(documents.brief(&Key::of("file:///a.rs")), Found::Text("fn main() {}".to_owned()));
        assert_eq!(documents.brief(&Key::of("file:///long.brief.md")), Found::OnDisk);
        assert_eq!(documents.brief(&Key::of("untitled:1")), Found::Text("do it".to_owned()));
        change(&mut documents, "file:///a.rs", range("", (0, 0), (0, 3)));
        change(&mut documents, "file:///long.brief.md", range("", (0, 0), (0, 1)));
        assert_eq!(documents.brief(&Key::of("file:///long.brief.md")), Found::Unsaved);
        assert_eq!(
            texts(&documents),
            [("/a.rs".to_owned(), Some("main() {}".to_owned())), ("/long.brief.md".to_owned(), None)]
        );
        change(&mut documents, "file:///long.brief.md", json!([{"text": "short"}]));
        assert_eq!(documents.brief(&Key::of("file:///long.brief.md")), Found::Text("short".to_owned()));
        assert_eq!(documents.brief(&Key::of("file:///closed.brief.md")), Found::OnDisk);
    }

    #[test]
    fn all_texts_together_have_a_limit() {
        let mut documents = Documents::default();
        let text = "x".repeat(MAX_KEPT);
        for number in 0..=MAX_KEPT_TOGETHER / MAX_KEPT {
            open(&mut documents, &format!("file:///{number}"), &text);
        }
        let kept = documents.open.values().filter(|open| open.text.is_some()).count();
        assert_eq!(kept, MAX_KEPT_TOGETHER / MAX_KEPT);
    }

    #[test]
    fn an_editors_own_line_ends_are_not_a_difference() {
        for (file, text, same) in [
            (&b"a\r\nb\r\n"[..], "a\nb\n", true),
            (b"a\nb\n", "a\nb", true),
            (b"\xef\xbb\xbfa", "a", true),
            (b"caf\xe9", "caf\u{e9}", true),
            (b"\x1b$B4A\x1b(B", "\u{6f22}", true),
            (b"a\0b\0", "ab", true),
            (b"a", "b", false),
            (b"a\n\n", "a", false),
            (b"", "a", false),
        ] {
            assert_eq!(is_same_text(file, text), same, "{text:?}");
        }
    }
}
