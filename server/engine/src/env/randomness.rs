//! Bytes nobody can guess, for ids and names; or bytes everybody can, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};

use super::EnvError;

/// Where random bytes come from.
#[derive(Debug, Clone)]
pub enum Randomness {
    /// `getrandom(2)`.
    Kernel,
    /// A reproducible sequence.
    Sequence(Sequence),
}

/// A reproducible sequence: SHA-256 of a seed and a counter. Clones go on where the others are.
#[derive(Debug, Clone)]
pub struct Sequence {
    seed: u64,
    next: Arc<AtomicU64>,
}

impl Randomness {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::Sequence(Sequence { seed, next: Arc::default() })
    }

    pub(super) fn bytes<const N: usize>(&self) -> Result<[u8; N], EnvError> {
        let mut bytes = [0; N];
        match self {
            Self::Kernel => fill_from_kernel(&mut bytes)?,
            Self::Sequence(sequence) => bytes.chunks_mut(32).for_each(|chunk| sequence.fill(chunk)),
        }
        Ok(bytes)
    }
}

impl Sequence {
    fn fill(&self, chunk: &mut [u8]) {
        let counter = self.next.fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(self.seed.to_le_bytes());
        hash.update(counter.to_le_bytes());
        chunk.copy_from_slice(&hash.finalize()[..chunk.len()]);
    }
}

/// `getrandom` may stop early for requests above 256 bytes.
fn fill_from_kernel(mut rest: &mut [u8]) -> Result<(), EnvError> {
    while !rest.is_empty() {
        match rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => rest = &mut rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(EnvError::Randomness(error.into())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_sequence_and_never_repeats_itself() {
        let (a, b) = (Randomness::seeded(7), Randomness::seeded(7));
        let first: [u8; 40] = a.bytes().unwrap();
        assert_eq!(first, b.bytes::<40>().unwrap());
        assert_ne!(first, a.clone().bytes::<40>().unwrap());
        assert_ne!(first, Randomness::seeded(8).bytes::<40>().unwrap());
    }

    #[test]
    fn the_kernel_fills_the_whole_request() {
        let bytes: [u8; 1024] = Randomness::Kernel.bytes().unwrap();
        assert!(bytes[512..].iter().any(|&byte| byte != 0));
    }
}
