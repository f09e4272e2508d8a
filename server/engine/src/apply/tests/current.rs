//! Looking at what the checkout holds: bytes as they are, nothing followed, nothing waited for.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::{Current, current};
use super::fixture::*;

#[test]
fn what_is_there_is_told_and_links_are_not_followed() {
    let base =
        files([("file", file("text\r\n")), ("dir/inside", file("x")), ("link", link("file")), ("big", file("12345"))]);
    let sandbox = Sandbox::new(&base);
    sandbox.put("elsewhere", &link("dir"));
    mknodat(CWD, sandbox.at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(std::fs::read(sandbox.at("elsewhere/inside")).unwrap(), b"x", "a plain read follows");

    for (name, expected) in [
        ("file", Current::Bytes("text\r\n".into())),
        ("link", Current::Bytes("file".into())),
        ("dir/inside", Current::Bytes("x".into())),
        ("dir", Current::Absent),
        ("nowhere", Current::Absent),
        ("nowhere/below", Current::Absent),
        ("elsewhere/inside", Current::Absent),
        ("pipe", Current::Absent),
    ] {
        assert_eq!(current(&sandbox.repository, &path(name), 100).unwrap(), expected, "{name}");
    }
    assert_eq!(current(&sandbox.repository, &path("big"), 4).unwrap(), Current::TooLarge(5));
}
