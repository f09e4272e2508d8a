//! The front ends of pactify: a language server for editors and a program for terminals.
//!
//! They translate, and decide nothing: every verb is executed by [`pactify_engine::jobs::Jobs`] and worded by
//! [`pactify_core::protocol`]. Start reading at [`lsp`] or [`cli`]; [`transport`] carries the language server's
//! messages.

#[cfg(windows)]
compile_error!("pactify does not run on Windows itself: build and use it inside WSL");

pub mod cli;
pub mod entry;
mod look;
pub mod lsp;
pub mod transport;
