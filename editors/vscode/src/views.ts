// What a person sees of jobs, and does with them.

import * as vscode from "vscode";
import { apply } from "./apply";
import { approving } from "./approve";
import { followInToast } from "./delegate";
import { counts, files, hasResult, isApplied, isOver } from "./jobs";
import type { Jobs } from "./jobs";
import { open, preview } from "./preview";
import { sentence } from "./problem";
import type { JobSummary, Preview } from "./protocol";
import type { Server } from "./server";

export class Views {
  /** What this window showed, by job: only that can be applied. */
  private readonly shown = new Map<string, Preview>();

  constructor(
    private readonly server: Server,
    private readonly list: Jobs,
  ) {}

  /** All jobs, and what can be done with the chosen one. */
  async jobs(): Promise<void> {
    const job = await this.list.choose("Pactify: Jobs", "There are no open jobs. Delegate a task first.", () => true);
    if (job === undefined) return;
    const actions = [
      { label: "$(diff-multiple) Preview", fits: hasResult(job), run: () => this.preview(job) },
      { label: "$(check) Apply", fits: hasResult(job), run: () => this.apply(job) },
      { label: "$(discard) Undo Apply", fits: isApplied(job), run: () => this.undo(job) },
      { label: "$(debug-stop) Cancel", fits: !isOver(job), run: () => this.cancel(job) },
      { label: "$(info) How It Ended", fits: isOver(job), run: () => this.end(job.id) },
      { label: "$(debug-restart) Retry", fits: isOver(job), run: () => this.retry(job) },
      { label: "$(trash) Discard", fits: isOver(job), run: () => this.discard(job) },
    ].filter(({ fits }) => fits);
    await (await vscode.window.showQuickPick(actions, { title: job.title }))?.run();
  }

  async choosePreview(): Promise<void> {
    const job = await this.list.choose("Preview a Job's Changes", "No job has changes to look at.", hasResult);
    if (job !== undefined) await this.preview(job);
  }

  async chooseApply(): Promise<void> {
    const job = await this.list.choose("Apply a Job's Changes", "No job has changes to apply.", hasResult);
    if (job !== undefined) await this.apply(job);
  }

  async chooseUndo(): Promise<void> {
    const job = await this.list.choose("Undo an Apply", "No job's changes are applied.", isApplied, true);
    if (job !== undefined) await this.undo(job);
  }

  async chooseCancel(): Promise<void> {
    const job = await this.list.choose("Cancel a Job", "No job is running.", (job) => !isOver(job));
    if (job !== undefined) await this.cancel(job);
  }

  /** Tells how a job ended, and what can be done now. */
  async end(jobId: string): Promise<void> {
    const job = await this.list.get(jobId);
    if (job.ending === undefined) return;
    const { tone, what, next } = job.ending;
    const show = tone === "bad" ? vscode.window.showErrorMessage : vscode.window.showInformationMessage;
    const text = `${job.harness}: ${job.title}: ${what}. ${sentence(next)}`;
    const answer = await show(text, ...(hasResult(job) ? ["Preview"] : []));
    if (answer !== undefined) await this.preview(job);
  }

  private async preview(job: JobSummary): Promise<void> {
    const changes = await preview(this.server, job);
    await open(job, changes);
    this.shown.set(job.id, changes);
    const refused = changes.files.filter((file) => file.refused !== undefined).length;
    const remarks = [`“${job.title}” changed ${counts(changes.totals)}`, ...changes.notes];
    if (changes.totals.sensitive > 0) remarks.push(`look first at ${changes.totals.sensitive} that act by themselves`);
    if (refused > 0) remarks.push(`${files(refused)} can never be applied`);
    const answer = await vscode.window.showInformationMessage(remarks.map(sentence).join(" "), "Apply…");
    if (answer !== undefined) await this.apply(job);
  }

  private async apply(job: JobSummary): Promise<void> {
    const changes = this.shown.get(job.id);
    if (changes === undefined) await this.preview(job);
    else await apply(this.server, job, changes);
  }

  private async undo({ id, title }: JobSummary): Promise<void> {
    const { restored } = await this.server.request("pactify/job/undo", { jobId: id });
    void vscode.window.showInformationMessage(`“${title}” was undone: ${files(restored.length)} are as before.`);
  }

  private async cancel({ id }: JobSummary): Promise<void> {
    await this.server.request("pactify/job/cancel", { jobId: id });
  }

  private async retry({ id }: JobSummary): Promise<void> {
    const retried = await approving(this.server, () => this.server.request("pactify/job/retry", { jobId: id }));
    if (retried !== undefined) await followInToast(this.server, this.list, retried.jobId);
  }

  private async discard(job: JobSummary): Promise<void> {
    const options = { modal: true, detail: "Its tree and its result are removed. This can't be undone." };
    const answer = await vscode.window.showWarningMessage(`Discard what “${job.title}” did?`, options, "Discard");
    if (answer !== undefined) await this.server.request("pactify/job/discard", { jobId: job.id });
  }
}
