//! What a watched job asks for, asked on the terminal: one question at a time, the oldest first.
//!
//! Every answer names its question: `2a` is the first answer to the second question. So a line that was typed for a
//! request which somebody else answered meanwhile never answers another one.

use std::collections::HashSet;

use pactify_core::protocol::{AnswerParams, WaitingView, words};
use pactify_core::{Failure, FailureCode, JobId};
use tokio::sync::mpsc;

use super::Terminal;
use super::answer::detail;
use super::output::{FAINT, PLAIN, STRONG};

/// The questions of one job.
#[derive(Default)]
pub(super) struct Questions {
    /// What the person types, once they were asked something.
    lines: Option<mpsc::UnboundedReceiver<String>>,
    number: u32,
    asked: HashSet<String>,
    current: Option<WaitingView>,
}

impl Questions {
    /// Whether a question is in front of the person.
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// The next line that the person types; never one before the first question. Cancel-safe.
    pub(super) async fn line(&mut self) -> String {
        match &mut self.lines {
            Some(lines) => match lines.recv().await {
                Some(line) => line,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// These requests are open now.
    pub(super) fn see(&mut self, terminal: &Terminal, open: &[WaitingView]) {
        let is_open = |id: &str| open.iter().any(|waiting| waiting.request_id == id);
        self.asked.retain(|id| is_open(id));
        if self.current.as_ref().is_some_and(|current| !is_open(&current.request_id)) {
            terminal.output.note(&format!("question {} is answered, or has expired", self.number));
            self.current = None;
        }
        if self.current.is_some() || !terminal.output.can_ask() {
            return;
        }
        let Some(waiting) = open.iter().find(|waiting| !self.asked.contains(&waiting.request_id)) else { return };
        self.asked.insert(waiting.request_id.clone());
        self.number += 1;
        let title = format!("{}. {}", self.number, waiting.title);
        let since = format!(" ({})", words::age(terminal.env().now(), waiting.since));
        terminal.output.note_styled(&[(&title, STRONG), (&since, FAINT)]);
        detail(waiting, |line| terminal.output.note(line));
        for (choice, (name, _)) in choices(self.number, waiting) {
            terminal.output.note_styled(&[("  ", PLAIN), (&choice, FAINT), ("  ", PLAIN), (&name, PLAIN)]);
        }
        self.current = Some(waiting.clone());
        self.lines.get_or_insert_with(read_lines);
    }

    /// The person typed a line: an answer, if it is one.
    pub(super) fn take(&mut self, terminal: &Terminal, job: &JobId, line: &str) {
        let Some(waiting) = &self.current else { return };
        let all = choices(self.number, waiting);
        let Some((_, (_, option_id))) = all.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(line.trim())) else {
            let known: Vec<&str> = all.iter().map(|(choice, _)| choice.as_str()).collect();
            terminal.output.note(&format!("answer with one of {}", known.join(", ")));
            return;
        };
        let (request_id, option_id) = (waiting.request_id.clone(), option_id.clone());
        let params = AnswerParams { job_id: job.to_string(), request_id, option_id };
        self.current = None;
        let (jobs, output) = (terminal.jobs.clone(), terminal.output.clone());
        tokio::task::spawn_blocking(move || match jobs.answer(&params) {
            Err(Failure { code: FailureCode::RequestNotOpen, message, .. }) => output.note(&message),
            Err(failure) => output.note(&format!("the answer was not taken: {failure}: {}", failure.next)),
            Ok(_) => {}
        });
    }
}

/// What the person can type, with its words and the option that it means.
fn choices(number: u32, waiting: &WaitingView) -> Vec<(String, (String, String))> {
    let letters = 'a'..='z';
    let each = letters.zip(words::choices(waiting));
    each.map(|(letter, (name, option))| (format!("{number}{letter}"), (name, option.id.clone()))).collect()
}

/// Reads standard input on a thread of its own, which ends with the process: nothing else wants a line of it.
fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_question() {
        let waiting: WaitingView = serde_json::from_value(serde_json::json!({
            "requestId": "7", "title": "rm x?", "since": "2026-11-29T15:45:12Z",
            "options": [
                {"id": "no", "name": "No", "kind": "reject_once"}, {"id": "yes", "name": "Yes", "kind": "allow_once"},
            ],
        }))
        .unwrap();
        let typed: Vec<String> =
            choices(3, &waiting).into_iter().map(|(choice, (name, id))| format!("{choice} {name} {id}")).collect();
        assert_eq!(typed, ["3a Deny: No no", "3b Allow: Yes yes"]);
    }
}
