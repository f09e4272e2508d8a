// Runs a suite with Mocha inside VS Code's real extension host, beside the extension. Nothing is clicked.
//
// A built VS Code takes `extensionTestsPath` from the page's `payload` only with `enable-smoke-test-driver`; it then
// calls the page's `codeAutomationLog` and `codeAutomationExit`.

import { given, step, withVsCode } from "./browser.mjs";

const extension = given("PACTIFY_EXTENSION");

await withVsCode({
  workspace: given("PACTIFY_WORKSPACE"),
  extensions: given("PACTIFY_EXTENSIONS"),
  machine: { "pactify.server.path": given("PACTIFY_LSP") },
  payload: (port) => {
    const remote = (file) => `vscode-remote://127.0.0.1:${port}${file}`;
    return [
      ["extensionDevelopmentPath", remote(extension)],
      ["extensionTestsPath", remote(`${extension}/${given("PACTIFY_SUITE")}`)],
    ];
  },
  use: async (page, url) => {
    let exit;
    const code = new Promise((resolve) => (exit = resolve));
    await page.exposeFunction("codeAutomationLog", (_type, words) => console.log(...words));
    await page.exposeFunction("codeAutomationExit", (code) => exit(code));
    await page.goto(url);
    await step("the suite passes in the extension host", 450, async () => {
      if ((await code) !== 0) throw new Error("see what failed above");
    });
  },
});
