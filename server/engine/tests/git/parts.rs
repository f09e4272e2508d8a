//! Parts of a result, taken one after the other: by group, by mode, before and after a resume, with a checkout that
//! goes its own way meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pactify_core::job::event::{AttemptReason, HostRecord, Known, ProcessRecord};
use pactify_core::job::outcome::{Disposition, Outcome};
use pactify_core::protocol::{Applied, ApplyParams, Content, Preview};
use pactify_core::{Failure, FailureCode};
use pactify_engine::job_dir::JobLock;
use pactify_engine::jobs::Jobs;
use pactify_engine::journal::Journal;
use pactify_engine::store::Store;
use serde_json::{Value, json};

use crate::support::{Fixture, Landed};

const BASE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
const RESULT: &str = "eins\n2\n3\n4\nfünf\n6\n7\n8\nneun\n";
const FIRST: &str = "-1,1+1,1";
const MIDDLE: &str = "-5,1+5,1";
const LAST: &str = "-9,1+9,1";

/// A job that changed three lines of `a.txt` and added `b.txt`.
fn landed() -> (Fixture, Landed) {
    let fixture = Fixture::with(&[("a.txt", BASE)]);
    let landed = fixture.land(|job| {
        job.write("a.txt", RESULT);
        job.write("b.txt", "new\n");
    });
    (fixture, landed)
}

fn apply(landed: &Landed, more: Value) -> Result<Applied, Failure> {
    let jobs = Jobs::open(landed.env.clone()).unwrap();
    let job = landed.job.places.job();
    let change_set = jobs.status(job).unwrap().change_set.unwrap();
    let mut params = json!({ "jobId": job, "changeSet": change_set });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    jobs.apply(&serde_json::from_value::<ApplyParams>(params).unwrap())
}

fn groups(groups: &[&str]) -> Value {
    json!({ "select": [{ "path": "a.txt", "groups": groups }] })
}

fn read(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.repo.join(path)).unwrap()
}

/// The conflicts of a refusal as `kind path`, with the objects that would confirm merges.
fn refused(applied: Result<Applied, Failure>) -> (Vec<String>, Vec<String>) {
    let failure = applied.unwrap_err();
    assert_eq!(failure.code, FailureCode::ApplyConflict, "{failure:?}");
    let told = failure.conflicts.iter().map(|conflict| format!("{:?} {}", conflict.kind, conflict.path.path));
    (told.collect(), failure.conflicts.iter().filter_map(|conflict| conflict.object.clone()).collect())
}

/// The person resumes the job, which does `work` and ends.
fn resume(fixture: &Fixture, landed: &Landed, work: impl FnOnce()) {
    work();
    let captured = fixture.capture(&landed.job);
    let store = Store::open(&fixture.store).unwrap();
    let lock: JobLock = store.job(landed.job.places.job()).unwrap().lock(std::time::Duration::ZERO).unwrap();
    let mut journal = Journal::open(lock).unwrap();
    let attempt = journal.state().next_attempt();
    let process = ProcessRecord { pid: 1, start_time: 2, boot_id: "boot".into() };
    for event in [
        Known::AttemptStarted { reason: AttemptReason::Resume, host: HostRecord { process, version: "0".into() } },
        Known::Captured { result: captured.result },
        Known::AttemptEnded { outcome: Outcome::Succeeded, failure: None, final_message: None },
    ] {
        journal.append("2026-11-29T17:00:00Z".parse().unwrap(), attempt, event).unwrap();
    }
}

#[test]
fn groups_are_taken_one_by_one_and_the_rest_at_once() {
    let (fixture, landed) = landed();
    let applied = apply(&landed, groups(&[MIDDLE])).unwrap();
    assert_eq!(read(&fixture, "a.txt"), BASE.replace('5', "fünf"));
    assert_eq!((applied.disposition, applied.merged), (Disposition::PartlyApplied, vec![]));
    assert!(!fixture.repo.join("b.txt").exists());

    let again = apply(&landed, groups(&[MIDDLE])).unwrap();
    assert_eq!((again.applied.len(), again.already.len()), (0, 1), "it is there already");

    apply(&landed, groups(&[LAST, FIRST])).unwrap();
    assert_eq!(read(&fixture, "a.txt"), RESULT);
    let rest = apply(&landed, json!({})).unwrap();
    assert_eq!(rest.disposition, Disposition::Applied);
    assert_eq!((rest.applied.len(), rest.already.len()), (1, 1));
    assert_eq!(read(&fixture, "b.txt"), "new\n");
}

#[test]
fn a_part_that_was_taken_back_by_hand_can_be_taken_again() {
    let (fixture, landed) = landed();
    apply(&landed, groups(&[FIRST, LAST])).unwrap();
    fs::write(fixture.repo.join("a.txt"), BASE.replace('9', "neun")).unwrap();
    apply(&landed, groups(&[FIRST])).unwrap();
    assert_eq!(read(&fixture, "a.txt"), BASE.replace('1', "eins").replace('9', "neun"));
    fs::write(fixture.repo.join("a.txt"), BASE).unwrap();
    apply(&landed, json!({})).unwrap();
    assert_eq!(read(&fixture, "a.txt"), RESULT);
}

#[test]
fn parts_that_there_are_not_are_refused_by_name() {
    let (fixture, landed) = landed();
    for (select, told) in [
        (json!([{ "path": "a.txt", "groups": ["-2,1+2,1"] }]), "a.txt: it has no part -2,1+2,1"),
        (json!([{ "path": "a.txt", "groups": ["mode"] }]), "a.txt: it has no part mode"),
        (json!([{ "path": "a.txt", "groups": [] }]), "select: name at least one part of a.txt, or leave `groups` out"),
        (
            json!([{ "path": "b.txt", "groups": [FIRST] }]),
            "b.txt can only be taken as a whole: the path is new, gone, or of another kind",
        ),
    ] {
        let failure = apply(&landed, json!({ "select": select })).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (FailureCode::InvalidParams, told));
    }
    apply(&landed, json!({ "select": [{ "path": "b.txt", "groups": ["whole"] }] })).unwrap();
    assert_eq!((read(&fixture, "a.txt").as_str(), read(&fixture, "b.txt").as_str()), (BASE, "new\n"));
}

#[test]
fn a_merge_is_shown_before_it_is_written() {
    let (fixture, landed) = landed();
    let mine = BASE.replace('3', "mine");
    fs::write(fixture.repo.join("a.txt"), &mine).unwrap();
    let (conflicts, objects) = refused(apply(&landed, json!({})));
    assert_eq!(conflicts, ["MergeNotShown a.txt"]);
    assert_eq!(read(&fixture, "a.txt"), mine, "nothing is written");
    assert!(!fixture.repo.join("b.txt").exists());

    let wrong = "0".repeat(40);
    let confirmed = |object: &str| json!({ "confirmMerges": [{ "path": "a.txt", "object": object }] });
    assert_eq!(refused(apply(&landed, confirmed(&wrong))).1, objects);
    let applied = apply(&landed, confirmed(&objects[0])).unwrap();
    assert_eq!(read(&fixture, "a.txt"), RESULT.replace('3', "mine"));
    assert_eq!(applied.merged.len(), 1);
    assert_eq!(applied.disposition, Disposition::Applied);
    let object = fixture.plain(&fixture.repo, &["hash-object", "a.txt"]);
    assert_eq!(object, objects[0], "what was confirmed is what is there");
    assert!(apply(&landed, json!({})).unwrap().applied.is_empty(), "nothing is left to take");
}

#[test]
fn what_was_merged_changes_again_before_it_is_confirmed() {
    let (fixture, landed) = landed();
    fs::write(fixture.repo.join("a.txt"), BASE.replace('3', "mine")).unwrap();
    let (_, objects) = refused(apply(&landed, json!({})));
    fs::write(fixture.repo.join("a.txt"), BASE.replace('3', "mine, later")).unwrap();
    let confirmed = json!({ "confirmMerges": [{ "path": "a.txt", "object": objects[0] }] });
    let (conflicts, others) = refused(apply(&landed, confirmed));
    assert_eq!(conflicts, ["MergeNotShown a.txt"]);
    assert_ne!(others, objects, "another text, which nobody has seen");
    assert_eq!(read(&fixture, "a.txt"), BASE.replace('3', "mine, later"));
}

#[test]
fn each_step_is_merged_against_what_was_accepted_before() {
    let (fixture, landed) = landed();
    apply(&landed, groups(&[FIRST])).unwrap();
    // The person goes on with what they took.
    fs::write(fixture.repo.join("a.txt"), BASE.replace('1', "eins, zwei")).unwrap();
    let (conflicts, objects) = refused(apply(&landed, groups(&[LAST])));
    assert_eq!(conflicts, ["MergeNotShown a.txt"]);
    let mut confirmed = groups(&[LAST]);
    confirmed["confirmMerges"] = json!([{ "path": "a.txt", "object": objects[0] }]);
    apply(&landed, confirmed).unwrap();
    assert_eq!(read(&fixture, "a.txt"), BASE.replace('1', "eins, zwei").replace('9', "neun"));

    fs::write(fixture.repo.join("a.txt"), BASE.replace('5', "cinq")).unwrap();
    let (conflicts, _) = refused(apply(&landed, groups(&[MIDDLE])));
    assert_eq!(conflicts, ["ContentDiffers a.txt"]);
}

#[test]
fn content_and_mode_are_taken_apart_and_merge_apart() {
    let fixture = Fixture::with(&[("a.sh", BASE), ("b.sh", "b\n"), ("c.sh", "c\n")]);
    let executable = |path: &std::path::Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let landed = fixture.land(|job| {
        job.write("a.sh", RESULT);
        job.write("c.sh", "see\n");
        for path in ["a.sh", "b.sh"] {
            executable(&job.tree().join(path));
        }
    });
    let bits = |path: &str| fs::metadata(fixture.repo.join(path)).unwrap().permissions().mode() & 0o777;
    apply(&landed, json!({ "select": [{ "path": "a.sh", "groups": ["mode"] }] })).unwrap();
    assert_eq!((read(&fixture, "a.sh").as_str(), bits("a.sh")), (BASE, 0o755));
    apply(&landed, json!({ "select": [{ "path": "a.sh", "groups": [FIRST, MIDDLE, LAST] }] })).unwrap();
    assert_eq!((read(&fixture, "a.sh").as_str(), bits("a.sh")), (RESULT, 0o755));

    fs::write(fixture.repo.join("b.sh"), "the person's\n").unwrap();
    executable(&fixture.repo.join("c.sh"));
    let applied = apply(&landed, json!({})).unwrap();
    assert_eq!(applied.merged.len(), 2, "each side changed another thing: nothing needs to be looked at");
    assert_eq!((read(&fixture, "b.sh").as_str(), bits("b.sh")), ("the person's\n", 0o755));
    assert_eq!((read(&fixture, "c.sh").as_str(), bits("c.sh")), ("see\n", 0o755));
    assert_eq!(applied.disposition, Disposition::Applied);
}

#[test]
fn the_rest_of_a_resumed_result_is_held_against_what_was_accepted() {
    let (fixture, landed) = landed();
    apply(&landed, groups(&[FIRST])).unwrap();
    apply(&landed, json!({ "select": [{ "path": "b.txt" }] })).unwrap();
    let later = BASE.replace('1', "uno").replace('9', "nove");
    resume(&fixture, &landed, || {
        landed.job.write("a.txt", &later);
        landed.job.write("b.txt", "newer\n");
    });
    // `eins` is in the checkout, `uno` replaces it; the group of the last line stands by itself.
    apply(&landed, groups(&[LAST])).unwrap();
    assert_eq!(read(&fixture, "a.txt"), BASE.replace('1', "eins").replace('9', "nove"));
    let (conflicts, _) = refused(apply(&landed, groups(&[FIRST])));
    assert_eq!(conflicts, ["ContentDiffers a.txt"], "it cannot be taken apart from what was accepted");
    let applied = apply(&landed, json!({})).unwrap();
    assert_eq!(applied.disposition, Disposition::Applied);
    assert_eq!((read(&fixture, "a.txt"), read(&fixture, "b.txt")), (later, "newer\n".to_owned()));
}

#[test]
fn what_a_resumed_job_takes_back_is_taken_back() {
    let (fixture, landed) = landed();
    apply(&landed, json!({})).unwrap();
    resume(&fixture, &landed, || {
        landed.job.write("a.txt", BASE);
        fs::remove_file(landed.job.tree().join("b.txt")).unwrap();
    });
    let applied = apply(&landed, json!({})).unwrap();
    assert_eq!(applied.applied.len(), 2);
    assert_eq!(read(&fixture, "a.txt"), BASE);
    assert!(!fixture.repo.join("b.txt").exists());
    assert_eq!(applied.disposition, Disposition::Applied);
}

#[test]
fn what_was_accepted_outlives_the_capture_that_it_came_from() {
    let fixture = Fixture::with(&[("a.bin", "\0base"), ("a.txt", BASE)]);
    let landed = fixture.land(|job| {
        job.write("a.bin", "\0first");
        job.write("a.txt", RESULT);
    });
    apply(&landed, json!({ "select": [{ "path": "a.bin" }, { "path": "a.txt", "groups": [FIRST] }] })).unwrap();
    resume(&fixture, &landed, || landed.job.write("a.bin", "\0second"));
    let accepted = fixture.store.join("jobs").join(&landed.job.id()).join("accepted");
    fixture.plain(accepted.as_path(), &["fsck", "--full", "--strict", "--no-dangling"]);
    apply(&landed, json!({})).unwrap();
    assert_eq!((read(&fixture, "a.bin").as_str(), read(&fixture, "a.txt").as_str()), ("\0second", RESULT));
}

/// The preview as JSON, of `more` than the summary.
fn preview(landed: &Landed, more: Value) -> Value {
    let mut params = json!({ "jobId": landed.job.places.job(), "format": "hunks" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let jobs = Jobs::open(landed.env.clone()).unwrap();
    let preview: Preview = jobs.preview(&serde_json::from_value(params).unwrap()).unwrap();
    serde_json::to_value(preview).unwrap()
}

fn merged(landed: &Landed, more: Value) -> Result<Content, Failure> {
    let mut params = json!({ "jobId": landed.job.places.job(), "side": "merged", "path": "a.txt" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Jobs::open(landed.env.clone()).unwrap().content(&serde_json::from_value(params).unwrap())
}

/// What the preview says of applying each path now: `path outlook`.
fn outlook(landed: &Landed) -> Vec<String> {
    let preview = preview(landed, json!({ "format": "summary", "checkout": true }));
    let told = |file: &Value| {
        let outlook = &file["outlook"];
        let kind = outlook["conflict"].as_str().or(outlook["kind"].as_str()).unwrap();
        format!("{} {kind}", file["path"].as_str().unwrap())
    };
    preview["files"].as_array().unwrap().iter().map(told).collect()
}

#[test]
fn a_preview_names_the_parts_and_what_was_taken_of_them() {
    let (_fixture, landed) = landed();
    apply(&landed, groups(&[MIDDLE])).unwrap();
    let files = preview(&landed, json!({}))["files"].clone();
    assert_eq!(
        files[0]["groups"],
        json!([
            { "id": FIRST, "accepted": false },
            { "id": MIDDLE, "accepted": true },
            { "id": LAST, "accepted": false }
        ])
    );
    assert_eq!(
        files[0]["hunks"][1],
        json!({ "id": MIDDLE, "accepted": true, "oldStart": 5, "oldLines": ["5"], "newStart": 5, "newLines": ["fünf"] })
    );
    assert_eq!(files[1]["groups"], json!([{ "id": "whole", "accepted": false }]));
    let accepted = |format| {
        let files = preview(&landed, json!({ "format": format }))["files"].clone();
        [0, 1].map(|file| files[file]["accepted"] == true)
    };
    assert_eq!(accepted("summary"), [false, false]);
    apply(&landed, json!({ "select": [{ "path": "b.txt" }] })).unwrap();
    assert_eq!(accepted("summary"), [false, true]);
    apply(&landed, json!({})).unwrap();
    assert_eq!((accepted("summary"), accepted("hunks")), ([true, true], [true, true]));
    let files = preview(&landed, json!({}))["files"].clone();
    assert_eq!(files[0]["groups"][0]["accepted"], true);
    assert_eq!(files[1]["groups"], json!([{ "id": "whole", "accepted": true }]));
}

#[test]
fn hunks_mark_words_and_hide_nothing() {
    let fixture = Fixture::with(&[("a.txt", "let total = count(list);\n")]);
    let landed = fixture.land(|job| job.write("a.txt", "let total = count(\u{202e}tsil);\u{1b}[2K\n"));
    let hunk = preview(&landed, json!({}))["files"][0]["hunks"][0].clone();
    assert_eq!(hunk["newLines"], json!(["let total = count(\\u{202e}tsil);\\u{1b}[2K"]));
    assert_eq!(hunk["oldWords"], json!([{ "line": 0, "start": 18, "end": 22 }]));
    assert_eq!(hunk["newWords"][0]["start"], 18);
}

#[test]
fn a_file_of_too_many_changed_lines_is_taken_whole() {
    let long = |word: &str| (0..3_000).map(|line| format!("{word} {line}\n")).collect::<String>();
    let fixture = Fixture::with(&[("a.txt", &long("old"))]);
    let landed = fixture.land(|job| job.write("a.txt", &long("new")));
    let seen = preview(&landed, json!({}));
    assert_eq!((&seen["truncated"], &seen["files"][0]["truncated"]), (&json!(true), &json!(true)));
    assert_eq!(seen["files"][0]["groups"], json!([{ "id": "whole", "accepted": false }]));
    let failure = apply(&landed, groups(&["-1,3000+1,3000"])).unwrap_err();
    assert_eq!(
        failure.message,
        "a.txt can only be taken as a whole: more than 5000 of its lines changed, which no preview shows in full"
    );
    apply(&landed, json!({})).unwrap();
    assert_eq!(read(&fixture, "a.txt"), long("new"));
}

#[test]
fn renames_are_told_and_chosen_as_two_changes() {
    let fixture = Fixture::with(&[("old name.txt", BASE), ("other.txt", "unlike\n")]);
    let landed = fixture.land(|job| {
        fs::rename(job.tree().join("old name.txt"), job.tree().join("new.txt")).unwrap();
        job.write("new.txt", &BASE.replace('5', "five"));
        fs::remove_file(job.tree().join("other.txt")).unwrap();
    });
    let files = preview(&landed, json!({ "format": "summary" }))["files"].clone();
    assert_eq!((&files[0]["path"], &files[0]["renamedFrom"]["path"]), (&json!("new.txt"), &json!("old name.txt")));
    assert_eq!((&files[1]["path"], &files[1]["renamedTo"]["path"]), (&json!("old name.txt"), &json!("new.txt")));
    assert!(files[0]["similarity"].as_u64().unwrap() >= 50 && files[0]["similarity"] == files[1]["similarity"]);
    assert!(files[2].get("renamedTo").is_none(), "{files}");

    // The person goes on with the old file: a rename against a modification.
    fs::write(fixture.repo.join("old name.txt"), BASE.replace('1', "mine")).unwrap();
    assert_eq!(outlook(&landed), ["new.txt clean", "old name.txt contentDiffers", "other.txt clean"]);
    assert_eq!(refused(apply(&landed, json!({}))).0, ["ContentDiffers old name.txt"]);
    assert!(!fixture.repo.join("new.txt").exists(), "nothing is written");
    apply(&landed, json!({ "select": [{ "path": "new.txt" }] })).unwrap();
    assert_eq!(read(&fixture, "old name.txt"), BASE.replace('1', "mine"));
}

#[test]
fn what_an_apply_would_do_is_told_beforehand() {
    let same = ["clean", "already", "merge", "lines", "gone", "binary", "deleted"];
    let named = |name: &str| format!("{name}.txt");
    let files: Vec<(String, &str)> = same.iter().map(|name| (named(name), BASE)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let fixture = Fixture::with(&files);
    let landed = fixture.land(|job| {
        for name in ["clean", "already", "merge", "lines", "gone"] {
            job.write(&named(name), RESULT);
        }
        job.write("binary.txt", "\0");
        job.write("added.txt", "theirs\n");
        job.write("both.txt", "the same\n");
        fs::remove_file(job.tree().join("deleted.txt")).unwrap();
    });
    let put = |name: &str, text: &str| fs::write(fixture.repo.join(named(name)), text).unwrap();
    put("already", RESULT);
    put("merge", &BASE.replace('3', "mine"));
    put("lines", &BASE.replace(['1', '9'], "mine"));
    fs::remove_file(fixture.repo.join("gone.txt")).unwrap();
    put("binary", &BASE.replace('3', "mine"));
    put("deleted", &BASE.replace('3', "mine"));
    put("added", "untracked, the person's\n");
    put("both", "the same\n");
    let before = fixture.belongings();
    assert_eq!(
        outlook(&landed),
        [
            "added.txt alreadyExists",
            "already.txt already",
            "binary.txt contentDiffers",
            "both.txt already",
            "clean.txt clean",
            "deleted.txt contentDiffers",
            "gone.txt missing",
            "lines.txt contentDiffers",
            "merge.txt merge",
        ]
    );
    let (conflicts, _) = refused(apply(&landed, json!({})));
    assert_eq!(
        conflicts,
        [
            "AlreadyExists added.txt",
            "ContentDiffers binary.txt",
            "ContentDiffers deleted.txt",
            "Missing gone.txt",
            "ContentDiffers lines.txt",
            "MergeNotShown merge.txt",
        ]
    );
    assert_eq!(fixture.belongings(), before, "neither a look nor a refusal writes");
}

#[test]
fn the_merged_side_is_what_an_apply_writes_or_the_conflict_marked() {
    let (fixture, landed) = landed();
    let exact = |content: Content| (content.text.unwrap(), content.conflicts);
    assert_eq!(exact(merged(&landed, json!({})).unwrap()), (RESULT.to_owned(), Some(0)));
    let part = json!({ "groups": [MIDDLE] });
    assert_eq!(exact(merged(&landed, part.clone()).unwrap()).0, BASE.replace('5', "fünf"));

    fs::write(fixture.repo.join("a.txt"), BASE.replace('3', "mine")).unwrap();
    let all = merged(&landed, json!({})).unwrap();
    assert_eq!(all.text.as_deref(), Some(RESULT.replace('3', "mine").as_str()));
    assert_eq!(all.object, Some(refused(apply(&landed, json!({}))).1[0].clone()), "the id that an apply asks for");
    let some = merged(&landed, part).unwrap();
    assert_eq!(some.text.as_deref(), Some(BASE.replace('3', "mine").replace('5', "fünf").as_str()));

    fs::write(fixture.repo.join("a.txt"), BASE.replace('1', "mine")).unwrap();
    let marked = merged(&landed, json!({})).unwrap();
    assert_eq!((marked.conflicts, marked.object), (Some(1), None));
    let text = marked.text.unwrap();
    let conflict = "<<<<<<< your checkout\nmine\n||||||| accepted before\n1\n=======\neins\n>>>>>>> the job\n2\n";
    assert!(text.starts_with(conflict), "{text}");
    assert_eq!(read(&fixture, "a.txt"), BASE.replace('1', "mine"), "it is never written");

    fs::remove_file(fixture.repo.join("a.txt")).unwrap();
    assert_eq!(merged(&landed, json!({})).unwrap_err().code, FailureCode::ApplyConflict);
}

#[test]
fn merges_keep_the_form_of_the_checkout() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let dos = |text: &str| text.replace('\n', "\r\n").into_bytes();
    type Encode<'e> = &'e dyn Fn(&str) -> Vec<u8>;
    for (attributes, encode) in
        [("*.txt text eol=crlf\n", &dos as Encode<'_>), ("*.txt working-tree-encoding=UTF-16LE\n", &utf16), ("", &dos)]
    {
        let fixture = Fixture::empty(&[]);
        let file = fixture.repo.join("a.txt");
        fs::write(&file, encode(BASE)).unwrap();
        fixture.commit(&[(".gitattributes", attributes)]);
        let landed = fixture.land(|job| fs::write(job.tree().join("a.txt"), encode(RESULT)).unwrap());
        fs::write(&file, encode(&BASE.replace('3', "mine"))).unwrap();
        let (conflicts, objects) = refused(apply(&landed, json!({})));
        assert_eq!(conflicts, ["MergeNotShown a.txt"], "{attributes}");
        apply(&landed, json!({ "confirmMerges": [{ "path": "a.txt", "object": objects[0] }] })).unwrap();
        assert_eq!(fs::read(&file).unwrap(), encode(&RESULT.replace('3', "mine")), "{attributes}");

        // A part in that form, and then the rest.
        fs::write(&file, encode(BASE)).unwrap();
        let landed = fixture.land(|job| fs::write(job.tree().join("a.txt"), encode(RESULT)).unwrap());
        apply(&landed, groups(&[LAST])).unwrap();
        assert_eq!(fs::read(&file).unwrap(), encode(&BASE.replace('9', "neun")), "{attributes}");
        assert_eq!(apply(&landed, json!({})).unwrap().disposition, Disposition::Applied);
        assert_eq!(fs::read(&file).unwrap(), encode(RESULT), "{attributes}");
    }
}

#[test]
fn the_index_and_unrelated_dirt_stay_byte_for_byte() {
    let (fixture, landed) = landed();
    fs::write(fixture.repo.join("c.txt"), "untracked").unwrap();
    fs::write(fixture.repo.join("a.txt"), BASE.replace('3', "staged")).unwrap();
    fixture.plain(&fixture.repo, &["add", "a.txt"]);
    fs::write(fixture.repo.join("a.txt"), BASE.replace('3', "staged, and more")).unwrap();
    let index = fs::read(fixture.repo.join(".git/index")).unwrap();
    let (_, objects) = refused(apply(&landed, json!({})));
    apply(&landed, json!({ "confirmMerges": [{ "path": "a.txt", "object": objects[0] }] })).unwrap();
    assert_eq!(fs::read(fixture.repo.join(".git/index")).unwrap(), index);
    assert_eq!(read(&fixture, "c.txt"), "untracked");
    assert_eq!(read(&fixture, "a.txt"), RESULT.replace('3', "staged, and more"));
    assert_eq!(fixture.plain(&fixture.repo, &["show", ":a.txt"]), BASE.replace('3', "staged").trim_end());
}

#[test]
fn parts_and_merges_work_in_a_sha256_repository() {
    let fixture = Fixture::empty(&["--object-format=sha256"]);
    fixture.commit(&[("a.txt", BASE)]);
    let landed = fixture.land(|job| job.write("a.txt", RESULT));
    apply(&landed, groups(&[FIRST])).unwrap();
    fs::write(fixture.repo.join("a.txt"), BASE.replace('1', "eins").replace('3', "mine")).unwrap();
    let (_, objects) = refused(apply(&landed, json!({})));
    apply(&landed, json!({ "confirmMerges": [{ "path": "a.txt", "object": objects[0] }] })).unwrap();
    assert_eq!(read(&fixture, "a.txt"), RESULT.replace('3', "mine"));
}

/// The journal with so many bytes of its last record: the process died between the apply and the record of it, or at
/// that.
fn forget_last_record(fixture: &Fixture, landed: &Landed, left: usize) {
    let journal = fixture.store.join("jobs").join(&landed.job.id()).join("events.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let last = text.trim_end().rfind('\n').unwrap();
    assert!(text[last..].contains("\"applied\""), "{}", &text[last..]);
    fs::write(&journal, &text[..=last + left]).unwrap();
}

#[test]
fn an_apply_that_was_never_recorded_is_recorded_with_what_it_accepted() {
    for left in [0, 1, 40] {
        let (fixture, landed) = landed();
        apply(&landed, groups(&[FIRST])).unwrap();
        forget_last_record(&fixture, &landed, left);
        // Without the first apply's tree, this one would be held against the base, and be a merge.
        let applied = apply(&landed, groups(&[LAST])).unwrap();
        assert_eq!((applied.apply, applied.merged), (2, vec![]), "{left}");
        assert_eq!(read(&fixture, "a.txt"), BASE.replace('1', "eins").replace('9', "neun"));
        let parts = preview(&landed, json!({}))["files"][0]["groups"].clone();
        let accepted: Vec<_> = parts.as_array().unwrap().iter().map(|part| part["accepted"].clone()).collect();
        assert_eq!(accepted, [json!(true), json!(false), json!(true)], "{left}");
    }
}

#[test]
fn what_a_dying_apply_left_of_what_is_accepted_is_in_no_later_one_s_way() {
    type Torn = fn(&Path);
    let empty: Torn = |at| fs::create_dir(at).unwrap();
    let headless: Torn = |at| {
        fs::create_dir_all(at.join("objects")).unwrap();
        fs::write(at.join("config"), "").unwrap();
    };
    for (name, torn) in
        [("accepted.new", empty), ("accepted.new", headless), ("accepted", empty), ("accepted", headless)]
    {
        let (fixture, landed) = landed();
        let job = fixture.store.join("jobs").join(&landed.job.id());
        torn(job.join(name).as_path());
        apply(&landed, groups(&[FIRST])).unwrap();
        // Also of the second one.
        if name == "accepted.new" {
            torn(job.join(name).as_path());
        }
        let applied = apply(&landed, json!({})).unwrap();
        assert_eq!((read(&fixture, "a.txt").as_str(), applied.disposition), (RESULT, Disposition::Applied), "{name}");
        fixture.plain(job.join("accepted").as_path(), &["fsck", "--full", "--strict", "--no-dangling"]);
    }
}

#[test]
fn what_is_in_the_way_of_an_added_path_stays() {
    let fixture = Fixture::with(&[(".gitignore", "ignored.txt\n"), ("a.txt", BASE)]);
    let landed = fixture.land(|job| {
        for path in ["ignored-by-no-one.txt", "dir", "file/below"] {
            job.write(path, "the job's\n");
        }
    });
    let put = |path: &str| {
        let path = fixture.repo.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "the person's").unwrap();
    };
    put("ignored-by-no-one.txt");
    put("dir/of the person");
    put("file");
    fs::write(fixture.repo.join(".git/info/exclude"), "*.txt\n").unwrap();
    let before = fixture.belongings();
    let (conflicts, _) = refused(apply(&landed, json!({})));
    let expected = ["DirectoryInTheWay dir", "DirectoryInTheWay file/below", "AlreadyExists ignored-by-no-one.txt"];
    assert_eq!(conflicts, expected);
    assert_eq!(fixture.belongings(), before);
}
