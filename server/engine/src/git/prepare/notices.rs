//! What a job's tree lacks, compared with the person's checkout.

use std::collections::BTreeSet;

use pactify_core::ObjectId;
use pactify_core::display::headline;

use crate::git::Git;
use crate::git::command::Place;
use crate::git::error::GitError;
use crate::git::listing::Listing;

/// Something the person should know about the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A stable name.
    pub id: &'static str,
    /// One sentence.
    pub text: String,
}

impl Git {
    /// What to say about a tree of `listing`.
    pub(super) fn notices(&self, place: Place<'_>, listing: &Listing, sparse: bool) -> Result<Vec<Notice>, GitError> {
        let mut notices = Vec::new();
        let filters = self.filters(place, listing)?;
        if !filters.is_empty() {
            let names = filters.into_iter().collect::<Vec<_>>().join(", ");
            let text = format!(
                "files with a content filter ({names}) are in the job's tree as the repository stores them: \
                 no filter is run"
            );
            notices.push(Notice { id: "contentFilters", text });
        }
        if sparse {
            let text = "the job's tree has the same sparse patterns as the checkout".to_owned();
            notices.push(Notice { id: "sparseCheckout", text });
        }
        Ok(notices)
    }

    /// The content filters that the base's attributes name, LFS apart.
    fn filters(&self, place: Place<'_>, listing: &Listing) -> Result<BTreeSet<String>, GitError> {
        let objects: Vec<&ObjectId> = listing.files_called(b".gitattributes").map(|(_, entry)| &entry.object).collect();
        let texts = self.contents_there(place, &objects)?;
        let named = |text: &Vec<u8>| {
            let text = String::from_utf8_lossy(text).into_owned();
            let names = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            let names = names.flat_map(str::split_ascii_whitespace).filter_map(|word| word.strip_prefix("filter="));
            names.filter(|name| *name != "lfs").map(|name| headline(name, 40)).collect::<Vec<_>>()
        };
        Ok(texts.iter().flatten().flat_map(named).collect())
    }
}
