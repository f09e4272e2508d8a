// What can be done where the cursor is in a job's diff: lenses above each part, and which part a command means.

import * as vscode from "vscode";
import { hasResult, type Jobs } from "./jobs";
import { SCHEME, type Shown, shownBy } from "./preview";
import type { FileChange, JobSummary } from "./protocol";
import type { Part, Results } from "./results";
import { extent, key, MODE } from "./words";

/** A place in a result, as commands are told of it; without a part, the whole file. */
export type Place = { readonly job: JobSummary; readonly file: FileChange; readonly part?: Part | undefined };

export class DiffLenses implements vscode.CodeLensProvider {
  readonly onDidChangeCodeLenses: vscode.Event<void> = (heard) => this.results.onDidChange(() => void heard());

  constructor(private readonly jobs: Jobs, private readonly results: Results, context: vscode.ExtensionContext) {
    context.subscriptions.push(vscode.languages.registerCodeLensProvider({ scheme: SCHEME }, this));
  }

  async provideCodeLenses({ uri }: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const shown = shownBy(uri);
    const found = shown?.side === "result" ? await this.find(shown) : undefined;
    if (shown === undefined || found === undefined) return [];
    const { job, file } = found;
    const isOpen = hasResult(job) && file.refused === undefined;
    const seen = this.results.isReviewed(shown.changeSet, file) ? "$(eye) Reviewed" : "$(eye-closed) Mark as Reviewed";
    const lenses = [lens(1, seen, "reviewed", found)];
    if (isOpen) lenses.push(lens(1, "$(check-all) Apply File", "applyFile", found));
    for (const part of await this.results.parts(job, file)) {
      const place = { ...found, part };
      if (part.accepted === true) lenses.push(lens(part.newStart, "$(check-all) Applied", "", place));
      else if (isOpen) lenses.push(lens(part.newStart, `$(check) Apply ${extent(part)}`, "applyHunk", place));
      lenses.push(lens(part.newStart, "$(comment) Comment…", "comment", place));
    }
    return lenses;
  }

  /** The place that the person is at: the part at the cursor, or the nearest above. */
  async here(): Promise<Place | undefined> {
    const editor = vscode.window.activeTextEditor;
    const shown = shownBy(editor?.document.uri);
    const found = shown && (await this.find(shown));
    if (editor === undefined || shown === undefined || found === undefined) return undefined;
    const line = editor.selection.active.line + 1;
    const start = (part: Part): number => (shown.side === "base" ? part.oldStart : part.newStart);
    const parts = (await this.results.parts(found.job, found.file)).filter(({ id }) => id !== MODE);
    return { ...found, part: parts.filter((part) => start(part) <= line).at(-1) ?? parts[0] };
  }

  private async find(shown: Shown): Promise<Place | undefined> {
    const job = this.jobs.seen(shown.jobId) ?? (await this.jobs.get(shown.jobId));
    const { changeSet, files } = await this.results.preview(job);
    const file = files.find((other) => key(other) === key(shown));
    // A document of an older result is only to look at.
    return changeSet === shown.changeSet && file !== undefined ? { job, file } : undefined;
  }
}

export function lens(line: number, title: string, name: string, ...given: Place[]): vscode.CodeLens {
  const at = Math.max(line - 1, 0);
  const command = name === "" ? "" : `pactify.ui.${name}`;
  return new vscode.CodeLens(new vscode.Range(at, 0, at, 0), { title, command, arguments: given });
}
