// The newcomer's way through the real interface, with the extension installed from its package: the doctor, a task, the
// agent at work, a reload in the middle, the multi-file diff, one part, the rest, and back. Leaves pictures of it.

import fs from "node:fs";
import path from "node:path";
import { given, hands, shootBoth, step, withVsCode } from "./browser.mjs";

const workspace = given("PACTIFY_WORKSPACE");
const read = (name) => {
  const file = path.join(workspace, name);
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined;
};
const check = (is, what) => {
  if (!is) throw new Error(what);
};

await withVsCode({
  workspace,
  extensions: given("PACTIFY_EXTENSIONS"),
  settings: { "window.autoDetectColorScheme": true },
  use: async (page, url) => {
    const { row, pick, choose, toast, button, dialog, command, open, press, showJobs } = hands(page);
    const quiet = () => page.keyboard.press("Escape");
    const isIdle = () => page.locator(".statusbar-item", { hasText: "Activating" }).waitFor({ state: "detached" });
    const part = () => page.locator(".codelens-decoration a", { hasText: "Apply lines 4–5" }).first();
    const outside = [];
    page.on("request", (request) => {
      const { protocol, hostname, href } = new URL(request.url());
      if (/^(https?|wss?):$/.test(protocol) && hostname !== "127.0.0.1") outside.push(href);
    });

    await page.goto(url);
    await step("the workbench shows", 120, () => page.locator(".monaco-workbench .statusbar").waitFor());
    await step("the jobs view says how to begin", 120, async () => {
      await open("main.c");
      await showJobs();
      // Room for what the view says.
      await page.mouse.move(349, 300);
      await page.mouse.down();
      await page.mouse.move(520, 300, { steps: 4 });
      await page.mouse.up();
      // Away from the edge, which would light up.
      await page.mouse.move(900, 600);
      await button(page.locator(".sidebar .welcome-view"), "Delegate a Task").waitFor();
      await isIdle();
    });
    await shootBoth(page, "vscode-welcome");
    await step("the doctor finds git and the agent", 150, async () => {
      await command("Doctor");
      await pick("codex").waitFor();
      await pick("git ").waitFor();
      await toast("looking at this machine").waitFor({ state: "hidden" });
      // To the end of the list: no place of this machine is in the picture.
      await page.keyboard.press("ArrowUp");
      await pick("jobs are kept in").waitFor({ state: "hidden" });
      await isIdle();
    });
    await shootBoth(page, "vscode-doctor");
    await quiet();

    await step("a task is typed", 90, async () => {
      const asked = page.locator(".quick-input-widget:visible", { hasText: "Write a Brief" });
      await press(button(page.locator(".sidebar .welcome-view"), "Delegate a Task"), asked);
      await page.keyboard.type("Greet people by name");
      await pick("Delegate: Greet people by name").waitFor();
    });
    await shootBoth(page, "vscode-delegate");
    await page.keyboard.press("Enter");
    await step("the job is in a toast that can cancel it, in the view and in the status bar", 60, async () => {
      await toast("codex: Greet people by name").waitFor();
      await button(page.locator(".notifications-toasts"), "Cancel").waitFor();
      await row("Greet people by name").waitFor();
      await page.locator(".statusbar-item", { hasText: "1 running" }).first().waitFor();
    });
    await step("the toast and the view say what the agent does", 60, async () => {
      await toast("check.sh").waitFor();
      await row("check.sh").waitFor();
    });
    await shootBoth(page, "vscode-progress");
    await step("a reloaded window shows the job again", 60, async () => {
      await page.reload();
      await row("Greet people by name").waitFor();
      await toast("codex: Greet people by name").waitFor();
    });
    fs.writeFileSync(given("PACTIFY_GO"), "");
    await step("the end is told, with the way to the preview", 150, async () => {
      await press(button(toast("changed 3 files"), "Preview"), page.locator(".multiDiffEntry").first());
    });
    await step("one diff has all files", 60, async () => {
      // It goes by itself.
      await button(toast("changed 3 files"), "Apply").waitFor();
      await page.locator(".multiDiffEntry").nth(2).waitFor();
      await page.locator(".multiDiffEntry .char-insert, .multiDiffEntry .line-insert").first().waitFor();
    });
    await step("the view has the files with their parts", 60, async () => {
      await press(row("Greet people by name"), row("main.c"));
      await press(row("main.c").locator(".monaco-tl-twistie"), row("static void greet"));
      // It goes by itself, too.
      const away = page.locator(".notifications-toasts .codicon-notifications-clear").first();
      await away.click({ timeout: 3000 }).catch(() => undefined);
      await isIdle();
    });
    await shootBoth(page, "vscode-preview");
    check(!read("README.md").includes("name"), "the checkout was written before the apply");

    await step("one file is opened, with what can be done above its parts", 90, async () => {
      await press(row("main.c"), page.locator(".tab.active", { hasText: "main.c (Greet people by name)" }));
      await part().waitFor();
      await isIdle();
    });
    await shootBoth(page, "vscode-parts");
    await step("one part is taken", 60, async () => {
      await press(part(), row("applied"));
      const main = read("src/main.c");
      check(main.includes("printf") && main.includes("greet();"), `more or less than the part: ${main}`);
      await page.locator(".codelens-decoration", { hasText: "Applied" }).first().waitFor();
    });
    await quiet();
    await step("the rest is taken", 90, async () => {
      await command("Apply…");
      await choose("partly applied");
      await dialog("Apply 3 files").waitFor();
    });
    await shootBoth(page, "vscode-apply");
    await step("the files are on the disk", 90, async () => {
      const yes = dialog("Apply 3 files").locator(".monaco-button", { hasText: /^Apply$/ });
      await press(yes, toast("applied 3 files"));
      check(read("README.md").includes("by name") && read("src/main.c").includes("argv[1]"), "not what was shown");
    });
    await quiet();
    await step("it is taken back", 90, async () => {
      await command("Undo Apply");
      await choose("Greet people by name");
      await toast("was undone").waitFor();
      // It stays for who points at it.
      await toast("was undone").hover({ timeout: 5000 }).catch(() => undefined);
      await row("Greet people by name").waitFor();
      check(!read("README.md").includes("by name") && read("docs/usage.md") === undefined, "not as it was");
      check(read("src/main.c").includes("printf"), "the first apply still stands");
    });
    await shootBoth(page, "vscode-undo");
    check(outside.length === 0, `requests left the machine: ${outside.join(" ")}`);
  },
});
