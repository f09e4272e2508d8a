//! What a harness reads on its standard input.
//!
//! A driver's lines wait here until the program takes them. A program that asks and never reads would have us hold its
//! answers without end, so what waits is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pactify_core::harness::Stdin;
use pactify_core::{Failure, FailureCode};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// How much may wait for a program that does not read, in bytes: more than the longest single answer.
const MAX_WAITING: usize = 96 << 20;

/// Where a driver's lines go.
pub(super) struct Input {
    lines: mpsc::UnboundedSender<String>,
    waiting: Arc<AtomicUsize>,
}

impl Input {
    /// Hands a line over; `false` when too much waits already. That the program closed its input is no error here: its
    /// exit will say why.
    pub(super) fn send(&self, line: String) -> bool {
        if self.waiting.fetch_add(line.len(), Ordering::Relaxed).saturating_add(line.len()) > MAX_WAITING {
            return false;
        }
        let _ = self.lines.send(line);
        true
    }
}

/// Writes what the harness is to read. Returns where a driver's lines go, if it sends any.
pub(super) fn feed(mut pipe: impl AsyncWrite + Unpin + Send + 'static, stdin: Stdin) -> Option<Input> {
    match stdin {
        Stdin::Null => None,
        Stdin::Text(text) => {
            // A program that doesn't read all of it closes the pipe; that is its affair.
            tokio::spawn(async move {
                let _ = pipe.write_all(text.as_bytes()).await;
            });
            None
        }
        Stdin::Driver => {
            let (lines, mut sent) = mpsc::unbounded_channel::<String>();
            let waiting = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&waiting);
            tokio::spawn(async move {
                while let Some(mut line) = sent.recv().await {
                    let length = line.len();
                    line.push('\n');
                    if pipe.write_all(line.as_bytes()).await.is_err() {
                        return;
                    }
                    counter.fetch_sub(length, Ordering::Relaxed);
                }
            });
            Some(Input { lines, waiting })
        }
    }
}

/// The failure of a harness that does not read what it asked for.
pub(super) fn not_read() -> Failure {
    Failure::new(
        FailureCode::HarnessFailed,
        format!("the harness asks and does not read the answers: {} MiB of them wait", MAX_WAITING >> 20),
        "look at its version and its settings, then retry the job",
    )
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_program_that_does_not_read_is_found_out_and_one_that_does_is_not() {
        let line = || "x".repeat(MAX_WAITING / 4);
        let (_unread, pipe) = tokio::io::duplex(64);
        let input = feed(pipe, Stdin::Driver).unwrap();
        let taken = (0..6).take_while(|_| input.send(line())).count();
        assert_eq!(taken, 4, "what fits is kept for it");

        let (mut program, pipe) = tokio::io::duplex(1 << 20);
        let input = feed(pipe, Stdin::Driver).unwrap();
        let mut heard = vec![0; line().len() + 1];
        for _ in 0..6 {
            assert!(input.send(line()));
            program.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard.last(), Some(&b'\n'));
        }
    }
}
