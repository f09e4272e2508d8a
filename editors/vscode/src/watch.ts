// Watching: a toast with Cancel for the jobs that this window started, a message when one ends, a notice when nobody
// looks, and the status bar. Jobs of others are quiet: the jobs view and the status bar show them.

import * as vscode from "vscode";
import { hasResult, isOver, isWaiting, type Jobs } from "./jobs";
import { shown } from "./problem";
import type { JobSummary } from "./protocol";
import * as say from "./say";
import type { Server } from "./server";
import { setting } from "./settings";
import { doing, titled } from "./words";

/** The window's own jobs, as a reload of it leaves them. */
const OWN = "pactify.own";
/** Whoever waits longer than this, in milliseconds, has likely turned to something else. */
const LONG = 60_000;

export class Watch {
  constructor(
    private readonly server: Server,
    private readonly jobs: Jobs,
    private readonly context: vscode.ExtensionContext,
    private readonly tell: (jobId: string) => Promise<void>,
  ) {
    context.subscriptions.push(jobs.onEnd((jobId) => void shown(() => this.ended(jobId))));
  }

  resume(): void {
    const forget = (jobId: string) => () => this.context.workspaceState.update(OWN, this.own(jobId));
    // What was pruned meanwhile is nothing to wait for.
    for (const id of this.own()) void this.jobs.get(id).then(() => shown(() => this.toast(id)), forget(id));
  }

  /** Shows a job that was started here, until it is over. */
  follow(jobId: string): void {
    void this.context.workspaceState.update(OWN, [...this.own(jobId), jobId]);
    void this.jobs.hear(jobId);
    void shown(() => this.toast(jobId));
  }

  private async toast(jobId: string): Promise<void> {
    const job = await this.jobs.get(jobId);
    if (isOver(job)) return this.ended(jobId);
    await say.progress(titled(job), async (report, cancellation) => {
      cancellation.onCancellationRequested(() => shown(() => this.server.request("pactify/job/cancel", { jobId })));
      let asked: string | undefined;
      for (let now: JobSummary | undefined = job; now !== undefined && !isOver(now); now = this.jobs.seen(jobId)) {
        report(doing(now));
        if (now.waiting !== undefined && now.waiting.requestId !== asked) void this.asks(now);
        asked = now.waiting?.requestId;
        await next(this.jobs.onDidChange);
      }
    });
  }

  private async asks(job: JobSummary): Promise<void> {
    const answer = await say.warn(`${titled(job)} ${doing(job)}`, ["Answer…"]);
    if (answer !== undefined) await vscode.commands.executeCommand("pactify.ui.answer", { job });
  }

  private async ended(jobId: string): Promise<void> {
    const isOwn = this.own().includes(jobId);
    if (isOwn) await this.context.workspaceState.update(OWN, this.own(jobId));
    const { startedAt, createdAt } = await this.jobs.get(jobId);
    const isLong = Date.now() - Date.parse(startedAt ?? createdAt) > LONG;
    const isNotice = isLong && !vscode.window.state.focused && setting("notice");
    // Whoever walks by may read it.
    if (isNotice ? await say.info("Pactify: a job has ended.", ["Show"]) : isOwn) await this.tell(jobId);
  }

  /** The jobs that were started here and have not ended, but for this one. */
  private own(without?: string): string[] {
    return this.context.workspaceState.get<string[]>(OWN, []).filter((jobId) => jobId !== without);
  }
}

const next = (event: vscode.Event<void>): Promise<void> =>
  new Promise((resolve) => {
    const heard = event(() => {
      heard.dispose();
      resolve();
    });
  });

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
  item.name = "Pactify";
  item.command = "pactify.ui.jobs";
  show();
  item.show();
  context.subscriptions.push(item, jobs.onDidChange(show));
}
