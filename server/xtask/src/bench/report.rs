//! The figures as a line for the terminal, and as a document.

use std::fmt::Write;

use super::Figure;

impl Figure {
    fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }

    fn verdict(&self) -> &'static str {
        match self.bar {
            Some(bar) if self.ratio() <= bar => "kept",
            Some(_) => "missed",
            None => "",
        }
    }

    /// What is promised, in the words of the terminal or of the document.
    fn promise(&self, sign: &str, nothing: &str) -> String {
        self.bar.map_or_else(|| nothing.to_owned(), |bar| format!("{sign} {bar:.1} ×"))
    }
}

pub(super) fn line(figure: &Figure) -> String {
    let Figure { what, reference, unit, ours, theirs, .. } = figure;
    let (ratio, verdict, promise) = (figure.ratio(), figure.verdict(), figure.promise("at most", "no promise"));
    format!("{verdict:7} {ratio:.2} × ({promise})  {what}: {ours:.2} {unit}; {reference}: {theirs:.2} {unit}")
}

pub(super) fn document(figures: &[Figure]) -> String {
    let mut text = String::from(
        "# Performance\n\n\
         What is promised, as ratios against a reference that is measured in the same run. The two take turns, medians are\n\
         compared, and all files are in memory, so that a ratio means the same on any machine. Absolute times don't.\n\n\
         | measured | pactify | reference | | ratio | promised | |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for figure in figures {
        let Figure { what, reference, unit, ours, theirs, .. } = figure;
        let (ratio, verdict, promise) = (figure.ratio(), figure.verdict(), figure.promise("≤", ""));
        let _ = writeln!(
            text,
            "| {what} | {ours:.2} {unit} | {theirs:.2} {unit} | {reference} | {ratio:.2} × | {promise} | {verdict} |"
        );
    }
    let _ = write!(
        text,
        "\nMeasured by `cargo xtask bench` of the programs that `cargo xtask install` installs, on {}.\n",
        machine()
    );
    text
}

/// What a machine like this one is.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo").split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let load = read("/proc/loadavg").split_whitespace().nth(1).unwrap_or_default().to_owned();
    format!("{cores} cores, {} GiB, Linux {kernel}, {}, load {load}", memory >> 20, std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_told_with_its_verdict() {
        let figure = |ours, bar| Figure {
            what: "start".to_owned(),
            reference: "ruff".to_owned(),
            unit: "ms".to_owned(),
            ours,
            theirs: 20.0,
            bar,
        };
        assert_eq!(line(&figure(10.0, Some(0.5))), "kept    0.50 × (at most 0.5 ×)  start: 10.00 ms; ruff: 20.00 ms");
        let text = document(&[figure(11.0, Some(0.5)), figure(10.0, None)]);
        assert!(text.contains("| start | 11.00 ms | 20.00 ms | ruff | 0.55 × | ≤ 0.5 × | missed |\n"), "{text}");
        assert!(text.contains("| start | 10.00 ms | 20.00 ms | ruff | 0.50 × |  |  |\n"), "{text}");
    }
}
