//! The test kit tested by itself: what the other tests stand on.

mod agent;
mod codex;
mod provider;
mod sandbox;
