//! `pactify`.
fn main() {}
