// The jobs of this window's folders, as they were when the server last spoke of them.
// What the server says that changed is asked for again, a few times a second at most however much it says: an agent may
// do ten thousand things a second, and the last of them is what has to be right.

import * as vscode from "vscode";
import type { JobDetail, JobSummary, StatusParams } from "./protocol";
import * as say from "./say";
import { Refusal, type Server, tellMenus } from "./server";
import { standing, summary } from "./words";

/** From one round of questions to the next, in milliseconds: often enough to look live. */
const PAUSE = 250;
/** With news of more jobs than this, the lists are read instead. */
const MOST_SINGLE = 8;
/** So many decided jobs are known, the newest of each repository: for what is still to be undone. */
const DECIDED = 50;

export class Jobs {
  private readonly known = new Map<string, JobSummary>();
  /** The jobs to ask for again; "" is for all of them. */
  private readonly stale = new Set<string>();
  /** A round of questions that has not begun, and the last one that has. */
  private coming: Promise<void> | undefined;
  private asked: Promise<unknown> = Promise.resolve();
  private pause = this.asked;
  private readonly changes = new vscode.EventEmitter<void>();
  private readonly endings = new vscode.EventEmitter<string>();
  readonly onDidChange = this.changes.event;
  /** Fires with the id of a job that has ended, and whose result nobody has decided about: an undo is no end. */
  readonly onEnd = this.endings.event;

  constructor(private readonly server: Server, context: vscode.ExtensionContext) {
    context.subscriptions.push(
      server.onStarted(() => void this.hear()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => void this.hear()),
      server.onProgress(() => this.all().filter((job) => !isOver(job)).forEach(({ id }) => void this.hear(id))),
      server.on("pactify/job/changed", ({ jobId, state, disposition }) => {
        if (state === "finished" && disposition === "pending" && !isApplied(this.seen(jobId))) this.endings.fire(jobId);
        void this.hear(jobId);
      }),
    );
  }

  /** What is known now, newest first. */
  readonly all = (): JobSummary[] => [...this.known.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt));

  readonly seen = (jobId: string): JobSummary | undefined => this.known.get(jobId);

  async get(jobId: string): Promise<JobDetail> {
    const status = await this.server.request("pactify/job/status", { jobId });
    if (!("job" in status)) throw new Error("the server answered with a list of jobs");
    this.keep(status.job);
    return status.job;
  }

  /** There is news of a job, or of any; it is known when this is done. */
  async hear(jobId = ""): Promise<void> {
    this.stale.add(jobId);
    await (this.coming ??= this.pause.then(() => this.look()));
  }

  /** Lets the person choose among jobs that `fit`; nothing if they don't, or there is none. Fails if reading does. */
  async choose(title: string, none: string, fits: (job: JobSummary) => boolean): Promise<JobSummary | undefined> {
    await this.hear();
    await this.asked;
    const jobs = this.all().filter(fits);
    if (jobs.length === 0) return void say.info(none);
    const items = jobs.map((job) => ({ label: job.title, description: standing(job), detail: summary(job), job }));
    return (await vscode.window.showQuickPick(items, { title, matchOnDetail: true }))?.job;
  }

  private async look(): Promise<void> {
    const ids = [...this.stale];
    const isAll = this.stale.has("") || ids.length > MOST_SINGLE;
    this.stale.clear();
    this.coming = undefined;
    this.asked = isAll ? this.readAll() : Promise.all(ids.map((id) => this.get(id)));
    this.pause = Promise.allSettled([this.asked, new Promise((resolve) => setTimeout(resolve, PAUSE))]);
    // What is wrong is told where a person acts on jobs; here it is only kept for the log.
    await this.asked.catch((error: unknown) => this.server.log.warn(`the jobs can't be read: ${String(error)}`));
    this.changes.fire();
  }

  private keep(job: JobSummary): void {
    if (job.disposition === "discarded") this.known.delete(job.id);
    else this.known.set(job.id, job);
  }

  /** All undecided jobs, and the newest of the others, of the folders that can be listed. */
  private async readAll(): Promise<void> {
    const found: JobSummary[] = [];
    let [repositories, refusal]: [number, Refusal | undefined] = [0, undefined];
    for (const { uri } of vscode.workspace.workspaceFolders ?? []) {
      try {
        const repository = uri.toString();
        found.push(...(await this.list({ repository, all: true, limit: DECIDED }, false)));
        found.push(...(await this.list({ repository }, true)));
        repositories += 1;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (error.data.code === "noRepository") continue;
        this.server.log.warn(`jobs of ${uri.fsPath} can't be read: ${error.message}`);
        refusal = error;
      }
    }
    if (repositories === 0 && refusal !== undefined) throw refusal;
    tellMenus("repositories", repositories);
    this.known.clear();
    for (const job of found) this.keep(job);
  }

  private async list(of: StatusParams, isWhole: boolean): Promise<JobSummary[]> {
    const list = await this.server.request("pactify/job/status", of);
    if (!("jobs" in list)) throw new Error("the server answered with one job");
    if (!isWhole || list.next === undefined) return list.jobs;
    return [...list.jobs, ...(await this.list({ ...of, cursor: list.next }, true))];
  }
}

export const isOver = ({ state }: JobSummary): boolean => state === "finished" || state === "lost";
export const hasChanges = (job: JobSummary): boolean => isOver(job) && (job.changes?.files ?? 0) > 0;
export const hasResult = (job: JobSummary): boolean => hasChanges(job) && job.disposition !== "applied";
export const isApplied = (job?: JobSummary): boolean => ["applied", "partlyApplied"].includes(job?.disposition ?? "");
export const isWaiting = ({ waiting }: JobSummary): boolean => waiting !== undefined;
