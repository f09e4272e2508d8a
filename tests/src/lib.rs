//! The test kit: what the end-to-end tests need besides pactify itself.
//!
//! A test makes a [`sandbox::Sandbox`], starts programs in it as [`running::Running`], and waits for what they do with
//! a deadline ([`rendezvous`]), never by sleeping. Doubles here are separate processes or values, never code inside
//! what is tested: a scripted model [`provider`] for the real harness, and a scripted [`agent`] for what the real
//! harness can't be made to do. [`lsp`] is an editor. Nothing here knows pactify's crates (the transport's probe, a
//! program, does). The tests are in `tests/e2e/`.

pub mod agent;
pub mod agy;
pub mod clients;
pub mod editor;
pub mod lsp;
pub mod opencode;
pub mod outside;
pub mod provider;
pub mod rendezvous;
pub mod running;
pub mod sandbox;
pub mod terminal;
pub mod tools;
pub mod vsix;
