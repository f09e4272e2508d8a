// The person's way through the real interface: Delegate from the palette, the toast, the message at the end, the
// multi-file diff, the confirmation, the files on the disk. Leaves pictures of it.

import fs from "node:fs";
import path from "node:path";
import { given, shoot, step, withVsCode } from "./browser.mjs";

const workspace = given("PACTIFY_WORKSPACE");
const read = (name) => fs.readFileSync(path.join(workspace, name), "utf8");

await withVsCode({
  workspace,
  extensions: given("PACTIFY_EXTENSIONS"),
  use: async (page, url) => {
    const toast = (text) => page.locator(".notifications-toasts .notification-list-item", { hasText: text }).first();
    const outside = [];
    page.on("request", (request) => {
      const { protocol, hostname, href } = new URL(request.url());
      if (/^(https?|wss?):$/.test(protocol) && hostname !== "127.0.0.1") outside.push(href);
    });
    await page.goto(url);
    await step("the workbench shows", 60, () => page.locator(".monaco-workbench .statusbar").waitFor());
    await step("the extension is in the status bar", 60, () =>
      page.locator(".statusbar-item", { hasText: "Pactify" }).first().waitFor(),
    );

    await step("the palette has the command", 30, async () => {
      await page.keyboard.press("F1");
      await page.locator(".quick-input-widget:visible input.input").fill(">Pactify: Delegate");
      await page.locator(".quick-input-list .monaco-list-row", { hasText: "Delegate a Task" }).first().waitFor();
      await page.keyboard.press("Enter");
    });
    await step("a task is typed", 30, async () => {
      await page.locator(".quick-input-widget:visible", { hasText: "What should the agent do?" }).waitFor();
      await page.keyboard.type("Greet people by name");
      await page.keyboard.press("Enter");
    });
    await step("the job is in a toast that can cancel it", 30, async () => {
      await toast("codex: Greet people by name").waitFor();
      await page.locator(".notifications-toasts .monaco-button", { hasText: "Cancel" }).first().waitFor();
      await page.locator(".statusbar-item", { hasText: "1 running" }).first().waitFor();
    });
    await step("the toast says what the agent does", 30, () => toast("cat README.md").waitFor());
    await shoot(page, "vscode-progress");
    fs.writeFileSync(given("PACTIFY_GO"), "");
    await step("the end is told, with the way to the preview", 60, async () => {
      await toast("changed 3 files").waitFor();
      await toast("changed 3 files").locator(".monaco-button", { hasText: "Preview" }).click();
    });
    await step("one diff has all files", 60, async () => {
      await page.locator(".multiDiffEntry").nth(2).waitFor();
      await page.locator(".multiDiffEntry .char-insert, .multiDiffEntry .line-insert").first().waitFor();
      await toast("changed 3 files").locator(".monaco-button", { hasText: "Apply" }).waitFor();
    });
    await shoot(page, "vscode-preview");
    if (read("README.md").includes("name")) throw new Error("the checkout was written before the apply");
    await step("the apply is confirmed", 30, async () => {
      await toast("changed 3 files").locator(".monaco-button", { hasText: "Apply" }).click();
      await page.locator(".monaco-dialog-box", { hasText: "Apply 3 files" }).waitFor();
    });
    await shoot(page, "vscode-apply");
    await step("the files are on the disk", 60, async () => {
      await page.locator(".monaco-dialog-box .monaco-button", { hasText: /^Apply$/ }).click();
      await toast("Pactify: applied 3 files.").waitFor();
      if (!read("README.md").includes("by name") || !read("src/greet.h").includes("greet")) {
        throw new Error("what was shown is not what is there");
      }
    });
    if (outside.length > 0) throw new Error(`requests left the machine: ${outside.join(" ")}`);
  },
});
