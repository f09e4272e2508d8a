//! `pactify-lsp`.
fn main() {}
