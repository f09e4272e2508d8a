//! What users of other tools reported of making trees, of git under concurrency, of previews, applies and cleanups:
//! each report that can happen on Linux, and the tests that show that it does not happen here. (The numbers are those
//! of our collection of reports.)

mod cases;

use crate::covered::covered;
use crate::threats;

/// What shows it.
enum By {
    /// A test: its source, from the server's folder, and its name.
    Test(&'static str, &'static str),
    /// A row of the table of threats.
    Threat(&'static str),
}

use By::{Test, Threat};

struct Report {
    number: u8,
    /// What is expected.
    expected: &'static str,
    by: &'static [By],
}

macro_rules! reports {
    ($($number:literal $expected:literal [$($by:expr),* $(,)?];)*) => {
        const REPORTS: &[Report] = &[$(Report { number: $number, expected: $expected, by: &[$($by),*] }),*];
    };
}

const CASES: &str = "engine/tests/git/reports/cases.rs";
const CHECKOUT: &str = "engine/tests/git/checkout.rs";
const NEOVIM: &str = "../tests/tests/e2e/neovim.rs";
const EDITORS: &str = "../tests/tests/e2e/editors.rs";
const FAULTS: &str = "engine/src/apply/tests/faults.rs";
const FORMATS: &str = "engine/tests/git/formats.rs";
const HOSTILE: &str = "engine/tests/git/hostile.rs";
const HOSTS: &str = "../tests/tests/e2e/hosts.rs";
const INCLUDES: &str = "engine/tests/git/environment/includes.rs";
const LFS: &str = "engine/tests/git/environment/lfs.rs";
const ORDINARY: &str = "engine/tests/git/ordinary.rs";
const OUTSIDE: &str = "engine/tests/git/outside.rs";
const PARTS: &str = "engine/tests/git/parts.rs";
const REFUSALS: &str = "engine/tests/git/refusals.rs";
const REMOVAL: &str = "engine/tests/git/removal.rs";
const ROOM: &str = "engine/tests/git/room.rs";
const SETUP: &str = "../tests/tests/e2e/setup.rs";
const SHAPES: &str = "engine/tests/git/shapes.rs";
const SNAPSHOT: &str = "engine/tests/git/snapshot.rs";
const SUBMODULES: &str = "engine/tests/git/environment/submodules.rs";

reports! {
    1 "a filter that is missing never makes a job run in the checkout" [
        Test(HOSTILE, "a_filter_that_is_required_and_missing_fails_nothing_and_is_announced"),
        Test(REFUSALS, "a_tree_that_cannot_be_made_leaves_nothing_behind"),
    ];
    2 "without git-lfs on PATH a tree holds pointers, and says so" [
        Test(LFS, "odd_pointers_and_contents_that_are_missing_damaged_or_links_stay_pointers"),
        Test(HOSTILE, "a_filter_that_is_required_and_missing_fails_nothing_and_is_announced"),
    ];
    3 "contents of LFS can stay away, and no pointer replaces one" [
        Test(LFS, "a_pointer_never_replaces_a_content"),
        Test(LFS, "a_checkout_of_pointers_stays_one_and_an_edited_content_is_a_conflict"),
    ];
    4 "submodules are filled from local objects, without a network" [
        Test(SUBMODULES, "submodules_are_filled_at_every_depth_without_their_origin"),
        Test(SUBMODULES, "what_cannot_be_filled_is_named_with_the_reason_and_hides_nothing"),
    ];
    6 "a project that is a submodule has its trees where all others have them" [
        Test(FORMATS, "a_submodule_is_a_repository_like_any_other"),
        Threat("T-09"),
    ];
    8 "a sparse checkout stays sparse" [
        Test(FORMATS, "a_sparse_checkout_stays_sparse_and_absent_files_are_not_deleted"),
        Test(SHAPES, "the_cone_is_that_of_the_worktree_which_is_open"),
    ];
    11 "without a first commit nothing starts, and the reason is named" [
        Test(REFUSALS, "folders_without_a_usable_repository_are_refused_with_the_reason"),
        Test(HOSTS, "a_job_is_refused_inside_a_job_and_without_a_repository"),
    ];
    13 "a hook that fails keeps no job from starting" [Test(CASES, "a_checkout_hook_that_fails_stops_nothing"), Threat("T-04")];
    14 "a setup command of the person's own runs on every way" [
        Test(SETUP, "a_configured_command_runs_for_every_new_tree_and_no_resume_in_a_clean_environment"),
        Test(SETUP, "a_repository_s_own_command_runs_only_once_its_exact_text_is_approved"),
    ];
    15 "a hooks path that a job sets changes nothing for the person, or is told" [
        Threat("T-06"),
        Test(OUTSIDE, "configuration_and_hooks_that_run_programs_are_named_first_and_removed"),
    ];
    16 "ignored files come along where the person names them, and come out nowhere" [
        Test(INCLUDES, "named_ignored_files_are_copied_with_their_modes_and_come_out_nowhere"),
        Test(INCLUDES, "tracked_files_links_and_special_files_are_never_copied"),
    ];
    17 "nothing of the person's is linked into a tree" [
        Test(INCLUDES, "tracked_files_links_and_special_files_are_never_copied"),
        Threat("T-01"),
    ];
    18 "a link in place of an ignored directory is not taken along unseen" [
        Test(CASES, "a_link_named_like_an_ignored_directory_is_opted_into"),
    ];
    19 "a partial clone works without its remote, and nothing is fetched" [
        Test(FORMATS, "a_partial_clone_works_without_its_remote"),
        Test(FORMATS, "missing_objects_are_named_and_never_fetched"),
    ];
    21 "a repository of somebody else is refused in git's own words" [
        Test(REFUSALS, "a_repository_of_another_user_is_refused_in_git_s_own_words"),
    ];
    24 "no job inside a job" [
        Test(REFUSALS, "a_job_s_tree_is_no_place_to_start_a_job"),
        Test(HOSTS, "a_job_is_refused_inside_a_job_and_without_a_repository"),
    ];
    25 "a tree without its .git file is nobody else's checkout" [Threat("T-08")];
    27 "uncommitted work is told of, and never moved" [
        Test(ORDINARY, "changes_that_are_not_committed_are_told_of_and_left_alone"),
        Test(HOSTILE, "nothing_of_the_person_s_is_touched"),
    ];
    28 "whether uncommitted work is part of a job is the person's choice" [
        Test(SNAPSHOT, "the_job_begins_with_what_the_person_sees"),
        Test("../tests/tests/e2e/bases.rs", "a_job_works_on_what_the_person_sees_and_its_result_goes_onto_that"),
    ];
    30 "a tree holds no branch" [
        Test(CASES, "the_branch_of_a_job_s_base_stays_free"),
        Test(ROOM, "a_persons_worktree_prune_leaves_a_job_alone_or_is_survived"),
    ];
    31 "the index is never locked for a look" [
        Test(HOSTILE, "looking_for_uncommitted_changes_runs_nothing_and_locks_nothing"),
        Test(CASES, "a_locked_index_stands_in_nobody_s_way"),
    ];
    32 "telling about jobs starts no git" [Test(CASES, "telling_about_jobs_starts_no_git")];
    33 "variables that redirect git mean nothing" [Threat("T-05")];
    35 "core.bare set by a job harms nothing of ours, and is told" [
        Threat("T-10"),
        Test(OUTSIDE, "a_repository_that_was_made_bare_works_again"),
    ];
    36 "the person's stash is the person's" [
        Test(CASES, "a_job_that_stashes_does_not_touch_the_person_s_stash"),
        Test(OUTSIDE, "the_person_s_stash_comes_back"),
    ];
    39 "a snapshot costs what changed, in a linked worktree, too" [
        Test(SNAPSHOT, "a_file_that_was_only_touched_is_no_change"),
        Test(FORMATS, "a_shallow_clone_and_a_worktree_of_a_worktree_work"),
    ];
    41 "any name comes through" [Test("engine/tests/git/contents.rs", "any_name_that_a_file_can_have_comes_through")];
    43 "one changed line of a checkout with CRLF is one line" [
        Test(CHECKOUT, "a_one_line_edit_is_one_line_and_leaves_the_other_bytes_alone"),
    ];
    44 "every kind of change is told apart" [Test(ORDINARY, "every_kind_of_change_is_found_and_nothing_else")];
    46 "committed or not, all of a job's work is seen" [Threat("T-13")];
    47 "a huge file costs no memory" [
        Test("engine/tests/git/contents.rs", "hard_links_and_large_files_are_noted_and_cost_no_memory"),
        Threat("T-22"),
    ];
    49 "the number of processes does not grow with the files" [
        Test(CHECKOUT, "what_is_not_converted_costs_the_same_however_many_files_there_are"),
        Test(ORDINARY, "looking_at_a_repository_takes_three_calls_whatever_its_size"),
    ];
    51 "a file that both edited is a conflict, and nothing is written" [
        Test(CHECKOUT, "a_file_that_the_person_edited_is_a_conflict_and_an_untouched_one_is_not"),
    ];
    52 "unrelated changes block nothing, and survive" [
        Test("engine/src/apply/tests/ordinary.rs", "unrelated_dirt_is_preserved"),
        Test(CASES, "what_is_staged_stays_staged_to_the_byte"),
    ];
    54 "looking applies nothing" [Test(CASES, "looking_writes_nothing"), Threat("T-21")];
    55 "the index is the same to the byte" [Test(CASES, "what_is_staged_stays_staged_to_the_byte")];
    57 "all or nothing across a kill" [
        Test(FAULTS, "a_kill_at_any_call_ends_in_all_or_nothing"),
        Test(FAULTS, "a_repair_that_is_killed_itself_is_finished_by_the_next_one"),
    ];
    58 "what is untracked or ignored is never written over" [
        Test(CASES, "untracked_and_ignored_files_are_in_the_way_unless_they_are_the_same"),
        Test("engine/src/apply/tests/refusals.rs", "directories_and_files_in_each_others_place_are_in_the_way"),
    ];
    59 "staged, binary, renamed, deleted, sparse: each against the person's own edit" [
        Test(CASES, "every_kind_of_edit_against_the_person_s_own"),
        Test(FORMATS, "a_sparse_checkout_stays_sparse_and_absent_files_are_not_deleted"),
    ];
    60 "parts of a file are taken one by one" [
        Test(PARTS, "groups_are_taken_one_by_one_and_the_rest_at_once"),
    ];
    62 "unsaved text stops an apply" [Test(EDITORS, "unsaved_text_stops_an_apply_until_it_is_saved")];
    63 "a preview cannot be written, and writing accepts nothing" [
        Test(NEOVIM, "a_job_is_delegated_previewed_applied_and_cancelled"),
    ];
    64 "buffers are read anew after an apply" [Test(NEOVIM, "a_job_is_delegated_previewed_applied_and_cancelled")];
    66 "names that fold to one are refused" [
        Test("engine/src/apply/tests/refusals.rs", "names_that_fold_to_one_are_refused_but_may_go_on_living_side_by_side"),
        Threat("T-17"),
    ];
    67 "no work goes that was not taken" [
        Test(ROOM, "an_unapplied_result_loses_its_tree_only_when_named_and_never_its_content"),
    ];
    68 "links and untracked files keep no tree from going" [
        Test(REMOVAL, "links_are_removed_and_not_followed"),
        Test(REMOVAL, "directories_without_permissions_go"),
    ];
    69 "a tree that became a link costs nobody a file" [Threat("T-01"), Threat("M7")];
    70 "links in a tree are not followed when it goes" [Test(REMOVAL, "links_are_removed_and_not_followed"), Threat("T-01")];
    72 "who works in a tree is named before it goes" [
        Test(ROOM, "a_tree_that_somebody_works_in_is_not_removed_and_he_is_named"),
    ];
}

/// Every report is there, and whatever shows that it does not happen here is a test that exists.
#[test]
fn every_report_is_covered_by_tests_that_there_are() {
    let expected = [
        1, 2, 3, 4, 6, 8, 11, 13, 14, 15, 16, 17, 18, 19, 21, 24, 25, 27, 28, 30, 31, 32, 33, 35, 36, 39, 41, 43, 44,
        46, 47, 49, 51, 52, 54, 55, 57, 58, 59, 60, 62, 63, 64, 66, 67, 68, 69, 70, 72,
    ];
    assert_eq!(REPORTS.iter().map(|report| report.number).collect::<Vec<_>>(), expected);
    for Report { number, expected, by } in REPORTS {
        assert!(!by.is_empty(), "{number}: {expected}");
        for by in *by {
            match by {
                Test(path, test) => covered(path, test),
                Threat(id) => assert!(threats::is_row(id), "{number}: {id} is no row"),
            }
        }
    }
    println!("{} reports, each with a test", REPORTS.len());
}
