// Preview: what a job changed, as one multi-file diff of virtual documents that nobody can save.
//
// A document `pactify:/<path>?<query>` is one side of one changed path. Both sides have the same path, because VS Code
// shows it to people and takes different ones for a rename. The change set makes a later result another document.

import * as vscode from "vscode";
import type { Conflict, ContentParams, FileChange, JobSummary, PathName, Preview, Side } from "./protocol";
import type { Server } from "./server";

export const SCHEME = "pactify";

type Query = ContentParams & { changeSet: string; object?: string };

/** All pages of what the job changed. */
export async function preview(server: Server, job: JobSummary): Promise<Preview> {
  const first = { jobId: job.id, format: "summary" as const };
  const whole = await server.request("pactify/job/diffPreview", first);
  for (let cursor = whole.next; cursor !== undefined; ) {
    const page = await server.request("pactify/job/diffPreview", { ...first, cursor });
    if (page.changeSet !== whole.changeSet) return preview(server, job);
    whole.files.push(...page.files);
    cursor = page.next;
  }
  return whole;
}

/** Opens the diff. */
export async function open(job: JobSummary, { changeSet, files }: Preview): Promise<void> {
  const repository = vscode.Uri.parse(job.repository);
  const document = (side: Side, file: FileChange): vscode.Uri => virtual(job, changeSet, side, file);
  const resources = files.map((file) => [
    vscode.Uri.joinPath(repository, file.path),
    file.old && document("base", file),
    file.new && document("result", file),
  ]);
  await vscode.commands.executeCommand("vscode.changes", `Pactify: ${job.title}`, resources);
}

/** Opens what merges would change in the checkout. */
export async function openMerges(job: JobSummary, { changeSet }: Preview, merges: Conflict[]): Promise<void> {
  const repository = vscode.Uri.parse(job.repository);
  const resources = merges.map((merge) => [
    vscode.Uri.joinPath(repository, merge.path),
    virtual(job, changeSet, "current", merge, merge.object),
    virtual(job, changeSet, "merged", merge, merge.object),
  ]);
  await vscode.commands.executeCommand("vscode.changes", `Pactify: merges of ${job.title}`, resources);
}

/** One side of one path; `object` tells the contents of one path apart as the checkout changes. */
function virtual(job: JobSummary, changeSet: string, side: Side, file: PathName, object?: string): vscode.Uri {
  const { path, pathBytes } = file;
  const name: PathName = pathBytes === undefined ? { path } : { path, pathBytes };
  const version = object === undefined ? {} : { object };
  const query: Query = { jobId: job.id, changeSet, side, ...name, ...version };
  return vscode.Uri.from({ scheme: SCHEME, path: `/${path}`, query: JSON.stringify(query) });
}

/** Serves the virtual documents. */
export class Contents implements vscode.TextDocumentContentProvider {
  constructor(private readonly server: Server) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const content = await this.server.request("pactify/job/content", JSON.parse(uri.query) as Query);
    return content.binary ? `(not text: ${content.size} bytes)\n` : (content.text ?? "");
  }
}
