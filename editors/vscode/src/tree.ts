// The jobs view: jobs by repository and state, what each changed, and check boxes for what to take of it.

import { basename, dirname } from "node:path";
import * as vscode from "vscode";
import { hasChanges, hasResult, isApplied, isOver, isWaiting, type Jobs } from "./jobs";
import type { FileChange, JobSummary } from "./protocol";
import type { Part, Results } from "./results";
import { age, doing, extent, key, MINUTE, MODE, sides, standing, titled, words } from "./words";

/** So many files of a job are listed at once; more are a click away. */
const PAGE = 500;
const CHANGE = "pactify-change";
const ACTS = { sensitive: "acts by itself in your checkout", buildInput: "runs when you build or test" };
const CHECKED = vscode.TreeItemCheckboxState.Checked;
const { None: LEAF, Collapsed: CLOSED, Expanded: OPEN } = vscode.TreeItemCollapsibleState;

type JobNode = { kind: "job"; job: JobSummary };
/** A changed file, or a part of one with the others of that file. */
type FileNode = { kind: "file" | "part"; job: JobSummary; changeSet: string; file: FileChange } & Partial<OfPart>;
type OfPart = { part: Part; siblings: Part[] };
/** What the view shows; commands from its menus are given one. */
export type Node =
  | { kind: "repository"; repository: string }
  | { kind: "group"; group: string; repository: string | undefined }
  | { kind: "more"; job: JobSummary; left: number }
  | JobNode
  | FileNode;

/** The states, most urgent first: each with the jobs that belong to it. */
const GROUPS: [string, (job: JobSummary) => boolean][] = [
  ["Needs You", isWaiting],
  ["Working", (job) => !isOver(job)],
  ["To Review", hasResult],
  ["Applied", isApplied],
  ["Ended", () => true],
];

const ICONS: Record<string, [string, string?]> = {
  waiting: ["bell-dot", "list.warningForeground"],
  queued: ["clock"],
  working: ["loading~spin"],
  succeeded: ["pass", "testing.iconPassed"],
  applied: ["check-all", "testing.iconPassed"],
  noChanges: ["circle-outline"],
  cancelled: ["circle-slash"],
  bad: ["error", "testing.iconFailed"],
};

export class Tree implements vscode.TreeDataProvider<Node>, vscode.FileDecorationProvider {
  private readonly changes = new vscode.EventEmitter<Node | undefined>();
  readonly onDidChangeTreeData = this.changes.event;
  /** Their colours are for one kind of theme. */
  readonly onDidChangeFileDecorations: vscode.Event<undefined> = (heard) =>
    vscode.window.onDidChangeActiveColorTheme(() => void heard(undefined));
  private readonly nodes = new Map<string, JobNode>();
  private readonly pages = new Map<string, number>();
  private readonly view: vscode.TreeView<Node>;
  private shape = "";

  constructor(private readonly jobs: Jobs, private readonly results: Results, context: vscode.ExtensionContext) {
    const options = { treeDataProvider: this, manageCheckboxStateManually: true, showCollapseAll: true };
    this.view = vscode.window.createTreeView("pactify.jobs", options);
    const clock = setInterval(() => this.changes.fire(undefined), MINUTE);
    context.subscriptions.push(
      this.view,
      new vscode.Disposable(() => clearInterval(clock)),
      vscode.window.registerFileDecorationProvider(this),
      jobs.onDidChange(() => this.update()),
      results.onDidChange((jobId) => this.changes.fire(this.nodes.get(jobId))),
      this.view.onDidChangeCheckboxState(({ items }) => items.forEach(([node, on]) => this.check(node, on === CHECKED))),
    );
  }

  check(node: Node, isChecked: boolean): void {
    if ("file" in node) this.results.choose(node.job, node.file, node.part, node.siblings ?? [], isChecked);
  }

  showMore(job: JobSummary): void {
    this.pages.set(job.id, (this.pages.get(job.id) ?? 1) + 1);
    this.changes.fire(this.nodes.get(job.id));
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node === undefined) {
      const repositories = [...new Set(this.jobs.all().map(({ repository }) => repository))];
      if (repositories.length < 2) return this.groups(repositories[0]);
      return repositories.map((repository) => ({ kind: "repository", repository }));
    }
    if (node.kind === "repository") return this.groups(node.repository);
    if (node.kind === "group") return this.members(node.group, node.repository).map((job) => this.node(job));
    if (node.kind === "job") return hasChanges(node.job) ? this.files(node.job) : [];
    if (node.kind !== "file") return [];
    const siblings = await this.results.parts(node.job, node.file);
    return siblings.map((part) => ({ ...node, kind: "part", part, siblings }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.kind === "job") return jobItem(node.job, this.results.selection(node.job).select.length > 0);
    if ("file" in node) return node.part === undefined ? this.fileItem(node) : this.partItem(node, node.part);
    if (node.kind === "more") {
      const command = { command: "pactify.ui.showMore", title: "Show More", arguments: [node] };
      return item({ label: `Show More of ${node.left} Other Files`, command });
    }
    if (node.kind === "repository") {
      const label = basename(vscode.Uri.parse(node.repository).fsPath);
      return item({ label, id: node.repository, collapsibleState: OPEN, iconPath: new vscode.ThemeIcon("repo") });
    }
    const collapsibleState = ["Applied", "Ended"].includes(node.group) ? CLOSED : OPEN;
    const description = String(this.members(node.group, node.repository).length);
    return item({ label: node.group, id: `${node.repository ?? ""} ${node.group}`, description, collapsibleState });
  }

  provideFileDecoration({ scheme, query }: vscode.Uri): vscode.FileDecoration | undefined {
    if (scheme !== CHANGE) return undefined;
    // VS Code dims what stands beside a name: dimmed colours can't be read in its themes of high contrast.
    const { activeColorTheme: theme } = vscode.window;
    const hue = (id: string) => (theme.kind > vscode.ColorThemeKind.Dark ? undefined : color(id));
    if (query === "sensitive") return new vscode.FileDecoration("!", ACTS.sensitive, hue("list.warningForeground"));
    const kind = { added: "added", deleted: "deleted" }[query] ?? "modified";
    const mark = kind.charAt(0).toUpperCase();
    return new vscode.FileDecoration(mark, words(query), hue(`gitDecoration.${kind}ResourceForeground`));
  }

  /** Shows again only the jobs that changed, as long as all stay where they are. */
  private update(): void {
    const jobs = this.jobs.all();
    const shape = jobs.map((job) => `${job.id} ${groupOf(job)} ${String(hasChanges(job))}`).join();
    const waiting = jobs.filter(isWaiting).length;
    this.view.badge = waiting === 0 ? undefined : { value: waiting, tooltip: `Waiting for you: ${waiting}` };
    if (shape !== this.shape) this.changes.fire(undefined);
    this.shape = shape;
    for (const job of jobs) {
      const node = this.nodes.get(job.id);
      if (node === undefined || JSON.stringify(node.job) === JSON.stringify(job)) continue;
      node.job = job;
      this.changes.fire(node);
    }
  }

  private groups(repository: string | undefined): Node[] {
    const filled = GROUPS.filter(([group]) => this.members(group, repository).length > 0);
    return filled.map(([group]) => ({ kind: "group", group, repository }));
  }

  private readonly members = (group: string, repository: string | undefined): JobSummary[] =>
    this.jobs.all().filter((job) => groupOf(job) === group && job.repository === repository);

  /** The same object for the same job: the view knows nodes by that. */
  private node(job: JobSummary): JobNode {
    const node = this.nodes.get(job.id) ?? { kind: "job", job };
    node.job = job;
    this.nodes.set(job.id, node);
    return node;
  }

  private async files(job: JobSummary): Promise<Node[]> {
    const { changeSet, files } = await this.results.preview(job);
    const count = (this.pages.get(job.id) ?? 1) * PAGE;
    const nodes: Node[] = files.slice(0, count).map((file) => ({ kind: "file", job, changeSet, file }));
    return files.length > count ? [...nodes, { kind: "more", job, left: files.length - count }] : nodes;
  }

  private fileItem(node: FileNode): vscode.TreeItem {
    const { job, changeSet, file } = node;
    const isOpen = hasResult(job) && file.refused === undefined;
    const chosen = this.results.chosen(job, file);
    const remarks = [
      dirname(file.path) === "." ? "" : dirname(file.path),
      file.tier === undefined ? "" : ACTS[file.tier],
      file.refused === undefined ? "" : `can't be applied: ${file.refused}`,
      file.renamedFrom === undefined ? "" : `was ${file.renamedFrom.path}`,
      chosen === "all" || chosen.size === 0 ? "" : `${chosen.size} chosen`,
      file.accepted === true ? "applied" : "",
      this.results.isReviewed(changeSet, file) ? "✓ reviewed" : "",
    ].filter((remark) => remark !== "");
    const query = file.tier === "sensitive" ? file.tier : file.kind;
    return item({
      label: basename(file.path),
      id: `${job.id} ${changeSet} ${key(file)}`,
      collapsibleState: !file.binary && file.old !== undefined && file.new !== undefined ? CLOSED : LEAF,
      resourceUri: vscode.Uri.from({ scheme: CHANGE, path: `/${file.path}`, query }),
      iconPath: vscode.ThemeIcon.File,
      description: remarks.join(" · "),
      tooltip: [file.path, words(file.kind), ...remarks].join("\n"),
      contextValue: isOpen ? "file open" : "file",
      command: { command: "pactify.ui.openFile", title: "Open Diff", arguments: [node] },
      accessibilityInformation: { label: [file.path, words(file.kind), ...remarks].join(", ") },
      ...(isOpen && { checkboxState: box(chosen === "all", file.path) }),
    });
  }

  private partItem(node: FileNode, part: Part): vscode.TreeItem {
    const { job, changeSet, file } = node;
    const chosen = this.results.chosen(job, file);
    const isTaken = part.accepted === true;
    const isOpen = !isTaken && hasResult(job);
    const line = [...part.newLines, ...part.oldLines].find((line) => line.trim() !== "")?.trim() ?? "(empty lines)";
    const text = part.id === MODE ? `mode: ${file.new?.mode ?? ""}` : line;
    const description = isTaken ? `${extent(part)} · applied` : extent(part);
    return item({
      label: text,
      id: `${job.id} ${changeSet} ${part.id} ${key(file)}`,
      description,
      tooltip: sides(part).join("\n"),
      contextValue: isOpen ? "part open" : "part",
      command: { command: "pactify.ui.openFile", title: "Open Diff", arguments: [node] },
      accessibilityInformation: { label: `${description}: ${text}` },
      ...(isTaken && { iconPath: new vscode.ThemeIcon("check") }),
      ...(isOpen && { checkboxState: box(chosen === "all" || chosen.has(part.id), extent(part)) }),
    });
  }
}

const groupOf = (job: JobSummary): string => GROUPS.find(([, fits]) => fits(job))?.[0] ?? "";

function jobItem(job: JobSummary, isChosenFrom: boolean): vscode.TreeItem {
  const [icon, theme] = ICONS[iconOf(job)] ?? ["circle-outline"];
  const description = `${doing(job)} · ${age(job)}`;
  const terms = `${job.access === "write" ? "may write" : "read-only"}, from ${words(job.base.kind)}`;
  const ofResult = [hasChanges(job) && "changes", hasResult(job) && "result", isApplied(job) && "applied"];
  const flags = [isWaiting(job) && "waiting", isOver(job) ? "over" : "running", ...ofResult, isChosenFrom && "chosen"];
  return item({
    label: job.title,
    id: job.id,
    collapsibleState: hasChanges(job) ? CLOSED : LEAF,
    iconPath: new vscode.ThemeIcon(icon, theme === undefined ? undefined : color(theme)),
    description,
    tooltip: [titled(job), standing(job), description, ...job.notices, terms].join("\n"),
    accessibilityInformation: { label: `${titled(job)}, ${standing(job)}, ${description}` },
    contextValue: ["job", ...flags].filter(Boolean).join(" "),
  });
}

function iconOf(job: JobSummary): string {
  if (isWaiting(job)) return "waiting";
  if (!isOver(job)) return job.state === "queued" ? "queued" : "working";
  if (isApplied(job)) return "applied";
  return job.outcome !== undefined && job.outcome in ICONS ? job.outcome : "bad";
}

function box(isChecked: boolean, what: string): NonNullable<vscode.TreeItem["checkboxState"]> {
  const label = `take ${what}`;
  const state = isChecked ? CHECKED : vscode.TreeItemCheckboxState.Unchecked;
  return { state, tooltip: label, accessibilityInformation: { label } };
}

const item = (fields: Partial<vscode.TreeItem>): vscode.TreeItem => Object.assign(new vscode.TreeItem(""), fields);
const color = (id: string): vscode.ThemeColor => new vscode.ThemeColor(id);
