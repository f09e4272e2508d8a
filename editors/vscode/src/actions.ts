// What a person does with a job: with that of a view's menu, or with one that is chosen. Every question names it.

import * as vscode from "vscode";
import { apply, applySelected, remarks, write } from "./apply";
import { type Delegation, fenced } from "./delegate";
import { hasChanges, hasResult, isApplied, isOver, isWaiting, type Jobs } from "./jobs";
import type { DiffLenses, Place } from "./lenses";
import { ASK, MOST_AT_ONCE, open, openConflict, openFile } from "./preview";
import { approving, shown } from "./problem";
import type { JobSummary, PathName } from "./protocol";
import type { Results } from "./results";
import * as say from "./say";
import type { Server } from "./server";
import { ago, extent, files, isSpecial, name, sentence, sides, titled } from "./words";

/** A command about one job: its name, the question which one, what to say when none fits, which ones fit, the deed. */
export type Action = readonly [name: string, title: string, none: string, fits: (job: JobSummary) => boolean, run: Run];
type Run = (job: JobSummary, applyId?: number) => Promise<unknown>;

const NO_CHECK = "Nothing is selected: check files or parts below a job in the jobs view first.";

export class Actions {
  /** What this window showed, by job: only that can be applied. */
  private readonly seen = new Map<string, string>();
  /** What the person typed for jobs that were not resumed with it. */
  private readonly unsent = new Map<string, string>();

  constructor(
    private readonly server: Server,
    private readonly jobs: Jobs,
    private readonly results: Results,
    private readonly lenses: DiffLenses,
    private readonly delegation: Delegation,
  ) {}

  private readonly isChecked = (job: JobSummary): boolean => this.results.selection(job).select.length > 0;
  private readonly cancel = (jobId: string): Promise<unknown> => this.server.request("pactify/job/cancel", { jobId });

  readonly all: Action[] = [
    ["preview", "Preview Changes", "No job has changes to look at.", hasChanges, (job) => this.preview(job)],
    ["apply", "Apply", "No job has changes to apply.", hasResult, (job) => this.apply(job)],
    ["applySelected", "Apply Selected", NO_CHECK, (job) => this.isChecked(job), (job) => this.applySelected(job)],
    ["undo", "Undo Apply", "No job's changes are applied.", isApplied, (job, applyId) => this.undo(job, applyId)],
    ["cancel", "Cancel", "No job is running.", (job) => !isOver(job), (job) => this.cancel(job.id)],
    ["answer", "Answer Permission", "No job waits for you.", isWaiting, (job) => this.answer(job)],
    ["resume", "Resume with Message", "No job has ended.", isOver, (job) => this.resume(job)],
    ["retry", "Retry With", "No job has ended.", isOver, (job) => this.delegation.again(job)],
    ["discard", "Discard", "No job has ended.", isOver, (job) => this.discard(job)],
    ["worktree", "Open Worktree", "No job has a tree.", ({ inPlace }) => !inPlace, (job) => this.worktree(job)],
    ["export", "Export", "No job has changes to export.", hasChanges, (job) => this.export(job)],
    ["details", "How It Stands", "There are no jobs.", () => true, (job) => this.details(job)],
  ];

  /** Runs one with the job that it was given, or that the person means. */
  async run([, title, none, fits, run]: Action, given?: { job?: JobSummary; applyId?: number }): Promise<void> {
    const chosen = given?.job ?? (await this.jobs.choose(title, none, fits));
    if (chosen === undefined) return;
    // What the view shows may be a moment old.
    const job = this.jobs.seen(chosen.id) ?? chosen;
    const compare = async (path: PathName): Promise<void> =>
      openConflict(job, (await this.results.preview(job)).changeSet, path);
    await shown(() => run(job, given?.applyId), compare);
  }

  async tell(jobId: string): Promise<void> {
    const job = await this.jobs.get(jobId);
    if (job.ending === undefined) return;
    const { tone, what, next } = job.ending;
    const show = tone === "bad" ? say.error : say.info;
    const answer = await show(`${titled(job)}: ${what}. ${sentence(next)}`, hasChanges(job) ? ["Preview"] : []);
    if (answer !== undefined) await this.preview(job);
  }

  readonly openFile = async ({ job, file, part }: Place): Promise<void> =>
    openFile(job, (await this.results.preview(job)).changeSet, file, part?.newStart);

  /** Takes the part at the cursor, or the one given; or all of its file. */
  async applyHunk(given?: Place, isWhole = false): Promise<void> {
    const { job, file, ...place } = await this.place(given);
    const part = isWhole ? undefined : place.part;
    const what = part === undefined ? file.path : `${extent(part)} of ${file.path}`;
    if (part?.accepted === true) throw new Error(`${what} of “${job.title}” is applied already`);
    const detail = "It acts by itself once it is in your checkout, or is a link.";
    if (isSpecial(file) && !(await say.warn(`Apply ${what} of “${job.title}”?`, ["Apply"], [detail]))) return;
    const select = [{ ...name(file), ...(part && { groups: [part.id] }) }];
    if (await write(this.server, job, await this.results.preview(job), { select })) await this.moved(job);
  }

  async reviewed(given?: Place): Promise<void> {
    const { job, file } = await this.place(given);
    await this.results.toggleReviewed(job, file);
  }

  /** Sends the job on with a remark about a place of its result. */
  async comment(given?: Place): Promise<void> {
    const { job, file, part } = await this.place(given);
    const where = part === undefined ? file.path : `${file.path}, ${extent(part)}`;
    const lines = part === undefined ? [] : sides(part);
    const quote = lines.length === 0 ? "" : `${fenced(lines.join("\n"), "diff")}\n\n`;
    await this.resume(job, `What about ${where}?`, `About ${where} of your result:\n\n${quote}`);
  }

  private async place(given?: Place): Promise<Place> {
    // From an editor's title comes its document instead.
    const place = given !== undefined && "job" in given ? given : await this.lenses.here();
    if (place === undefined) throw new Error("the cursor is not in the diff of a job's current result");
    return place;
  }

  private async preview(job: JobSummary): Promise<void> {
    const changes = await this.results.preview(job);
    await open(job, changes);
    this.seen.set(job.id, changes.changeSet);
    const more = changes.files.length - MOST_AT_ONCE;
    const text = remarks(job, changes) + (more > 0 ? ` ${files(more)} more are in the jobs view.` : "");
    const answer = await say.info(text, hasResult(job) ? ["Apply…"] : []);
    if (answer !== undefined) await this.apply(job);
  }

  private async apply(job: JobSummary): Promise<void> {
    const changes = await this.results.preview(job);
    if (this.seen.get(job.id) !== changes.changeSet) await this.preview(job);
    else if (await apply(this.server, job, changes)) await this.moved(job);
  }

  private async applySelected(job: JobSummary): Promise<void> {
    const selection = this.results.selection(job);
    if (!this.isChecked(job)) throw new Error(`nothing of “${job.title}” is selected`);
    if (await applySelected(this.server, job, await this.results.preview(job), selection)) await this.moved(job);
  }

  private async undo(job: JobSummary, applyId?: number): Promise<void> {
    const params = { jobId: job.id, ...(applyId === undefined ? {} : { applyId }) };
    const { restored } = await this.server.request("pactify/job/undo", params);
    await this.moved(job);
    void say.info(`“${job.title}” was undone: ${files(restored.length)} are as before.`);
  }

  /** Asks what the agent asks, with all of it in sight. What an answer means comes before what the agent calls it. */
  private async answer({ id, title }: JobSummary): Promise<void> {
    for (const { requestId, title: question, since, detail, options } of (await this.jobs.get(id)).requests ?? []) {
      if (detail !== undefined) await vscode.window.showTextDocument(vscode.Uri.from({ ...ASK, query: detail }));
      const items = options.map(({ id, kind, name }) => ({ label: kind.replace("_", " "), description: name, id }));
      const asked = { title: `“${title}” asks (${ago(since)})`, placeHolder: question, ignoreFocusOut: true };
      const choice = await vscode.window.showQuickPick(items, asked);
      if (choice === undefined) return;
      await this.server.request("pactify/job/answer", { jobId: id, requestId, optionId: choice.id });
    }
  }

  private async resume({ id, title, endedAt }: JobSummary, prompt = "What should it do next?", lead = ""): Promise<void> {
    const text = await say.line(`Resume “${title}”`, prompt, { value: this.unsent.get(id) ?? "" });
    if (text === undefined || text.trim() === "") return;
    this.unsent.set(id, text);
    const params = { jobId: id, message: lead + text };
    const moved = await approving(this.server, () => this.server.request("pactify/job/resume", params));
    if (moved === undefined) return;
    this.unsent.delete(id);
    this.delegation.follow(id, endedAt);
  }

  private async discard(job: JobSummary): Promise<void> {
    const lost = ["Its tree and its result go for good.", ...((await this.jobs.get(job.id)).onlyInTree ?? [])];
    if (!(await say.warn(`Discard what “${job.title}” did?`, ["Discard"], lost))) return;
    await this.server.request("pactify/job/discard", { jobId: job.id });
    await this.moved(job);
  }

  private async worktree({ id, title }: JobSummary): Promise<void> {
    const { worktree } = await this.server.request("pactify/job/openWorktree", { jobId: id });
    const detail = "What the agent left there can act by itself (tasks, hooks): trust it only after you looked.";
    if (!(await say.warn(`Open the tree of “${title}” in a new window?`, ["Open"], [detail]))) return;
    await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.parse(worktree), { forceNewWindow: true });
  }

  private async export({ id, title }: JobSummary): Promise<void> {
    const patch = { label: "$(diff) Patch", description: "as `git apply` takes it" };
    const branch = { label: "$(git-branch) Branch", description: "in this repository, not checked out" };
    const form = await vscode.window.showQuickPick([patch, branch], { title: `Export “${title}”` });
    if (form === patch) {
      const { patch = "" } = await this.server.request("pactify/job/export", { jobId: id, as: "patch" });
      await show("diff", patch);
    } else if (form === branch) {
      const wanted = await say.line(`Export “${title}”`, "The new branch's name", { value: `pactify/${id}` });
      if (wanted === undefined) return;
      const { branch } = await this.server.request("pactify/job/export", { jobId: id, as: "branch", name: wanted });
      void say.info(`“${title}” is on the branch ${branch ?? wanted}.`);
    }
  }

  private async details(job: JobSummary): Promise<void> {
    const { brief, ending, error, finalMessage, notices, verification = [] } = await this.jobs.get(job.id);
    const verified = verification.map(({ command, passed }) => `${passed ? "passed" : "did not pass"}: ${command}`);
    const listed = [...notices, ...verified].map((line) => `- ${line}\n`).join("");
    const end = [ending?.what, error?.message, error?.next].map((part) => (part === undefined ? "" : sentence(part)));
    const text = [`# ${titled(job)}`, end.join(" ").trim(), listed, finalMessage ?? "", "## Brief", brief];
    await show("markdown", text.filter((part) => part !== "").join("\n\n"));
  }

  private readonly moved = ({ id }: JobSummary): Promise<void> => this.jobs.hear(id).then(() => this.results.forget(id));
}

const show = async (language: string, content: string): Promise<unknown> =>
  vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language, content }));
