// What jobs changed, as far as this window looked at it: the paths, their parts, what is chosen of them, and what the
// person has seen.

import * as vscode from "vscode";
import type { Jobs } from "./jobs";
import type { FileChange, HunkView, JobSummary, PathName, Preview, Selected } from "./protocol";
import type { Server } from "./server";
import { key, MODE, name } from "./words";

/** The most that the server tells of at once. */
const PAGE = 5000;
/** So many marks are kept; a mark is of one result, so old ones mean nothing any more. */
const MOST_MARKS = 5000;
const MARKS = "pactify.reviewed";
const NO_LINES = { oldStart: 0, oldLines: [], newStart: 0, newLines: [] };

/** A part of a file that can be taken by itself. */
export type Part = HunkView & { id: string };

/** What is chosen, as an apply names it, and the paths that it touches. */
export type Selection = { select: Selected[]; files: FileChange[] };

interface Known {
  /** What it was asked of: a job that moved on has something else to show. */
  readonly of: string;
  readonly preview: Promise<Preview>;
  readonly parts: Map<string, Promise<Part[]>>;
  /** By path: all of it, or the names of its parts. */
  readonly chosen: Map<string, { file: FileChange; parts: "all" | Set<string> }>;
}

export class Results {
  private readonly known = new Map<string, Known>();
  private readonly changes = new vscode.EventEmitter<string>();
  /** Fires with the id of a job whose parts, choice or marks changed. */
  readonly onDidChange = this.changes.event;

  constructor(private readonly server: Server, private readonly context: vscode.ExtensionContext, jobs: Jobs) {
    const moved = () => [...this.known].filter(([jobId, { of }]) => moment(jobs.seen(jobId)) !== of);
    context.subscriptions.push(jobs.onDidChange(() => moved().forEach(([jobId]) => this.forget(jobId))));
  }

  /** All pages of what the job changed. */
  readonly preview = (job: JobSummary): Promise<Preview> => this.of(job).preview;

  /** The parts of one path that can be taken by themselves; none if there is only the whole. */
  parts(job: JobSummary, path: PathName): Promise<Part[]> {
    const { parts } = this.of(job);
    const asked = parts.get(key(path)) ?? this.askParts(job, path);
    parts.set(key(path), asked);
    asked.catch(() => parts.delete(key(path)));
    return asked;
  }

  forget(jobId: string): void {
    this.known.delete(jobId);
    this.changes.fire(jobId);
  }

  /** Chooses a path, or one of its parts, or takes that back. */
  choose(job: JobSummary, file: FileChange, part: Part | undefined, siblings: Part[], isChosen: boolean): void {
    const { chosen } = this.of(job);
    const before = chosen.get(key(file))?.parts;
    const open = siblings.filter(({ accepted }) => accepted !== true).map(({ id }) => id);
    const parts = new Set(before === "all" ? open : before);
    if (part !== undefined) parts[isChosen ? "add" : "delete"](part.id);
    // All parts that are shown are still not all of the path: only its own box says that.
    if (part === undefined ? !isChosen : parts.size === 0) chosen.delete(key(file));
    else chosen.set(key(file), { file, parts: part === undefined ? "all" : parts });
    this.changes.fire(job.id);
  }

  chosen(job: JobSummary, path: PathName): "all" | ReadonlySet<string> {
    return this.known.get(job.id)?.chosen.get(key(path))?.parts ?? new Set();
  }

  selection(job: JobSummary): Selection {
    const all = [...(this.known.get(job.id)?.chosen.values() ?? [])];
    const select = all.map(({ file, parts }) => (parts === "all" ? name(file) : { ...name(file), groups: [...parts] }));
    return { select, files: all.map(({ file }) => file) };
  }

  readonly isReviewed = (of: string, path: PathName): boolean => this.marks().includes(`${of} ${key(path)}`);

  async toggleReviewed(job: JobSummary, path: PathName): Promise<void> {
    const mark = `${(await this.preview(job)).changeSet} ${key(path)}`;
    const marks = new Set(this.marks());
    if (!marks.delete(mark)) marks.add(mark);
    await this.context.workspaceState.update(MARKS, [...marks].slice(-MOST_MARKS));
    this.changes.fire(job.id);
  }

  private of(job: JobSummary): Known {
    const known = this.known.get(job.id);
    if (known !== undefined) return known;
    const made = { of: moment(job), preview: this.askPreview(job), parts: new Map(), chosen: new Map() };
    this.known.set(job.id, made);
    // An answer that never came is no answer: the next one asks again.
    made.preview.catch(() => this.known.delete(job.id));
    return made;
  }

  private async askPreview(job: JobSummary): Promise<Preview> {
    const first = { jobId: job.id, format: "summary" as const, limit: PAGE };
    const whole = await this.server.request("pactify/job/diffPreview", first);
    for (let cursor = whole.next; cursor !== undefined; ) {
      const page = await this.server.request("pactify/job/diffPreview", { ...first, cursor });
      if (page.changeSet !== whole.changeSet) return this.askPreview(job);
      whole.files.push(...page.files);
      cursor = page.next;
    }
    return whole;
  }

  private async askParts(job: JobSummary, path: PathName): Promise<Part[]> {
    const params = { jobId: job.id, format: "hunks" as const, ...name(path) };
    const { files } = await this.server.request("pactify/job/diffPreview", params);
    const { groups = [], hunks = [] } = files[0] ?? {};
    const mode = groups.filter(({ id }) => id === MODE).map((group) => ({ ...group, ...NO_LINES }));
    return [...mode, ...hunks.filter((hunk): hunk is Part => hunk.id !== undefined)];
  }

  private readonly marks = (): string[] => this.context.workspaceState.get<string[]>(MARKS, []);
}

/** What a job's result depends on. */
const moment = (job?: JobSummary): string => JSON.stringify([job?.endedAt, job?.decidedAt, job?.changes]);
