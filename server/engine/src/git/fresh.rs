//! A repository of ours with one commit, for jobs that belong to nobody's repository: the doctor's probes.

use git2::{ErrorClass, RepositoryInitOptions, Signature, Time};
use pactify_core::AbsPath;

/// Where they are in `PACTIFY_HOME`, as the store calls it.
pub(super) const FOLDER: &str = "probes";

/// Makes one at `folder`, which exists and is empty. Nothing of the person's configuration or templates gets into it.
///
/// # Errors
/// When libgit2 cannot write there.
pub fn make_repository(folder: &AbsPath) -> Result<(), git2::Error> {
    let mut options = RepositoryInitOptions::new();
    options.no_reinit(true).mkdir(false).external_template(false).initial_head("main");
    let repository = git2::Repository::init_opts(folder.as_path(), &options)?;
    let readme = "A repository that pactify made to see whether a harness works. It goes by itself.\n";
    let written =
        |error: std::io::Error| git2::Error::new(git2::ErrorCode::GenericError, ErrorClass::Os, error.to_string());
    std::fs::write(folder.join("README.md").as_path(), readme).map_err(written)?;
    let mut index = repository.index()?;
    index.add_path("README.md".as_ref())?;
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    let nobody = Signature::new("pactify", "pactify@localhost.invalid", &Time::new(0, 0))?;
    repository.commit(Some("HEAD"), &nobody, &nobody, "begin", &tree, &[])?;
    Ok(())
}
