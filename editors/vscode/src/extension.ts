// The extension: its parts, and its commands. Views only: jobs, git and processes are the server's.
// The ids here begin with `pactify.ui.`: the language client registers the server's own as `pactify.delegate` ….

import * as vscode from "vscode";
import { Actions } from "./actions";
import { Delegation } from "./delegate";
import { doctor } from "./doctor";
import { Jobs } from "./jobs";
import { DiffLenses, type Place } from "./lenses";
import { ASK, serveContents, shownBy } from "./preview";
import { shown } from "./problem";
import { Results } from "./results";
import { Server, tellMenus } from "./server";
import { Tree } from "./tree";
import { showInStatusBar, Watch } from "./watch";

/** What the extension gives its own tests: what the view shows can't be read from outside. */
export function activate(context: vscode.ExtensionContext): { tree: Tree } {
  const server = new Server(context);
  const jobs = new Jobs(server, context);
  const results = new Results(server, context, jobs);
  const tree = new Tree(jobs, results, context);
  const delegation = new Delegation(server, jobs, (...job) => watch.follow(...job), context);
  const actions = new Actions(server, jobs, results, new DiffLenses(jobs, results, context), delegation);
  const watch = new Watch(server, jobs, context, (jobId) => actions.tell(jobId));
  showInStatusBar(jobs, context);

  const command = (name: string, run: (...given: never[]) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(`pactify.ui.${name}`, (...given: never[]) => shown(() => run(...given)));
  const restart = (): Promise<void> => shown(() => server.restart());
  context.subscriptions.push(
    serveContents(server),
    vscode.workspace.registerTextDocumentContentProvider(ASK.scheme, { provideTextDocumentContent: (at) => at.query }),
    ...actions.all.map((action) => command(action[0], (node?: Partial<Place>) => actions.run(action, node))),
    ...(["delegate", "delegateSelection", "newBrief", "briefOptions"] as const).map((name) =>
      command(name, () => delegation[name]()),
    ),
    ...(["openFile", "applyHunk", "reviewed", "comment"] as const).map((name) =>
      command(name, (place: Place) => actions[name](place)),
    ),
    command("applyFile", (place?: Place) => actions.applyHunk(place, true)),
    command("delegateFix", (uri?: vscode.Uri, problem?: vscode.Diagnostic) => delegation.fix(uri, problem)),
    command("jobs", () => vscode.commands.executeCommand("pactify.jobs.focus")),
    command("refresh", () => jobs.hear()),
    command("showMore", ({ job }: Place) => tree.showMore(job)),
    command("doctor", () => doctor(server)),
    command("tour", () => vscode.commands.executeCommand("workbench.action.openWalkthrough", "pactify.pactify#start")),
    command("log", () => server.log.show()),
    command("restart", restart),
    ...[jobs.onDidChange, results.onDidChange].map((heard) =>
      heard(() => actions.all.forEach(([name, , , fits]) => tellMenus(`can.${name}`, jobs.all().some(fits)))),
    ),
    // In the diff of all files the editor's resource is that diff, not what the cursor is in.
    vscode.window.onDidChangeActiveTextEditor((editor) => tellMenus("here", shownBy(editor?.document.uri) !== undefined)),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((it) => it.affectsConfiguration("pactify.server.path") && restart()),
  );
  if (vscode.workspace.isTrusted) void shown(() => server.start().then(() => watch.resume()));
  return { tree };
}
