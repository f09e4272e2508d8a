// How long a key takes from the keyboard to the text on the page: in turns without a job, and while one says ten thousand
// events a second, with its toast, the jobs view and the status bar. Prints both as JSON, in milliseconds.

import fs from "node:fs";
import path from "node:path";
import { given, hands, step, withVsCode } from "./browser.mjs";

const ROUNDS = 5;
const KEYS = 80;
/** Between two keys, in milliseconds. */
const GAP = 20;

const workspace = given("PACTIFY_WORKSPACE");
const samples = { without: [], with: [] };

/** In the page: notes for each key how long it took, from the browser's own time of it. */
function watch() {
  const lines = document.querySelector(".editor-instance .view-lines");
  const size = () => lines.textContent.length;
  globalThis.unwatch?.();
  globalThis.took = [];
  let begun;
  let before;
  const pressed = ({ timeStamp }) => ([begun, before] = [timeStamp, size()]);
  const observer = new MutationObserver(() => {
    if (begun === undefined || size() <= before) return;
    globalThis.took.push(performance.now() - begun);
    begun = undefined;
  });
  observer.observe(lines, { subtree: true, childList: true, characterData: true });
  addEventListener("keydown", pressed, true);
  globalThis.unwatch = () => {
    observer.disconnect();
    removeEventListener("keydown", pressed, true);
  };
}

/** What a round's job is asked. */
function brief(number) {
  const [title, name, stop] = [`Chatter ${number}`, `chatter-${number}.brief.md`, `${given("PACTIFY_GO")}-${number}`];
  const chatter = { chatter: { perSecond: 10000, until: stop, seconds: 120 } };
  const steps = [chatter, { write: { path: `${number}.txt`, content: "a\n" } }].map((step) => JSON.stringify(step));
  return { title, name, stop, text: [title, "", "```agent", ...steps, "```", ""].join("\n") };
}

const rounds = Array.from({ length: ROUNDS }, (_, at) => at + 1);
// Before VS Code lists the files: those that come later are found later.
for (const { name, text } of rounds.map(brief)) fs.writeFileSync(path.join(workspace, name), text);
await withVsCode({
  workspace,
  extensions: given("PACTIFY_EXTENSIONS"),
  machine: { "pactify.server.path": given("PACTIFY_LSP") },
  settings: { "editor.wordBasedSuggestions": "off" },
  use: async (page, url) => {
    const { row, toast, button, command, open, showJobs } = hands(page);
    const typed = async (into) => {
      await open("notes.txt");
      await page.locator(".editor-instance .view-line").first().waitFor();
      await page.locator(".editor-instance .focused").first().waitFor();
      await page.keyboard.press("Control+a");
      await page.keyboard.press("Delete");
      await page.waitForFunction(() => document.querySelector(".editor-instance .view-lines").textContent.length < 2);
      await page.evaluate(watch);
      for (let key = 1; key <= KEYS; key += 1) {
        await page.keyboard.press("abcdefghij"[key % 10]);
        await page.waitForFunction((count) => globalThis.took.length >= count, key);
        await page.waitForTimeout(GAP);
      }
      into.push(...(await page.evaluate(() => globalThis.took)));
    };
    const round = async (number) => {
      await typed(samples.without);
      const { title, name, stop } = brief(number);
      await open(name);
      await command("Delegate Task");
      await toast(/message \d+/).waitFor();
      await row(/message \d+/).waitFor();
      await typed(samples.with);
      fs.writeFileSync(stop, "");
      await toast(`${title}: changed 1 file`).waitFor();
      await row(title).and(row("1 file, +1 −0")).waitFor();
      await page.keyboard.press("Escape");
    };

    await page.goto(url);
    await step("the workbench shows", 90, async () => {
      await page.locator(".monaco-workbench .statusbar").waitFor();
      await showJobs();
      await button(page.locator(".sidebar .welcome-view"), "Delegate a Task").waitFor();
    });
    for (const number of rounds) await step(`round ${number}`, 120, () => round(number));
    console.log(JSON.stringify(samples));
  },
});
