// Jobs and numbers in words: the same wherever a person reads them.
import type { FileChange, HunkView, JobSummary, PathName, Totals } from "./protocol";

export const MINUTE = 60_000;
/** The part of a change that is not lines. */
export const MODE = "mode";

/** `no changes`, of `noChanges`. */
export const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** A text in which VS Code finds no link: what one would be called and where it leads are kept apart, invisibly. */
export const plain = (text: string, most = 1000): string =>
  (text.length > most ? `${text.slice(0, most)}…` : text).replaceAll("](", "]\u2060(");

export const files = (count: number): string => (count === 1 ? "1 file" : `${count} files`);

/** `3 files, +10 −2`. */
export const counts = (all: Totals): string => `${files(all.files)}, +${all.added} −${all.deleted}`;

export const titled = (job: Pick<JobSummary, "harness" | "title">): string => `${job.harness}: ${job.title}`;

export const standing = ({ disposition, outcome, state }: JobSummary): string =>
  [outcome ?? state, ...(disposition === "pending" ? [] : [disposition])].map(words).join(", ");

export function doing({ activity, changes, outcome, state, waiting }: JobSummary): string {
  if (waiting !== undefined) return `waits for you (${ago(waiting.since)}): ${waiting.title}`;
  if (outcome === undefined) return activity ?? words(state);
  return changes !== undefined && changes.files > 0 ? counts(changes) : words(outcome);
}

export const age = ({ endedAt, createdAt }: JobSummary): string => ago(endedAt ?? createdAt);
export const summary = (job: JobSummary): string => `${job.harness} · ${doing(job)} · ${age(job)}`;

/** `5 min ago`, and nothing more exact than a person would say. */
export function ago(at: string): string {
  const minutes = Math.floor((Date.now() - Date.parse(at)) / MINUTE);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 60 / 24)} days ago`;
}

/** `lines 3–5, +3 −1`, as the result counts lines. */
export function extent({ id, newStart, newLines, oldLines }: HunkView): string {
  if (id === MODE) return "the executable bit";
  const last = newStart + Math.max(newLines.length, 1) - 1;
  const lines = last > newStart ? `lines ${newStart}–${last}` : `line ${newStart}`;
  return `${lines}, +${newLines.length} −${oldLines.length}`;
}

/** What was and what is, as a diff has it. */
export const sides = ({ oldLines, newLines }: HunkView): string[] =>
  [...oldLines.map((line) => `-${line}`), ...newLines.map((line) => `+${line}`)];

/** Whether the server wants to hear that the person means this path. */
export const isSpecial = (file: FileChange): boolean => file.tier === "sensitive" || file.new?.mode === "symlink";

/** A path's name alone, without what else is known of it. */
export const name = ({ path, pathBytes: bytes }: PathName): PathName => ({ path, ...(bytes && { pathBytes: bytes }) });

/** Tells paths apart; one that is shown like another's bytes is not that. */
export const key = ({ path, pathBytes }: PathName): string => (pathBytes === undefined ? `p:${path}` : `b:${pathBytes}`);

/** A fragment of the server's as a sentence. */
export const sentence = (fragment: string): string =>
  `${fragment.charAt(0).toUpperCase()}${fragment.slice(1)}${/[.!?]$/.test(fragment) ? "" : "."}`;
