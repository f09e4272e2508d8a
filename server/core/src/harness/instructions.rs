//! What of a repository tells an agent what to do: a job names it where the agent cannot be kept from it.

/// Files and directories of a repository, by paths, that tell an agent what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// The program is known to read these.
    Read(&'static [&'static str]),
    /// What it reads nobody knows: it may be these.
    MayRead(&'static [&'static str]),
}

impl Instructions {
    /// What agents of all kinds are known to read: of a program that only its owner knows.
    pub const COMMON: Self = Self::MayRead(&[
        "AGENTS.md",
        "AGENT.md",
        "CLAUDE.md",
        "GEMINI.md",
        "QWEN.md",
        ".mcp.json",
        ".agents",
        ".claude",
        ".codex",
        ".cursor",
        ".cursorrules",
        ".gemini",
        ".github/copilot-instructions.md",
        ".kimi-code",
        ".opencode",
        "opencode.json",
    ]);
}
