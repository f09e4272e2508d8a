// The extension: its commands, and what is told when a job ends. Views only: jobs, git and processes are the server's.
//
// The ids here begin with `pactify.ui.`: the language client registers the server's own commands (`pactify.delegate` …)
// under their names.

import * as vscode from "vscode";
import { delegate } from "./delegate";
import { Jobs } from "./jobs";
import { Contents, SCHEME } from "./preview";
import { reason, shown } from "./problem";
import { Server } from "./server";
import { StatusBar } from "./statusBar";
import { Views } from "./views";

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  let server: Server;
  try {
    server = await Server.start(context);
  } catch (error) {
    const next = "Set `pactify.server.path` to a pactify-lsp that runs, then reload the window.";
    void vscode.window.showErrorMessage(`Pactify: the server did not start: ${reason(error)}. ${next}`);
    return;
  }
  const jobs = new Jobs(server);
  const views = new Views(server, jobs);
  const command = (name: string, run: () => Promise<void>): vscode.Disposable =>
    vscode.commands.registerCommand(`pactify.ui.${name}`, () => shown(run));
  context.subscriptions.push(
    server,
    jobs,
    new StatusBar(jobs),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, new Contents(server)),
    jobs.onEnd((jobId) => void shown(() => views.end(jobId))),
    command("delegate", () => delegate(server, jobs)),
    command("jobs", () => views.jobs()),
    command("preview", () => views.choosePreview()),
    command("apply", () => views.chooseApply()),
    command("undo", () => views.chooseUndo()),
    command("cancel", () => views.chooseCancel()),
  );
}
