// Delegate: from an open brief, or from words (about the selected lines, if there are any), to a job and its toast.

import * as vscode from "vscode";
import { approving } from "./approve";
import type { Jobs } from "./jobs";
import { isOver, words } from "./jobs";
import { shown } from "./problem";
import type { BriefSource, JobDetail } from "./protocol";
import type { Server } from "./server";

/** Asks for the task and starts a job; returns once the server has it. */
export async function delegate(server: Server, jobs: Jobs): Promise<void> {
  const folder = await chooseFolder();
  if (folder === undefined) return;
  const brief = await chooseBrief();
  if (brief === undefined) return;
  const params = { brief, repository: folder.uri.toString() };
  const delegated = await approving(server, () => server.request("pactify/job/delegate", params));
  if (delegated === undefined) return;
  const { jobId, notices } = delegated;
  for (const notice of notices) void vscode.window.showInformationMessage(`Pactify: ${notice}`);
  void shown(() => followInToast(server, jobs, jobId));
}

/** Shows a running job as a notification that can cancel it, until the job is over. */
export async function followInToast(server: Server, jobs: Jobs, jobId: string): Promise<void> {
  const { harness, title } = await jobs.get(jobId);
  const options = { location: vscode.ProgressLocation.Notification, title: `${harness}: ${title}`, cancellable: true };
  await vscode.window.withProgress(options, (progress, cancellation) => {
    cancellation.onCancellationRequested(() => shown(() => server.request("pactify/job/cancel", { jobId })));
    return untilOver(jobs, jobId, (job) => {
      progress.report({ message: job.activity ?? words(job.state) });
    });
  });
}

/** Shows the job whenever there is news, with one question under way at a time, until it is over. */
async function untilOver(jobs: Jobs, jobId: string, show: (job: JobDetail) => void): Promise<void> {
  let wake: () => void = () => undefined;
  let news = Promise.resolve();
  const listen = (): void => {
    news = new Promise((resolve) => (wake = resolve));
  };
  const subscription = jobs.onNews((id) => {
    if (id === undefined || id === jobId) wake();
  });
  try {
    for (;;) {
      listen();
      const job = await jobs.get(jobId);
      if (isOver(job)) return;
      show(job);
      await news;
    }
  } finally {
    subscription.dispose();
  }
}

async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const document = vscode.window.activeTextEditor?.document.uri;
  const around = document && vscode.workspace.getWorkspaceFolder(document);
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) throw new Error("no folder is open: open one with a git repository first");
  return around ?? (folders.length === 1 ? folders[0] : vscode.window.showWorkspaceFolderPick());
}

async function chooseBrief(): Promise<BriefSource | undefined> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.scheme === "file" && editor.document.fileName.endsWith(".brief.md")) {
    return { uri: editor.document.uri.toString() };
  }
  const lines = editor === undefined || editor.selection.isEmpty ? undefined : quoted(editor);
  const task = await vscode.window.showInputBox({
    title: "Delegate a Task",
    prompt: lines === undefined ? "What should the agent do?" : `What should the agent do with ${lines.name}?`,
    placeHolder: "Fix the failing test in the parser",
    ignoreFocusOut: true,
  });
  if (task === undefined || task.trim() === "") return undefined;
  return lines === undefined ? task : `${task}\n\nThis is about ${lines.name}:\n\n${lines.text}\n`;
}

/** The selected lines, whole, in a fence longer than any in them. */
function quoted({ document, selection: { start, end } }: vscode.TextEditor): { name: string; text: string } {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  const text = document.getText(new vscode.Range(start.line, 0, last, Number.MAX_SAFE_INTEGER));
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const name = `${vscode.workspace.asRelativePath(document.uri, false)}, lines ${start.line + 1}–${last + 1}`;
  return { name, text: `${fence}${document.languageId}\n${text}\n${fence}` };
}
