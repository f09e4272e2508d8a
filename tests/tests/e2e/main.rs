//! The end-to-end tests: real processes, real sockets, real harnesses. One binary, one module per subject.

mod agents;
mod agy;
mod bases;
mod cli;
mod clients;
mod codex;
mod conformance;
mod doctor;
mod editors;
mod elsewhere;
mod hostile;
mod hosts;
mod in_place;
mod instructions;
mod kit;
mod limits;
mod logins;
mod neovim;
mod outside;
mod own;
mod permissions;
mod secrets;
mod setup;
mod skew;
mod transport;
mod verify;
