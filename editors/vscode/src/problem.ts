// Telling the person what went wrong, its stable code and what to do next; asking what only needs the person's word.

import * as vscode from "vscode";
import type { Approval, PathName } from "./protocol";
import * as say from "./say";
import { Refusal, type Server, Untrusted } from "./server";
import { sentence } from "./words";

type Compare = (path: PathName) => Promise<void>;

/** Runs what the person asked for; whatever goes wrong is shown, and a path in the way can be compared. */
export async function shown(work: () => unknown, compare?: Compare): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Untrusted) await offer(error.message, "Manage Workspace Trust", "workbench.trust.manage");
    else if (error instanceof Refusal) await refused(error, compare);
    else await offer(error instanceof Error ? error.message : String(error), "Show Log", "pactify.ui.log");
  }
}

async function offer(message: string, button: string, command: string): Promise<void> {
  const answer = await say.error(`Pactify: ${message}`, [button]);
  if (answer === button) await vscode.commands.executeCommand(command);
}

async function refused({ data }: Refusal, compare?: Compare): Promise<void> {
  const { code, message, next, conflicts = [] } = data;
  const show = conflicts.length === 1 ? "Show the Path" : `Show All ${conflicts.length} Paths`;
  const text = `Pactify: ${message}. ${sentence(next)} (${code})`;
  const answer = await say.error(text, conflicts.length === 0 ? [] : [show]);
  if (answer === undefined) return;
  const items = conflicts.map((path) => ({ label: path.path, detail: path.detail, path }));
  const options = { title: message, placeHolder: `${next}; choose a path to compare`, matchOnDetail: true };
  const chosen = await vscode.window.showQuickPick(items, options);
  if (chosen !== undefined) await compare?.(chosen.path);
}

/** Runs `work`; what it needs an approval for is asked, and then it runs again. Nothing if nobody decides. */
export async function approving<T>(server: Server, work: () => Promise<T>): Promise<T | undefined> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Refusal) || error.data.approval === undefined) throw error;
      if (!(await decide(server, error.data.approval))) return undefined;
    }
  }
}

async function decide(server: Server, { kind, repository, text }: Approval): Promise<boolean> {
  const [allow, deny] = ["Allow This Command", "Run Jobs Without It"];
  const wish = "The brief wants its result verified by running this, with your rights.";
  const question = kind === "setup" ? "The repository wants to run a command in each new tree, with your rights." : wish;
  const answer = await say.warn(question, [allow, deny], [vscode.Uri.parse(repository).fsPath, text]);
  if (answer === undefined) return false;
  await server.request("pactify/job/approve", { kind, repository, text, decision: answer === allow ? "allow" : "deny" });
  return true;
}
