// Approve: the person reads what a repository or a brief wants to run, and decides once about exactly this text.

import * as vscode from "vscode";
import type { Approval } from "./protocol";
import { Refusal } from "./server";
import type { Server } from "./server";

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
  const question =
    kind === "setup"
      ? "The repository wants to run a command in each new tree, with your rights."
      : "The brief wants its result verified by running this, with your rights.";
  const answer = await vscode.window.showWarningMessage(
    question,
    { modal: true, detail: `${vscode.Uri.parse(repository).fsPath}\n\n${text}` },
    allow,
    deny,
  );
  if (answer === undefined) return false;
  const decision = answer === allow ? "allow" : "deny";
  await server.request("pactify/job/approve", { kind, repository, text, decision });
  return true;
}
