// The jobs of this window's folders: looking them up, hearing of them, choosing one.
//
// Nothing is remembered here: when the server says that something changed, it is asked again.

import * as vscode from "vscode";
import type { JobDetail, JobSummary } from "./protocol";
import { Refusal } from "./server";
import type { Server } from "./server";

export class Jobs implements vscode.Disposable {
  private readonly news = new vscode.EventEmitter<string | undefined>();
  private readonly endings = new vscode.EventEmitter<string>();
  private readonly subscriptions: { dispose(): unknown }[];
  /** Fires with the id of a job of which there is news; without one, anything may have changed. */
  readonly onNews = this.news.event;
  /** Fires with the id of a job that needs no more waiting, and whose result nobody has decided about. */
  readonly onEnd = this.endings.event;

  constructor(private readonly server: Server) {
    this.subscriptions = [
      this.news,
      this.endings,
      server.onRestarted(() => {
        this.news.fire(undefined);
      }),
      server.on("pactify/job/event", ({ jobId }) => {
        this.news.fire(jobId);
      }),
      server.on("pactify/job/changed", ({ jobId, state, disposition }) => {
        this.news.fire(jobId);
        if (isOver({ state }) && disposition === "pending") this.endings.fire(jobId);
      }),
    ];
  }

  async get(jobId: string): Promise<JobDetail> {
    const status = await this.server.request("pactify/job/status", { jobId });
    if (!("job" in status)) throw new Error("the server answered with a list of jobs");
    return status.job;
  }

  /** The jobs of all open folders, newest first: undecided ones, or `all`. Some of several folders may hold no repository. */
  async list(all = false): Promise<JobSummary[]> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const found = new Map<string, JobSummary>();
    for (const { uri } of folders) {
      try {
        for (const job of await this.of(uri.toString(), all)) found.set(job.id, job);
      } catch (error) {
        const isOther = error instanceof Refusal && error.data.code === "noRepository";
        if (!isOther || folders.length === 1) throw error;
      }
    }
    return [...found.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  }

  /** Lets the person choose among the jobs that `fit`; nothing if they don't, or if there is none. */
  async choose(
    title: string,
    none: string,
    fits: (job: JobSummary) => boolean,
    all = false,
  ): Promise<JobSummary | undefined> {
    const jobs = (await this.list(all)).filter(fits);
    if (jobs.length === 0) {
      void vscode.window.showInformationMessage(none);
      return undefined;
    }
    const items = jobs.map((job) => ({ label: job.title, description: standing(job), detail: summary(job), job }));
    const options = { title, matchOnDescription: true, matchOnDetail: true };
    return (await vscode.window.showQuickPick(items, options))?.job;
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** All pages of one repository. */
  private async of(repository: string, all: boolean): Promise<JobSummary[]> {
    const jobs: JobSummary[] = [];
    let cursor: string | undefined;
    do {
      const page = cursor === undefined ? { repository, all } : { repository, all, cursor };
      const list = await this.server.request("pactify/job/status", page);
      if (!("jobs" in list)) throw new Error("the server answered with one job");
      jobs.push(...list.jobs);
      cursor = list.next;
    } while (cursor !== undefined);
    return jobs;
  }
}

/** Whether there is nothing to wait for. */
export function isOver({ state }: Pick<JobSummary, "state">): boolean {
  return state === "finished" || state === "lost";
}

/** Whether there is a result that waits for a decision. */
export function hasResult(job: JobSummary): boolean {
  const isOpen = job.disposition === "pending" || job.disposition === "partlyApplied";
  return isOver(job) && isOpen && (job.changes?.files ?? 0) > 0;
}

/** Whether there is an apply that can be taken back. */
export function isApplied({ disposition }: JobSummary): boolean {
  return disposition === "applied" || disposition === "partlyApplied";
}

/** `no changes`, of `noChanges`. */
export function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** `3 files, +10 −2`. */
export function counts(changes: { files: number; added: number; deleted: number }): string {
  return `${files(changes.files)}, +${changes.added} −${changes.deleted}`;
}

export function files(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}

function standing(job: JobSummary): string {
  const decided = job.disposition === "pending" ? [] : [words(job.disposition)];
  return [words(job.outcome ?? job.state), ...decided].join(", ");
}

function summary(job: JobSummary): string {
  const doing = isOver(job) ? undefined : job.activity;
  const changed = job.changes === undefined || job.changes.files === 0 ? undefined : counts(job.changes);
  const when = new Date(job.createdAt).toLocaleString();
  return [job.harness, doing ?? changed, when].filter((part) => part !== undefined).join(" · ");
}
