// Preview: what a job changed, as one multi-file diff of virtual documents that nobody can save.
//
// A document `pactify:/<path>?<query>` is one side of one changed path. Both sides have the same path, because VS Code
// shows it to people and takes different ones for a rename. The change set makes a later result another document.

import * as vscode from "vscode";
import type { ContentParams, FileChange, JobSummary, PathName, Preview, Side } from "./protocol";
import type { Server } from "./server";

export const SCHEME = "pactify";

type Query = ContentParams & { changeSet: string };

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
  const document = (side: Side, { path, pathBytes }: FileChange): vscode.Uri => {
    const name: PathName = pathBytes === undefined ? { path } : { path, pathBytes };
    const query: Query = { jobId: job.id, changeSet, side, ...name };
    return vscode.Uri.from({ scheme: SCHEME, path: `/${path}`, query: JSON.stringify(query) });
  };
  const resources = files.map((file) => [
    vscode.Uri.joinPath(repository, file.path),
    file.old && document("base", file),
    file.new && document("result", file),
  ]);
  await vscode.commands.executeCommand("vscode.changes", `Pactify: ${job.title}`, resources);
}

/** Serves the virtual documents. */
export class Contents implements vscode.TextDocumentContentProvider {
  constructor(private readonly server: Server) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const content = await this.server.request("pactify/job/content", JSON.parse(uri.query) as Query);
    return content.binary ? `(not text: ${content.size} bytes)\n` : (content.text ?? "");
  }
}
