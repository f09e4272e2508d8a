// The quick form: who does a task, what it may do, with whose configuration, from what, and what its result has to pass.
// One step after the other, with a way back; whoever leaves it has chosen nothing.

import * as vscode from "vscode";
import { pick } from "./pick";
import type { DelegateParams, HarnessView, JobSummary } from "./protocol";
import * as say from "./say";
import type { Server } from "./server";
import { sentence } from "./words";

/** What a person can choose for a job; what is absent is as configured, or as the job was that is done again. */
export type Options = Pick<DelegateParams, "harness" | "access" | "withUserConfig" | "inPlace" | "base" | "verify">;

type Item = vscode.QuickPickItem & { choice: Options };

const OWN = "Another command…";
const FROM = { head: "from HEAD", workingTree: "with uncommitted changes", buffers: "with unsaved text" };

/** `kimi · read-only · from HEAD`. */
export function described({ harness, access, withUserConfig, inPlace, base, verify }: Options): string {
  const parts = [
    harness,
    access === "readOnly" ? (inPlace ? "read-only, in the checkout" : "read-only") : access && "may write",
    withUserConfig && "with your own configuration",
    base && FROM[base],
    verify && (verify.length === 0 ? "not verified" : `verified by ${verify.join(", ")}`),
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? "as configured" : parts.join(" · ");
}

export async function choose(server: Server, { repository, ...of }: Partial<JobSummary>): Promise<Options | undefined> {
  const { harnesses } = await server.request("pactify/job/harnesses", repository ? { repository } : {});
  const isFirst = ({ name, default: isDefault }: HarnessView): boolean => (of.id ? name === of.harness : isDefault);
  const ordered = [...harnesses.filter(isFirst), ...harnesses.filter((one) => !isFirst(one))];
  const given: Options[] = [];
  for (;;) {
    const chosen = Object.assign({}, ...given) as Options;
    const { access, inPlace } = chosen;
    const does = harnesses.find(({ name }) => name === chosen.harness);
    // A job that writes nothing has nothing to verify; one in the checkout has no base.
    const questions: [isAsked: boolean, question: string, items: Item[]][] = [
      [true, "Who does it?", ordered.map(who)],
      [true, "What may it do?", ACCESS.filter(({ choice: { access } }) => access && does?.access.includes(access))],
      [access !== undefined && (does?.userConfig.includes(access) ?? false), "With whose configuration of it?", WHOSE],
      [!inPlace, "What does its tree start as?", BASES],
      [access !== "readOnly", "What does its result have to pass?", checks(of.id !== undefined)],
    ];
    const steps = questions.filter(([isAsked]) => isAsked);
    const [, placeholder, items] = steps[given.length] ?? [];
    if (placeholder === undefined || items === undefined) return chosen;
    const at = { title: of.id ? `Retry “${of.title}”` : "Delegate", step: given.length + 1, totalSteps: steps.length };
    const answer = await pick({ ...at, placeholder, items: () => items });
    if (answer === undefined) return undefined;
    const choice = answer === "back" || answer.item.label !== OWN ? answer : await command();
    if (choice === "back") given.pop();
    else given.push("item" in choice ? choice.item.choice : choice);
  }
}

function who(harness: HarnessView): Item {
  const { name, version, default: isDefault, failure, loggedIn, sandbox } = harness;
  const ready = `$(pass) Ready. ${sandbox ? "The system confines its commands." : "Its commands are not confined."}`;
  const able = loggedIn === false ? "$(warning) Not logged in." : ready;
  const detail = failure ? `$(error) ${sentence(failure.message)} ${sentence(failure.next)}` : able;
  const description = [version, isDefault ? "default" : undefined].filter(Boolean).join(" · ");
  return { label: name, description, detail, choice: { harness: name } };
}

const IN_PLACE = "Sees ignored files, too. Any change there fails the job.";
const ACCESS: Item[] = [
  { label: "Change Files", detail: "In a tree of its own, never in your checkout.", choice: { access: "write" } },
  { label: "Only Look", detail: "Any change in its tree fails the job.", choice: { access: "readOnly" } },
  { label: "Only Look, in the Checkout", detail: IN_PLACE, choice: { access: "readOnly", inPlace: true } },
];
const BASES: Item[] = [
  { label: "The Last Commit", description: "HEAD", choice: { base: "head" } },
  { label: "With Uncommitted Changes", description: "as saved", choice: { base: "workingTree" } },
  { label: "With Unsaved Text", description: "as your editors show it", choice: { base: "buffers" } },
];
const WHOSE: Item[] = [
  { label: "What Pactify's Configuration Says", choice: { withUserConfig: false } },
  { label: "Your Own, Too", detail: "As far as its access lets it.", choice: { withUserConfig: true } },
];
const checks = (again: boolean): Item[] => [
  { label: again ? "What You Named Before, or What Is Configured" : "What Is Configured", choice: {} },
  { label: "Nothing", choice: { verify: [] } },
  { label: OWN, detail: "The job fails unless it ends well in the result's tree.", choice: {} },
];

async function command(): Promise<Options | "back"> {
  const command = await say.line("Delegate", "A command that the result has to pass", { placeHolder: "cargo test" });
  return command?.trim() ? { verify: [command.trim()] } : "back";
}
