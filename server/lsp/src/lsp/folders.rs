//! The workspace's folders, and which of them a command means when it names none. Pure.

use lsp_types::{InitializeParams, Url, WorkspaceFolder, WorkspaceFoldersChangeEvent};
use pactify_core::protocol::view::{file_uri, path_of_uri};
use pactify_core::{AbsPath, Failure, FailureCode};

/// The open folders, in the client's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Folders(Vec<AbsPath>);

/// The folders that `initialize` names. A folder that is no `file:` URI holds no repository of ours.
pub(super) fn named_in(params: &InitializeParams) -> Folders {
    #[expect(deprecated, reason = "clients without workspace folders say it in the older ways")]
    let root = || {
        let path = || params.root_path.as_deref().and_then(|path| AbsPath::new(path).ok());
        params.root_uri.as_ref().and_then(of_url).or_else(path)
    };
    match &params.workspace_folders {
        Some(folders) if !folders.is_empty() => Folders(folders.iter().filter_map(of_folder).collect()),
        _ => Folders(root().into_iter().collect()),
    }
}

impl Folders {
    /// Their paths.
    pub(super) fn paths(&self) -> &[AbsPath] {
        &self.0
    }

    /// Follows `workspace/didChangeWorkspaceFolders`.
    pub(super) fn change(&mut self, event: &WorkspaceFoldersChangeEvent) {
        let removed: Vec<AbsPath> = event.removed.iter().filter_map(of_folder).collect();
        self.0.retain(|folder| !removed.contains(folder));
        for added in event.added.iter().filter_map(of_folder) {
            if !self.0.contains(&added) {
                self.0.push(added);
            }
        }
    }

    /// The `file:` URI that stands for the repository when a command names none: the folder that holds `document`, else
    /// the only folder, else the document's own place.
    pub(super) fn repository(&self, document: Option<&AbsPath>) -> Result<String, Failure> {
        let holding = document.and_then(|document| {
            let holding = self.0.iter().filter(|folder| document.as_path().starts_with(folder.as_path()));
            holding.max_by_key(|folder| folder.as_path().components().count())
        });
        if let Some(folder) = holding {
            return Ok(file_uri(folder.as_path()));
        }
        match (self.0.as_slice(), document.and_then(|document| document.as_path().parent())) {
            ([only], _) => Ok(file_uri(only.as_path())),
            ([], Some(parent)) => Ok(file_uri(parent)),
            ([], None) => Err(invalid(
                "no folder is open, so `repository` has to be named",
                "open a folder, or pass `repository`: the file: URI of a folder in a git repository".to_owned(),
            )),
            (several, _) => {
                let choices: Vec<String> = several.iter().map(|folder| file_uri(folder.as_path())).collect();
                let next = format!("pass `repository` as one of {}", choices.join(", "));
                Err(invalid("several folders are open, so `repository` has to be named", next))
            }
        }
    }
}

fn invalid(message: &str, next: String) -> Failure {
    Failure::new(FailureCode::InvalidParams, message, next)
}

fn of_folder(folder: &WorkspaceFolder) -> Option<AbsPath> {
    of_url(&folder.uri)
}

fn of_url(url: &Url) -> Option<AbsPath> {
    path_of_uri(url.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folders(paths: &[&str]) -> Folders {
        Folders(paths.iter().map(|path| AbsPath::new(*path).unwrap()).collect())
    }

    #[test]
    fn every_way_of_naming_folders_is_read() {
        let cases = [
            (
                json!({"workspaceFolders": [{"uri": "file:///a%20b", "name": "x"}], "rootUri": "file:///c"}),
                vec!["/a b"],
            ),
            (json!({"workspaceFolders": [], "rootUri": "file:///c"}), vec!["/c"]),
            (json!({"rootUri": null, "rootPath": "/d"}), vec!["/d"]),
            (json!({"workspaceFolders": [{"uri": "vscode-vfs://x/y", "name": "x"}]}), vec![]),
            (json!({}), vec![]),
        ];
        for (mut params, expected) in cases {
            params["capabilities"] = json!({});
            assert_eq!(named_in(&serde_json::from_value(params.clone()).unwrap()), folders(&expected), "{params}");
        }
    }

    #[test]
    fn the_repository_is_the_documents_folder_or_the_only_one() {
        let document = |path: &str| AbsPath::new(path).unwrap();
        let cases = [
            (vec!["/a"], None, Ok("file:///a")),
            (vec!["/a"], Some("/elsewhere/x.brief.md"), Ok("file:///a")),
            (vec!["/a", "/b"], Some("/b/x.brief.md"), Ok("file:///b")),
            (vec!["/a", "/a/sub"], Some("/a/sub/x.brief.md"), Ok("file:///a/sub")),
            (vec![], Some("/a/x.brief.md"), Ok("file:///a")),
            (vec![], None, Err("no folder is open")),
            (vec!["/a", "/b"], None, Err("several folders are open")),
            (vec!["/a", "/b"], Some("/c/x.brief.md"), Err("several folders are open")),
        ];
        for (open, place, expected) in cases {
            let found = folders(&open).repository(place.map(document).as_ref());
            match (found, expected) {
                (Ok(uri), Ok(expected)) => assert_eq!(uri, expected),
                (Err(failure), Err(expected)) => assert!(failure.message.starts_with(expected), "{failure:?}"),
                (found, expected) => panic!("{open:?} {place:?}: {found:?} instead of {expected:?}"),
            }
        }
        let failure = folders(&["/a", "/b"]).repository(None).unwrap_err();
        assert!(failure.next.contains("file:///a, file:///b"), "{}", failure.next);
    }

    #[test]
    fn changes_are_followed() {
        let mut open = folders(&["/a", "/b"]);
        let folder = |uri: &str| json!({"uri": uri, "name": "x"});
        let event = json!({"added": [folder("file:///c"), folder("file:///b")], "removed": [folder("file:///a")]});
        open.change(&serde_json::from_value(event).unwrap());
        assert_eq!(open, folders(&["/b", "/c"]));
    }
}
