// VS Code beside a Neovim on the same repository. What is done in Neovim is done by whoever runs this, a step of its own
// ahead: the window is never reloaded, and shows it all the same.

import fs from "node:fs";
import { given, hands, shoot, step, withVsCode } from "./browser.mjs";

await withVsCode({
  workspace: given("PACTIFY_WORKSPACE"),
  extensions: given("PACTIFY_EXTENSIONS"),
  machine: { "pactify.server.path": given("PACTIFY_LSP") },
  use: async (page, url) => {
    const { row, choose, toast, button, dialog, command, open, press, showJobs } = hands(page);
    const group = (name, count) => row(new RegExp(`^${name}${count}$`));
    const text = (words) => page.locator(".editor-instance .view-line", { hasText: words }).first();

    await page.goto(url);
    await step("VS Code shows a file, and no job", 90, async () => {
      await page.locator(".monaco-workbench .statusbar").waitFor();
      await open("README.md");
      await showJobs();
      await button(page.locator(".sidebar .welcome-view"), "Delegate a Task").waitFor();
    });
    await step("VS Code shows the job that Neovim started", 120, async () => {
      await group("Working", 1).waitFor();
      await row("Seen by both").waitFor();
      await page.locator(".statusbar-item", { hasText: "1 running" }).first().waitFor();
    });
    await step("VS Code shows its result", 120, async () => {
      await group("To Review", 1).waitFor();
      await row("1 file, +1 −1").waitFor();
      await text("A small program.").waitFor();
    });
    await step("VS Code shows that Neovim applied it, and the new text", 180, async () => {
      await group("Applied", 1).waitFor();
      await group("To Review", 1).waitFor({ state: "detached" });
      await text("Seen by both.").waitFor();
    });
    await shoot(page, "vscode-together");
    await step("VS Code undoes it", 90, async () => {
      await command("Undo Apply");
      await choose("Seen by both");
      await toast("was undone").waitFor();
      await text("A small program.").waitFor();
    });
    // Neovim's server looks every few seconds: what is gone before that, it never shows.
    await step("Neovim shows that", 90, async () => {
      while (!fs.existsSync(given("PACTIFY_SEEN"))) await page.waitForTimeout(50);
    });
    await step("VS Code applies it", 90, async () => {
      await command("Apply…");
      await choose("Seen by both");
      const asked = dialog("Apply 1 file");
      await press(button(toast("changed 1 file"), "Apply"), asked);
      await press(asked.locator(".monaco-button", { hasText: /^Apply$/ }), toast("applied 1 file"));
    });
  },
});
