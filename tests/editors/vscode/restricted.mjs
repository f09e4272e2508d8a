// A folder that the person doesn't trust: nothing is started in it, whoever wants a job is told why, and trust is all that
// it takes.

import fs from "node:fs";
import { given, hands, shoot, step, withVsCode } from "./browser.mjs";

const check = (is, what) => {
  if (!is) throw new Error(what);
};
/** Whatever pactify did, it would have begun with its home. */
const isStarted = () => fs.existsSync(given("PACTIFY_HOME"));

await withVsCode({
  workspace: given("PACTIFY_WORKSPACE"),
  extensions: given("PACTIFY_EXTENSIONS"),
  machine: { "pactify.server.path": given("PACTIFY_LSP") },
  settings: { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" },
  use: async (page, url) => {
    const { toast, button, command, press, showJobs } = hands(page);
    const view = page.locator(".sidebar .welcome-view");

    await page.goto(url);
    await step("the view says that nothing is started here, and why", 90, async () => {
      await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).first().waitFor();
      await showJobs();
      await view.getByText("This workspace is in Restricted Mode").waitFor();
      await button(view, "Manage Workspace Trust").waitFor();
    });
    await shoot(page, "vscode-restricted");
    for (const name of ["Delegate Task", "Doctor", "Restart Server"]) {
      await step(`“${name}” asks for trust instead`, 90, async () => {
        await command(name);
        await toast("this workspace is in Restricted Mode").waitFor();
        check(!isStarted(), "something was started");
        await page.keyboard.press("Escape");
        await toast("this workspace is in Restricted Mode").waitFor({ state: "detached" });
      });
    }
    await step("with trust, it begins", 120, async () => {
      await command("Delegate Task");
      const trust = page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).first();
      await press(button(toast("this workspace is in Restricted Mode"), "Manage Workspace Trust"), trust);
      await press(trust, button(view, "Delegate a Task"));
      check(isStarted(), "nothing was started");
    });
  },
});
