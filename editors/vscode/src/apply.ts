// Apply: exactly what was shown goes into the checkout, all of what was chosen or nothing. The server checks and writes;
// here the person is asked, and helped with what stands in the way.

import { basename } from "node:path";
import * as vscode from "vscode";
import { openMerges } from "./preview";
import type { ApplyParams, Conflict, FileChange, JobSummary, Preview } from "./protocol";
import type { Selection } from "./results";
import * as say from "./say";
import { Refusal, type Server } from "./server";
import { counts, files, isSpecial, name, sentence } from "./words";

type Choice = Pick<ApplyParams, "select" | "confirmSensitive">;

/** More paths than this are counted in a question, not named; the preview names them. */
const MOST_PATHS = 30;
const ACTING = "These act by themselves once they are in your checkout, or are links:";

/** Asks what of the preview to apply, and applies it unless the person decides against it; true if it was. */
export async function apply(server: Server, job: JobSummary, preview: Preview): Promise<boolean> {
  const refused = preview.files.filter((file) => file.refused !== undefined);
  const possible = preview.files.filter((file) => file.refused === undefined);
  const special = possible.filter(isSpecial);
  const ordinary = possible.filter((file) => !isSpecial(file));
  if (possible.length === 0) throw new Error("nothing of this result can be applied");

  const [all, some] = [special.length === 0 ? "Apply" : "Apply All, These Too", "Apply Without These"];
  const left = listed("These can never be applied and are left out:", refused);
  const detail = [counts(preview.totals), listed(ACTING, special), left];
  const buttons = special.length > 0 && ordinary.length > 0 ? [all, some] : [all];
  const answer = await ask(job, files(possible.length), detail, buttons);
  if (answer === undefined) return false;
  if (answer === some) return write(server, job, preview, { select: ordinary.map(name) });
  const select = refused.length === 0 ? {} : { select: possible.map(name) };
  return write(server, job, preview, { ...select, confirmSensitive: special.map(name) });
}

/** Applies what was chosen path by path and part by part, once it is confirmed. */
export async function applySelected(server: Server, job: JobSummary, preview: Preview, all: Selection): Promise<boolean> {
  const of = (groups?: string[]): string => (groups === undefined ? "" : `: ${groups.length} of its parts`);
  const named = all.files.map((file, at) => ({ ...file, path: file.path + of(all.select[at]?.groups) }));
  const detail = [listed("Chosen:", named), listed(ACTING, all.files.filter(isSpecial))];
  const answer = await ask(job, files(all.files.length), detail, ["Apply Selected"]);
  return answer !== undefined && write(server, job, preview, { select: all.select });
}

/** Writes what the person already said yes to; what stands in the way is asked. */
export async function write(server: Server, job: JobSummary, preview: Preview, choice: Choice): Promise<boolean> {
  const params: ApplyParams = { jobId: job.id, changeSet: preview.changeSet, ...choice };
  for (;;) {
    try {
      const { apply, applied, already } = await server.request("pactify/job/apply", params);
      const rest = already.length === 0 ? "" : ` (${already.length} had it already)`;
      const done = say.info(`Pactify: applied ${files(applied.length)} of “${job.title}”${rest}.`, ["Undo"]);
      void done.then((undo) => undo && vscode.commands.executeCommand("pactify.ui.undo", { job, applyId: apply }));
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, conflicts = [] } = error.data;
      if (conflicts.length > 0 && conflicts.every(({ kind }) => kind === "mergeNotShown")) {
        if (!(await confirmMerges(job, preview, conflicts))) return false;
        params.confirmMerges = conflicts.map((merge) => ({ ...name(merge), object: merge.object ?? "" }));
      } else if (code === "unsavedBuffers") {
        if (!(await save(job, error))) return false;
      } else if (code === "outsideNotConfirmed" && params.confirmOutside !== true) {
        const answer = await askOutside(server, job, error.message);
        if (answer === undefined) return false;
        // What was put back needs no word; the server looks whether that was all.
        params.confirmOutside = answer === "anyway";
      } else {
        throw error;
      }
    }
  }
}

const ask = ({ title, repository }: JobSummary, what: string, details: string[], buttons: string[]) =>
  say.warn(`Apply ${what} of “${title}” to ${basename(vscode.Uri.parse(repository).fsPath)}?`, buttons, details);

/** Shows merges of the checkout's changes and the job's, and asks for them. */
async function confirmMerges(job: JobSummary, preview: Preview, merges: Conflict[]): Promise<boolean> {
  await openMerges(job, preview, merges);
  const text = `${notYet(job)}: you changed ${files(merges.length)} of it. Both changes fit together, as shown.`;
  return (await say.warn(text, ["Apply Merged", "Cancel"])) === "Apply Merged";
}

/** Names what changed outside the job's tree, as it is now: put back, no reason not to apply, or nothing decided. */
async function askOutside(server: Server, { id, title }: JobSummary, why: string): Promise<"back" | "anyway" | undefined> {
  const { outside = [] } = await server.request("pactify/job/diffPreview", { jobId: id, limit: 1 });
  const dangerous = outside.filter(({ weight, restored }) => weight === "dangerous" && !restored);
  const select = dangerous.filter(({ restorable }) => restorable).map(({ id }) => id);
  const [back, anyway] = ["Put Back, Then Apply", "Apply All the Same"];
  const named = dangerous.map(({ place, what }) => `${place}: ${what}`).join("\n");
  const text = `While “${title}” ran, your git directory changed in ways that can run code.`;
  const answer = await say.warn(text, select.length > 0 ? [back, anyway] : [anyway], [named, sentence(why)]);
  if (answer !== back) return answer === anyway ? "anyway" : undefined;
  const { refused } = await server.request("pactify/job/restoreOutside", { jobId: id, select });
  if (refused.length === 0) return "back";
  throw new Error(refused.map(({ place, why }) => `${place} could not be put back: ${why}`).join("; "));
}

/** Offers to save what stands in the way; true if it is saved. */
async function save(job: JobSummary, refusal: Refusal): Promise<boolean> {
  const paths = (refusal.data.conflicts ?? []).map(({ path }) => path);
  const uri = (path: string): string => vscode.Uri.joinPath(vscode.Uri.parse(job.repository), path).toString();
  const named = new Set(paths.map(uri));
  const unsaved = vscode.workspace.textDocuments.filter(({ isDirty, uri }) => isDirty && named.has(uri.toString()));
  // Otherwise another editor has them.
  if (unsaved.length === 0) throw refusal;
  const text = `${notYet(job)}: ${files(paths.length)} of it ${paths.length === 1 ? "has" : "have"} unsaved text.`;
  if ((await say.warn(text, ["Save and Apply"], [paths.join("\n")])) === undefined) return false;
  return (await Promise.all(unsaved.map((document) => document.save()))).every(Boolean);
}

const notYet = ({ title }: JobSummary): string => `Nothing of “${title}” was applied yet`;

function listed(heading: string, changes: FileChange[]): string {
  if (changes.length === 0) return "";
  const paths = changes.slice(0, MOST_PATHS).map(({ path, refused }) => path + (refused ? ` (${refused})` : ""));
  const more = changes.length > MOST_PATHS ? [`… and ${changes.length - MOST_PATHS} more, first in the preview`] : [];
  return [heading, ...paths, ...more].join("\n");
}

export function remarks(job: JobSummary, { files: all, notes, outside = [], totals }: Preview): string {
  const said = [`“${job.title}” changed ${counts(totals)}`, ...notes];
  const refused = all.filter((file) => file.refused !== undefined).length;
  const weighty = outside.filter(({ weight, restored }) => weight !== "ordinary" && !restored);
  if (totals.sensitive > 0) said.push(`look first at ${totals.sensitive} that act by themselves`);
  if (refused > 0) said.push(`${files(refused)} can never be applied`);
  if (weighty.length > 0) said.push(`changes seen outside its tree: ${weighty.length}`);
  return said.map(sentence).join(" ");
}
