// Telling the person what went wrong: what, the stable code, and what to do next. Never only "failed".

import * as vscode from "vscode";
import { Refusal } from "./server";

/** Runs what the person asked for; whatever goes wrong is shown. */
export async function shown(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await tell(error);
  }
}

export async function tell(error: unknown): Promise<void> {
  if (!(error instanceof Refusal)) {
    await vscode.window.showErrorMessage(`Pactify: ${reason(error)}`);
    return;
  }
  const { code, message, next, conflicts = [] } = error.data;
  const text = `Pactify: ${message}. ${sentence(next)} (${code})`;
  if (conflicts.length === 0) {
    await vscode.window.showErrorMessage(text);
    return;
  }
  const show = conflicts.length === 1 ? "Show the Path" : `Show All ${conflicts.length} Paths`;
  if ((await vscode.window.showErrorMessage(text, show)) === show) {
    const items = conflicts.map(({ path, detail }) => ({ label: path, detail }));
    await vscode.window.showQuickPick(items, { title: message, placeHolder: next, matchOnDetail: true });
  }
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A fragment of the server's as a sentence. */
export function sentence(fragment: string): string {
  const end = /[.!?]$/.test(fragment) ? "" : ".";
  return `${fragment.charAt(0).toUpperCase()}${fragment.slice(1)}${end}`;
}
