// The quick form: one question after the other, with a way back; whoever leaves it has chosen nothing.

import * as vscode from "vscode";
import { pick } from "./pick";
import type { HarnessView, JobSummary, RetryParams } from "./protocol";
import type { Server } from "./server";
import { sentence } from "./words";

/** What a person can choose for a job; what is absent is as configured, or as the job was that is done again. */
export type Options = Omit<RetryParams, "jobId" | "brief">;

type Item = vscode.QuickPickItem & { choice: Options };
/** What is asked, what there is to choose, and what comes of words that are typed instead. */
type Question = [isAsked: boolean, question: string, items: Item[], ofWords?: (words: string) => Item];

const ASKS = { allow: "asks nobody", ask: "asks you" };
const FROM = { head: "from HEAD", workingTree: "with uncommitted changes", buffers: "with unsaved text" };

/** `kimi · read-only · from HEAD`. */
export function described({ base, inPlace, permissions, verify, ...of }: Options): string {
  const parts = [
    of.harness,
    of.model,
    of.access === "readOnly" ? (inPlace ? "read-only, in the checkout" : "read-only") : of.access && "may write",
    permissions && ASKS[permissions],
    of.withUserConfig && "with your own configuration",
    base && FROM[base],
    verify && (verify.length === 0 ? "not verified" : `verified by ${verify.join(", ")}`),
  ];
  return parts.filter(Boolean).join(" · ") || "as configured";
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
    const usual: Item = { label: of.id ? "As Before, or As Configured" : "What Is Configured", choice: {} };
    // A job that writes nothing is granted nothing, and has nothing to verify; one in the checkout has no base.
    const questions: Question[] = [
      [true, "Who does it?", ordered.map(who)],
      [true, "With which model? Choose, or type its name", [usual], (model) => ({ label: model, choice: { model } })],
      [true, "What may it do?", ACCESS.filter(({ choice: { access } }) => access && does?.access.includes(access))],
      [access === "write" && does?.asks === true, "Who answers what it asks?", [usual, ...ANSWERS]],
      [access !== undefined && (does?.userConfig.includes(access) ?? false), "With whose configuration of it?", WHOSE],
      [!inPlace, "What does its tree start as?", BASES],
      [access !== "readOnly", "What does its result have to pass? Choose, or type a command", [usual, NOTHING], command],
    ];
    const steps = questions.filter(([isAsked]) => isAsked);
    const [, placeholder, items, ofWords] = steps[given.length] ?? [];
    if (placeholder === undefined || items === undefined) return chosen;
    const at = { title: of.id ? `Retry “${of.title}”` : "Delegate", step: given.length + 1, totalSteps: steps.length };
    const typed = (words: string) => (ofWords && words !== "" ? [{ ...ofWords(words), alwaysShow: true }] : []);
    const answer = await pick({ ...at, placeholder, items: (words) => [...typed(words), ...items] });
    if (answer === undefined) return undefined;
    if (answer === "back") given.pop();
    else given.push(answer.item.choice);
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
const ANSWERS: Item[] = [
  { label: "Nobody: All of It Is Granted", choice: { permissions: "allow" } },
  { label: "You, Asked Here", choice: { permissions: "ask" } },
];
const NOTHING: Item = { label: "Nothing", choice: { verify: [] } };
const command = (line: string): Item => ({ label: line, detail: "In the result's tree.", choice: { verify: [line] } });
