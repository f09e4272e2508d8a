// Preview: what a job changed, as diffs of virtual documents that nobody can save.
// A document `pactify:/<path>?<query>` is one side of one changed path. Both sides have the same path, because VS Code
// shows it to people and takes different ones for a rename. The change set makes a later result another document.

import { basename } from "node:path";
import * as vscode from "vscode";
import type { Conflict, ContentParams, FileChange, JobSummary, PathName, Preview, Side } from "./protocol";
import type { Server } from "./server";
import { name } from "./words";

export const SCHEME = "pactify";
/** What a job asks for is read as a document, which nobody is asked to save; its query is the text. */
export const ASK = { scheme: "pactify-asks", path: "/What Is Asked" };
/** More files than this make VS Code's diff stand still; the others are opened one by one, from the jobs view. */
export const MOST_AT_ONCE = 50;

/** What a document shows; `object` tells the contents of one path apart as the checkout changes. */
export type Shown = ContentParams & PathName & { changeSet: string; object?: string };

/** Opens all of it as one diff, as far as that is quick; sensitive files come first. */
export async function open(job: JobSummary, { changeSet, files }: Preview): Promise<void> {
  const resources = files.slice(0, MOST_AT_ONCE).map((file) => [
    vscode.Uri.joinPath(vscode.Uri.parse(job.repository), file.path),
    file.old && virtual(job, changeSet, "base", file),
    file.new && virtual(job, changeSet, "result", file),
  ]);
  await vscode.commands.executeCommand("vscode.changes", `Pactify: ${job.title}`, resources);
}

/** Opens one path as a diff, at this line of the result. */
export async function openFile(job: JobSummary, changeSet: string, file: FileChange, line = 1): Promise<void> {
  const at = new vscode.Position(Math.max(line - 1, 0), 0);
  const sides = [virtual(job, changeSet, "base", file), virtual(job, changeSet, "result", file)];
  const title = `${basename(file.path)} (${job.title})`;
  const options = { selection: new vscode.Range(at, at), preview: true };
  await vscode.commands.executeCommand("vscode.diff", ...sides, title, options);
}

export async function openMerges(job: JobSummary, { changeSet }: Preview, merges: Conflict[]): Promise<void> {
  const resources = merges.map((merge) => [
    vscode.Uri.joinPath(vscode.Uri.parse(job.repository), merge.path),
    virtual(job, changeSet, "current", merge, merge.object),
    virtual(job, changeSet, "merged", merge, merge.object),
  ]);
  await vscode.commands.executeCommand("vscode.changes", `Pactify: merges of ${job.title}`, resources);
}

/** Opens three ways of a path that both sides changed: the job's change beside the person's, of the same base. */
export async function openConflict(job: JobSummary, changeSet: string, path: PathName): Promise<void> {
  const show = async (side: Side, what: string, viewColumn: vscode.ViewColumn): Promise<void> => {
    // The checkout changes: another name for each look.
    const sides = [virtual(job, changeSet, "base", path), virtual(job, changeSet, side, path, new Date().toISOString())];
    const options = { viewColumn, preview: false };
    await vscode.commands.executeCommand("vscode.diff", ...sides, `${basename(path.path)}: base ↔ ${what}`, options);
  };
  await show("current", "yours", vscode.ViewColumn.Two);
  await show("result", "the job's", vscode.ViewColumn.One);
}

/** What the document is a side of; nothing if it is none of ours. */
export const shownBy = (uri: vscode.Uri | undefined): Shown | undefined =>
  uri?.scheme === SCHEME ? (JSON.parse(uri.query) as Shown) : undefined;

export function serveContents(server: Server): vscode.Disposable {
  const provideTextDocumentContent = async ({ query }: vscode.Uri): Promise<string> => {
    const content = await server.request("pactify/job/content", JSON.parse(query) as Shown);
    return content.binary ? `(not text: ${content.size} bytes)\n` : (content.text ?? "");
  };
  return vscode.workspace.registerTextDocumentContentProvider(SCHEME, { provideTextDocumentContent });
}

function virtual(job: JobSummary, changeSet: string, side: Side, file: PathName, object?: string): vscode.Uri {
  const query: Shown = { jobId: job.id, changeSet, side, ...name(file), ...(object !== undefined && { object }) };
  return vscode.Uri.from({ scheme: SCHEME, path: `/${file.path}`, query: JSON.stringify(query) });
}
