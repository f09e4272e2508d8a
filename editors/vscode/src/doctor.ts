// Doctor: what is there on this machine, what is missing, and what to do about it.

import * as vscode from "vscode";
import type { Finding, Findings } from "./protocol";
import * as say from "./say";
import type { Server } from "./server";
import { sentence } from "./words";

const ICONS = { error: "$(error)", warning: "$(warning)", ok: "$(pass)" };
const PROBE = "$(beaker) Have Each Agent Try to Write…";

export async function doctor(server: Server, probe = false): Promise<void> {
  const look = (): Promise<Findings> => server.request("pactify/job/doctor", { probe });
  const { findings } = await say.progress("Pactify: looking at this machine", look, false);
  const count = (which: Finding["severity"]): number => findings.filter(({ severity }) => severity === which).length;
  const remarks = count("warning") === 0 ? "" : `, with ${count("warning")} to look at`;
  const title = count("error") === 0 ? `Pactify is ready${remarks}` : `Pactify: ${count("error")} to mend${remarks}`;
  const items = findings.map(({ severity, title: found, next = "", detail = "" }) => {
    return { label: `${ICONS[severity]} ${found}`, detail: next && sentence(next), more: detail && sentence(detail) };
  });
  const ask = { label: PROBE, detail: "A real turn for each of them: costs tokens.", more: "" };
  const options = { title, placeHolder: "Choose a finding to read all of it", matchOnDetail: true };
  const chosen = await vscode.window.showQuickPick(probe ? items : [...items, ask], options);
  if (chosen?.label === PROBE) return doctor(server, true);
  if (chosen !== undefined) await say.info(chosen.label.replace(/^\S+ /, ""), [], [chosen.more, chosen.detail]);
}
