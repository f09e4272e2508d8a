// Delegate: from a brief, or from words (about lines or a problem, if there are any), to a job.

import * as vscode from "vscode";
import * as briefs from "./briefs";
import type { Jobs } from "./jobs";
import { lens } from "./lenses";
import { choose, described, type Options } from "./options";
import { pick } from "./pick";
import { approving } from "./problem";
import type { JobSummary, Requests } from "./protocol";
import * as say from "./say";
import type { Server } from "./server";
import { age } from "./words";

/** What a task is about: its name, and the text that the agent is shown. */
type Subject = { readonly name: string; readonly text: string };
type Start = "pactify/job/delegate" | "pactify/job/retry";
type Item = vscode.QuickPickItem & { act?: "go" | "options" | "write"; template?: vscode.Uri; job?: JobSummary };

const FIX = "Delegate Fix for This Problem";
/** So many earlier briefs are offered. */
const EARLIER = 8;

export class Delegation {
  /** What was chosen for open briefs; their lenses show it. */
  private readonly options = new Map<string, Options>();
  /** What was typed for a task, and became neither a job nor a brief yet. */
  private unsent = "";
  private readonly changes = new vscode.EventEmitter<void>();

  constructor(
    private readonly server: Server,
    private readonly jobs: Jobs,
    readonly follow: (jobId: string, before?: string) => void,
    context: vscode.ExtensionContext,
  ) {
    const lenses: vscode.CodeLensProvider = {
      onDidChangeCodeLenses: this.changes.event,
      provideCodeLenses: ({ uri }) => [
        lens(1, "$(rocket) Delegate", "delegate"),
        lens(1, `$(settings) ${described(this.options.get(uri.toString()) ?? {})}`, "briefOptions"),
      ],
    };
    const fixes: vscode.CodeActionProvider = {
      provideCodeActions: ({ uri }, _, { diagnostics }) =>
        diagnostics.map((problem) => {
          const command = { command: "pactify.ui.delegateFix", title: FIX, arguments: [uri, problem] };
          const action = new vscode.CodeAction(FIX, vscode.CodeActionKind.QuickFix);
          return Object.assign(action, { command, diagnostics: [problem] });
        }),
    };
    context.subscriptions.push(
      vscode.languages.registerCodeLensProvider({ pattern: `**/*${briefs.ENDING}` }, lenses),
      vscode.languages.registerCodeActionsProvider({ scheme: "file" }, fixes),
    );
  }

  /** The open brief, or else a task that is asked for. */
  async delegate(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.fileName.endsWith(briefs.ENDING) !== true) return this.task({});
    const folder = await chooseFolder();
    if (folder === undefined) return;
    const options = this.options.get(document.uri.toString()) ?? {};
    const params = { brief: document.getText(), repository: folder.uri.toString(), ...options };
    const { version } = document;
    // What is typed meanwhile was not sent.
    if ((await this.start("pactify/job/delegate", params)) && document.version === version) await briefs.close(document);
  }

  async delegateSelection(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) throw new Error("no text is selected");
    await this.task({ base: "buffers" }, quoted(editor.document, editor.selection));
  }

  /** Asks for a job that fixes a problem: the one given, or the one at the cursor. */
  async fix(given?: vscode.Uri, problem?: vscode.Diagnostic): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const uri = given ?? editor?.document.uri;
    const isHere = ({ range }: vscode.Diagnostic): boolean => editor?.selection.intersection(range) !== undefined;
    const found = problem ?? (uri && vscode.languages.getDiagnostics(uri).find(isHere));
    if (uri === undefined || found === undefined) throw new Error("there is no problem at the cursor");
    const { name, text } = quoted(await vscode.workspace.openTextDocument(uri), found.range);
    const said = found.source === undefined ? found.message : `${found.message} (${found.source})`;
    const task = `Fix: ${found.message.split("\n", 1)[0] ?? ""}`;
    await this.task({ base: "buffers" }, { name, text: `${said}\n\n${text}` }, task);
  }

  async briefOptions(): Promise<void> {
    const uri = vscode.window.activeTextEditor?.document.uri.toString();
    const options = uri && (await choose(this.server, {}));
    if (!uri || !options) return;
    this.options.set(uri, options);
    this.changes.fire();
  }

  async newBrief(): Promise<void> {
    const folder = await chooseFolder();
    if (folder !== undefined) await this.write(folder, "", {});
  }

  private async write(folder: vscode.WorkspaceFolder, text: string, options: Options): Promise<void> {
    this.options.set(await briefs.write(folder, text), options);
    this.changes.fire();
  }

  /** A new job from a job's brief, with other options. */
  async again(job: JobSummary): Promise<void> {
    const options = await choose(this.server, job);
    if (options !== undefined) await this.start("pactify/job/retry", { jobId: job.id, ...options });
  }

  private async start<M extends Start>(method: M, params: Requests[M]["params"]): Promise<boolean> {
    const delegated = await approving(this.server, () => this.server.request(method, params));
    for (const notice of delegated?.notices ?? []) void say.info(`Pactify: ${notice}`);
    if (delegated !== undefined) this.follow(delegated.jobId);
    return delegated !== undefined;
  }

  /** Asks for a task: of what is given, or begins with what was typed before. */
  private async task(options: Options, subject?: Subject, given?: string): Promise<void> {
    await this.server.start();
    const folder = await chooseFolder();
    if (folder === undefined) return;
    const offers = await this.offers(folder);
    const keep = (typed: string): string => (given === undefined ? (this.unsent = typed) : typed);
    const asked = await pick<Item>({
      title: "Delegate a Task",
      placeholder: `What should the agent do${subject === undefined ? "" : ` with ${subject.name}`}?`,
      value: given ?? this.unsent,
      items: (typed) => [...deeds(keep(typed), options), ...offers],
    });
    if (asked === undefined || asked === "back") return;
    const { item, typed } = asked;
    const about = subject === undefined ? "" : `\n\nThis is about ${subject.name}:\n\n${subject.text}\n`;
    const template = item.template && new TextDecoder().decode(await vscode.workspace.fs.readFile(item.template));
    const earlier = item.job && (await this.jobs.get(item.job.id)).brief;
    const begun = template ?? earlier ?? (item.act === "write" ? typed : undefined);
    const task = { brief: (begun ?? typed) + about, repository: folder.uri.toString() };
    let [chosen, isStarted]: [Options | undefined, boolean] = [options, false];
    try {
      if (item.act === "options") chosen = await choose(this.server, task);
      if (chosen && begun === undefined) isStarted = await this.start("pactify/job/delegate", { ...task, ...chosen });
    } finally {
      // What was typed is not lost with a job that does not start.
      if (!isStarted) await this.write(folder, task.brief, chosen ?? options);
      keep("");
    }
  }

  /** What can be chosen instead of typing: templates, and what was asked before. */
  private async offers(folder: vscode.WorkspaceFolder): Promise<Item[]> {
    const templates = [...(await briefs.templates(folder))].map(([label, template]) => ({ label, template }));
    const earlier = this.jobs.all().filter((job, at, all) => all.findIndex(({ title }) => title === job.title) === at);
    const again = earlier.slice(0, EARLIER).map((job) => ({ label: job.title, description: age(job), job }));
    const section = (label: string, items: Item[]): Item[] =>
      items.length === 0 ? [] : [{ label, kind: vscode.QuickPickItemKind.Separator }, ...items];
    return [...section("templates", templates), ...section("earlier briefs", again)];
  }
}

function deeds(typed: string, options: Options): Item[] {
  const go: Item = { label: `$(rocket) Delegate: ${typed}`, detail: described(options), act: "go" };
  const set: Item = { label: "$(settings) Delegate With…", detail: "Agent, model, access, checks", act: "options" };
  const write: Item = { label: "$(edit) Write a Brief…", detail: "In an editor, with room", act: "write" };
  return (typed === "" ? [write] : [go, set, write]).map((deed) => ({ ...deed, alwaysShow: true }));
}

async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const document = vscode.window.activeTextEditor?.document.uri;
  const around = document && vscode.workspace.getWorkspaceFolder(document.with({ scheme: "file" }));
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) throw new Error("no folder is open: open one with a git repository first");
  return around ?? (folders.length === 1 ? folders[0] : vscode.window.showWorkspaceFolderPick());
}

/** The lines of a range, whole. */
function quoted(document: vscode.TextDocument, { start, end }: vscode.Range): Subject {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  const text = document.getText(new vscode.Range(start.line, 0, last, Number.MAX_SAFE_INTEGER));
  const lines = last > start.line ? `lines ${start.line + 1}–${last + 1}` : `line ${start.line + 1}`;
  const path = vscode.workspace.asRelativePath(document.uri, false);
  return { name: `${path}, ${lines}`, text: fenced(text, document.languageId) };
}

/** A text in a fence longer than any in it. */
export function fenced(text: string, language: string): string {
  const fence = "`".repeat(Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length)) + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
