// Apply: exactly what was shown goes into the checkout, all of what was chosen or nothing. The server checks and writes;
// here the person is asked, and helped with files that have unsaved text.

import { basename } from "node:path";
import * as vscode from "vscode";
import { counts, files } from "./jobs";
import { openMerges } from "./preview";
import type { ApplyParams, Conflict, FileChange, JobSummary, PathName, Preview } from "./protocol";
import { Refusal } from "./server";
import type { Server } from "./server";

type Choice = Pick<ApplyParams, "select" | "confirmSensitive">;

/** More paths than this are counted in a question, not named; the preview names them. */
const MOST_PATHS = 30;

/** Asks what of the preview to apply, and applies it unless the person decides against it. */
export async function apply(server: Server, job: JobSummary, preview: Preview): Promise<void> {
  const choice = await choose(job, preview);
  if (choice === undefined) return;
  const params: ApplyParams = { jobId: job.id, changeSet: preview.changeSet, ...choice };
  for (;;) {
    try {
      const { applied, already } = await server.request("pactify/job/apply", params);
      const rest = already.length === 0 ? "" : ` (${already.length} had it already)`;
      void vscode.window.showInformationMessage(`Pactify: applied ${files(applied.length)}${rest}.`);
      return;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const conflicts = error.data.conflicts ?? [];
      if (conflicts.length > 0 && conflicts.every(({ kind }) => kind === "mergeNotShown")) {
        if (!(await confirmMerges(job, preview, conflicts))) return;
        params.confirmMerges = conflicts.map((merge) => ({ ...name(merge), object: merge.object ?? "" }));
      } else if (error.data.code === "unsavedBuffers") {
        if (!(await save(job, error))) return;
      } else {
        throw error;
      }
    }
  }
}

async function choose(job: JobSummary, preview: Preview): Promise<Choice | undefined> {
  const refused = preview.files.filter((file) => file.refused !== undefined);
  const possible = preview.files.filter((file) => file.refused === undefined);
  const special = possible.filter(isSpecial);
  const ordinary = possible.filter((file) => !isSpecial(file));
  if (possible.length === 0) throw new Error("nothing of this result can be applied");

  const all = special.length === 0 ? "Apply" : "Apply All, These Too";
  const some = "Apply Without These";
  const detail = [
    counts(preview.totals),
    listed("These act by themselves once they are in your checkout, or are links:", special),
    listed("These can never be applied and are left out:", refused),
  ];
  const answer = await vscode.window.showWarningMessage(
    `Apply ${files(possible.length)} of “${job.title}” to ${basename(vscode.Uri.parse(job.repository).fsPath)}?`,
    { modal: true, detail: detail.filter((part) => part !== "").join("\n\n") },
    ...(special.length > 0 && ordinary.length > 0 ? [all, some] : [all]),
  );
  if (answer === some) return { select: ordinary.map(name) };
  if (answer !== all) return undefined;
  const confirmed = { confirmSensitive: special.map(name) };
  return refused.length === 0 ? confirmed : { select: possible.map(name), ...confirmed };
}

/** Shows merges of the checkout's changes and the job's, and asks for them. */
async function confirmMerges(job: JobSummary, preview: Preview, merges: Conflict[]): Promise<boolean> {
  await openMerges(job, preview, merges);
  const button = "Apply Merged";
  const answer = await vscode.window.showWarningMessage(
    `Nothing was applied yet: you changed ${files(merges.length)} of it. Both changes fit together, as shown.`,
    button,
    "Cancel",
  );
  return answer === button;
}

/** Offers to save what stands in the way; true if it is saved. */
async function save(job: JobSummary, refusal: Refusal): Promise<boolean> {
  const repository = vscode.Uri.parse(job.repository);
  const paths = (refusal.data.conflicts ?? []).map(({ path }) => path);
  const named = new Set(paths.map((path) => vscode.Uri.joinPath(repository, path).toString()));
  const documents = vscode.workspace.textDocuments;
  const unsaved = documents.filter(({ isDirty, uri }) => isDirty && named.has(uri.toString()));
  // Otherwise another editor has them.
  if (unsaved.length === 0) throw refusal;
  const button = "Save and Apply";
  const answer = await vscode.window.showWarningMessage(
    `Nothing was applied yet: ${files(paths.length)} of it ${paths.length === 1 ? "has" : "have"} unsaved text.`,
    { modal: true, detail: paths.join("\n") },
    button,
  );
  if (answer !== button) return false;
  const saved = await Promise.all(unsaved.map((document) => document.save()));
  return saved.every(Boolean);
}

/** Whether the server wants to hear that the person means this path. */
function isSpecial(file: FileChange): boolean {
  return file.tier === "sensitive" || file.new?.mode === "symlink";
}

function listed(heading: string, changes: FileChange[]): string {
  if (changes.length === 0) return "";
  const paths = changes.slice(0, MOST_PATHS).map(({ path, refused }) => path + (refused ? ` (${refused})` : ""));
  const more = changes.length > MOST_PATHS ? [`… and ${changes.length - MOST_PATHS} more, first in the preview`] : [];
  return [heading, ...paths, ...more].join("\n");
}

function name({ path, pathBytes }: PathName): PathName {
  return pathBytes === undefined ? { path } : { path, pathBytes };
}
