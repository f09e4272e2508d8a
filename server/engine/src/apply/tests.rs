//! Applies to real directories: what is written, what is refused, and that a refusal changes nothing.

mod fixture;
mod ordinary;
mod races;
mod refusals;
