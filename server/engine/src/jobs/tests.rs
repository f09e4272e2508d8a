//! Parts of results in checkouts that go their own way: random ones against a model, generated ones against git.

mod model;
mod oracles;
mod property;
mod world;
