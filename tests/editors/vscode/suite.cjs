// The extension in VS Code's extension host: commands, toast, preview, apply, unsaved text, cancel. The person is played
// by answers to the questions that the extension asks; the server, the jobs and the files are real.

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const Mocha = require(process.env.PACTIFY_MOCHA);
const vscode = require("vscode");

const until = async (what, seconds, condition) => {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${seconds} s; asked: ${JSON.stringify(asked)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

/** What the extension asked or told, and how the person answers: by a button's beginning. */
const asked = [];
let buttons = [];
let words = "";
let pick = (items) => items[0];
const answer = async (text, ...rest) => {
  const [options] = rest;
  asked.push([text, options?.detail].filter(Boolean).join("\n"));
  return rest.find((button) => typeof button === "string" && buttons.some((wanted) => button.startsWith(wanted)));
};
const toasts = [];

function playThePerson() {
  const { window } = vscode;
  for (const name of ["showInformationMessage", "showWarningMessage", "showErrorMessage"]) window[name] = answer;
  window.showInputBox = async () => words;
  window.showQuickPick = async (items) => {
    asked.push(items.map((item) => `${item.label} ${item.description ?? ""}`).join("\n"));
    return pick(items);
  };
  const { withProgress } = window;
  window.withProgress = (options, task) => {
    // The language client shows the server's own progress in the status bar.
    if (options.location !== vscode.ProgressLocation.Notification) return withProgress(options, task);
    const cancellation = new vscode.CancellationTokenSource();
    const toast = { ...options, messages: [], cancel: () => cancellation.cancel() };
    toasts.push(toast);
    const report = (value) => toast.messages.push(value.message);
    return withProgress(options, () => task({ report }, cancellation.token)).then(() => (toast.isOver = true));
  };
}

const script = (title, ...steps) => `${title}\n\n\`\`\`agent\n${steps.map((s) => JSON.stringify(s)).join("\n")}\n\`\`\`\n`;
const told = (text) => asked.find((line) => line.includes(text));
const run = (name) => vscode.commands.executeCommand(`pactify.ui.${name}`);

/** The process that this extension host started as the server; nothing while there is none. */
function serverPid() {
  const pids = fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  const stat = (pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    } catch {
      return "";
    }
  };
  const isServer = (pid) => stat(pid).match(/^[0-9]+ \(pactify-lsp\) [^Z] ([0-9]+)/)?.[1] === String(process.pid);
  return Number(pids.find(isServer)) || undefined;
}

function tests() {
  const root = vscode.workspace.workspaceFolders[0].uri;
  const file = (name) => path.join(root.fsPath, name);
  const read = (name) => (fs.existsSync(file(name)) ? fs.readFileSync(file(name), "utf8") : undefined);
  const go = process.env.PACTIFY_GO;
  const readme = "# Sample\n\nA small program.\n";
  const result = "# Sample\n\nA small program that greets.\n";

  before(async () => {
    playThePerson();
    await vscode.extensions.getExtension("pactify.pactify").activate();
  });

  it("registers its commands beside the server's", async () => {
    const commands = await vscode.commands.getCommands(true);
    const ours = commands.filter((name) => name.startsWith("pactify.ui."));
    const verbs = ["apply", "cancel", "delegate", "jobs", "preview", "undo"];
    assert.deepStrictEqual(ours.sort(), verbs.map((verb) => `pactify.ui.${verb}`));
    assert.ok(commands.includes("pactify.delegate"), "the server's own are there too");
  });

  it("delegates, and shows the job in a toast until it is over", async () => {
    words = script(
      "Greet in the README",
      { say: "Looking around." },
      { waitFor: [go, 60] },
      { write: { path: "README.md", content: result } },
      { write: { path: "greeting.txt", content: "hello\n" } },
      { write: { path: ".vscode/settings.json", content: "{}\n" } },
    );
    await run("delegate");
    const toast = await until("a toast", 20, () => toasts[0]);
    assert.strictEqual(toast.title, "codex: Greet in the README");
    assert.ok(toast.cancellable);
    await until("what the agent does", 20, () => toast.messages.length > 0);
    fs.writeFileSync(go, "");
    await until("the toast goes", 60, () => toast.isOver);
    await until("the end in words", 20, () => told("codex: Greet in the README: changed 3 files, +3 −1, 1 sensitive"));
    assert.strictEqual(read("README.md"), readme, "nothing is in the checkout");
  });

  it("lists the job with its state", async () => {
    pick = () => undefined;
    await run("jobs");
    assert.ok(told("Greet in the README succeeded"), JSON.stringify(asked));
    pick = (items) => items[0];
  });

  it("previews all files in one diff of documents that are not files", async () => {
    await run("preview");
    const tab = () => vscode.window.tabGroups.activeTabGroup.activeTab;
    await until("the diff", 20, () => tab()?.label.startsWith("Pactify: Greet in the README"));
    const is = (uri, side) => uri.scheme === "pactify" && uri.path === "/README.md" && uri.query.includes(`"${side}"`);
    const text = (side) => vscode.workspace.textDocuments.find(({ uri }) => is(uri, side))?.getText();
    await until("the base", 20, () => text("base") === readme);
    await until("the result", 20, () => text("result") === result);
  });

  it("refuses to overwrite unsaved text, and offers to save it", async () => {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(root, "README.md"));
    const editor = await vscode.window.showTextDocument(document);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "mine "));
    buttons = ["Apply All"];
    await run("apply");
    const question = told("Apply 3 files of “Greet in the README”");
    assert.match(question, /act by themselves[^]*\.vscode\/settings\.json/);
    assert.ok(told("Nothing was applied yet: 1 file of it has unsaved text.\nREADME.md"), JSON.stringify(asked));
    assert.deepStrictEqual([read("README.md"), read("greeting.txt")], [readme, undefined]);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    assert.ok(!document.isDirty);
  });

  it("applies what was shown, without the sensitive file if the person says so", async () => {
    buttons = ["Apply Without These"];
    await run("apply");
    assert.ok(told("Pactify: applied 2 files."), JSON.stringify(asked));
    assert.deepStrictEqual([read("README.md"), read("greeting.txt")], [result, "hello\n"]);
    assert.strictEqual(read(".vscode/settings.json"), undefined);
  });

  it("shows a conflict with its path, and writes nothing", async () => {
    fs.mkdirSync(file(".vscode"), { recursive: true });
    fs.writeFileSync(file(".vscode/settings.json"), '{"mine": 1}\n');
    buttons = ["Apply All", "Show the Path"];
    await run("apply");
    const error = await until("the refusal", 20, () => told("(applyConflict)"));
    assert.ok(error.startsWith("Pactify: "), error);
    await until("the path", 10, () => asked.at(-1).includes(".vscode/settings.json"));
    assert.strictEqual(read(".vscode/settings.json"), '{"mine": 1}\n');
    buttons = [];
  });

  it("cancels from the toast", async () => {
    words = script("Wait for ever", { say: "Waiting." }, "hang");
    await run("delegate");
    const toast = await until("a toast", 20, () => toasts[1]);
    await until("it runs", 20, () => toast.messages.length > 0);
    toast.cancel();
    await until("it is over", 30, () => toast.isOver);
    await until("the end in words", 20, () => told("codex: Wait for ever: cancelled"));
  });

  it("goes on with a job whose server was killed", async () => {
    words = script("Outlive the server", { waitFor: [`${go}-on`, 60] }, { write: { path: "late.txt", content: "late\n" } });
    await run("delegate");
    const toast = await until("a toast", 20, () => toasts[2]);
    await until("it runs", 20, () => toast.messages.length > 0);
    process.kill(serverPid(), "SIGKILL");
    await until("another server", 30, serverPid);
    fs.writeFileSync(`${go}-on`, "");
    await until("the toast goes", 60, () => toast.isOver);
    await until("the end in words", 20, () => told("codex: Outlive the server: changed 1 file"));
  });

  it("says what went wrong, and what to do", async () => {
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    words = script("Fail", { fail: "the model is out of cheese" });
    await run("delegate");
    const text = await until("the failure", 30, () => told("codex: Fail: "));
    assert.match(text, /\(\w+\)\.?$/, "it ends with the stable code");
  });
}

exports.run = () =>
  new Promise((resolve, reject) => {
    const mocha = new Mocha({ ui: "bdd", color: false, timeout: 100_000, bail: true });
    mocha.suite.emit("pre-require", global, "suite.cjs", mocha);
    describe(`the extension in VS Code ${vscode.version}`, tests);
    mocha.run((failures) => (failures === 0 ? resolve() : reject(new Error(`${failures} failed`))));
  });
