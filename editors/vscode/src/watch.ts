// Watching: toasts and messages for the jobs that this window started, and the status bar. Those of others are quiet.

import * as vscode from "vscode";
import { hasResult, isOver, isWaiting, type Jobs } from "./jobs";
import { shown } from "./problem";
import type { JobSummary } from "./protocol";
import * as say from "./say";
import { Refusal, type Server } from "./server";
import { setting } from "./settings";
import { doing, titled } from "./words";

/** The window's own jobs whose end is to be told, also after a reload; of each, when it ended before a resume. */
const OWN = "pactify.followed";
/** Whoever waits longer than this, in milliseconds, has likely turned to something else. */
const LONG = 60_000;

export class Watch {
  /** The end of each job that was told last: it may be announced twice, and waited for, too. */
  private readonly told = new Map<string, string>();

  constructor(
    private readonly server: Server,
    private readonly jobs: Jobs,
    private readonly context: vscode.ExtensionContext,
    private readonly tell: (jobId: string) => Promise<void>,
  ) {
    context.subscriptions.push(jobs.onEnd((jobId) => void shown(() => this.ended(jobId))));
  }

  resume(): void {
    // What was pruned meanwhile is nothing to wait for.
    const forget = (id: string) => (error: unknown) =>
      error instanceof Refusal && error.data.code === "jobNotFound" && this.keep(id, undefined);
    for (const id of Object.keys(this.own())) void this.jobs.get(id).then(() => shown(() => this.toast(id)), forget(id));
  }

  /** Shows a job that was started here, until it is over; one that was resumed had another end before. */
  follow(jobId: string, before = ""): void {
    this.keep(jobId, before);
    void this.jobs.hear(jobId);
    void shown(() => this.toast(jobId, true));
  }

  private async toast(jobId: string, isNew = false): Promise<void> {
    const before = this.own()[jobId] ?? "";
    let job: JobSummary | undefined = await this.jobs.get(jobId);
    if (isNew && job.endedAt === before) void say.info(`${titled(job)} goes on when its turn comes.`);
    while (job?.endedAt === before) job = await this.next(jobId);
    if (job === undefined || isOver(job)) return this.ended(jobId);
    await say.progress(titled(job), async (report, cancellation) => {
      cancellation.onCancellationRequested(() => shown(() => this.server.request("pactify/job/cancel", { jobId })));
      let asked: string | undefined;
      for (; job !== undefined && !isOver(job); job = await this.next(jobId)) {
        report(doing(job));
        if (job.waiting !== undefined && job.waiting.requestId !== asked) void this.asks(job);
        asked = job.waiting?.requestId;
      }
    });
    await this.ended(jobId);
  }

  private async asks(job: JobSummary): Promise<void> {
    const answer = await say.warn(`${titled(job)} ${doing(job)}`, ["Answer…"]);
    if (answer !== undefined) await vscode.commands.executeCommand("pactify.ui.answer", { job });
  }

  private async ended(jobId: string): Promise<void> {
    const { state, startedAt, createdAt, endedAt, disposition } = await this.jobs.get(jobId);
    const before = this.own()[jobId];
    if (disposition === "discarded") this.keep(jobId, undefined);
    // A lost job is still the window's own: it is recovered, and then it ends.
    if (state === "lost") return before === undefined ? undefined : this.tell(jobId);
    if (state !== "finished" || endedAt === before || this.told.get(jobId) === String(endedAt)) return;
    this.told.set(jobId, String(endedAt));
    this.keep(jobId, undefined);
    const isLong = Date.now() - Date.parse(startedAt ?? createdAt) > LONG;
    const isNotice = isLong && !vscode.window.state.focused && setting("notice");
    // Whoever walks by may read it.
    if (isNotice ? await say.info("Pactify: a job has ended.", ["Show"]) : before !== undefined) await this.tell(jobId);
  }

  private readonly own = (): Record<string, string> => this.context.workspaceState.get(OWN, {});

  private readonly keep = (jobId: string, before: string | undefined): unknown =>
    this.context.workspaceState.update(OWN, { ...this.own(), [jobId]: before });

  /** The job as the next news have it. */
  private readonly next = (jobId: string): Promise<JobSummary | undefined> =>
    new Promise((resolve) => {
      const heard = this.jobs.onDidChange(() => {
        heard.dispose();
        resolve(this.jobs.seen(jobId));
      });
    });
}

/** Shows how many jobs work on this window's folders, and whether one waits for the person. */
export function showInStatusBar(jobs: Jobs, context: vscode.ExtensionContext): void {
  const item = vscode.window.createStatusBarItem("pactify.jobs", vscode.StatusBarAlignment.Left);
  const show = (): void => {
    const all = jobs.all();
    const [waiting, results] = [all.filter(isWaiting).length, all.filter(hasResult).length];
    const running = `${all.length - all.filter(isOver).length} running`;
    if (waiting > 0) item.text = `$(bell-dot) Pactify: ${waiting} waiting for you`;
    else item.text = running === "0 running" ? "$(rocket) Pactify" : `$(sync~spin) Pactify: ${running}`;
    item.backgroundColor = waiting > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    item.tooltip = `Pactify: ${running}, ${waiting} waiting for you, ${results} to review`;
    item.accessibilityInformation = { label: item.tooltip };
  };
  Object.assign(item, { name: "Pactify", command: "pactify.ui.jobs" });
  show();
  item.show();
  context.subscriptions.push(item, jobs.onDidChange(show));
}
